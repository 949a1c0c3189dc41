// How `share` and `auto` lay out a total for streams that overlap on the device, and for those that
// do not. Virtual time: the simulator's.
#include <algorithm>

#include "network.hpp"

namespace ucudnn::test {
namespace {

constexpr int kLayers = 3;
// Several looks and tries.
constexpr int kSettlingIterations = 40;

/// Convolutions that no other test knows and nothing is forced on.
ConvolutionCase smallCase(int layer, int batch = 4) {
  ConvolutionCase result = fftCase(256 + 32 * layer);
  result.batch = batch;
  return result;
}

class OverlapTest : public TotalWorkspaceTest {
 protected:
  void SetUp() override {
    TotalWorkspaceTest::SetUp();
    if (IsSkipped()) return;
    if (!onSimulator()) GTEST_SKIP() << "counts virtual time";
    setArithmetic(Arithmetic::kOff);  // times and races alone
  }

  enum class Order { kFree, kChained };

  /// Layers whose operations run on the streams that `streamOf(layer, operation)` names, one
  /// behind the other (by events, as a framework orders them) or as they like.
  class Trainer {
   public:
    Trainer(std::size_t streams, Order order, int batch = 4) : order_(order), streams_(streams) {
      for (int i = 0; i < kLayers; ++i) {
        layers_.push_back(std::make_unique<Layer>(smallCase(i, batch), i));
        layers_.back()->prepare(0);
      }
      EXPECT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
      EXPECT_CUDA(cudaDeviceSynchronize());
    }
    ~Trainer() { EXPECT_CUDA(cudaEventDestroy(event_)); }
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    void iterate(std::size_t eachBytes = 0) {
      std::size_t number = 0;
      for (const auto& layer : layers_)
        for (const ucudnnOperation_t operation : kOperations) {
          const StreamHandle& on = streams_[number++ % streams_.size()];
          if (order_ == Order::kChained) {
            ASSERT_CUDA(cudaStreamWaitEvent(on.stream(), event_, 0));
          }
          if (eachBytes > 0)
            runWithWorkspace(*layer, on.handle(), operation, eachBytes, number);
          else
            ASSERT_CUDNN(layer->run(on.handle(), operation));
          ASSERT_CUDA(cudaEventRecord(event_, on.stream()));
        }
      ASSERT_CUDA(cudaDeviceSynchronize());
    }

    /// The virtual time of an iteration.
    double timeMs(std::size_t eachBytes = 0) {
      const double before = clock();
      iterate(eachBytes);
      return clock() - before;
    }

   private:
    double clock() const {
      double latest = 0;
      for (const StreamHandle& stream : streams_)
        latest = std::max(latest, clockMs(stream.stream()));
      return latest;
    }
    void runWithWorkspace(Layer& layer,
                          UcudnnHandle_t handle,
                          ucudnnOperation_t operation,
                          std::size_t bytes,
                          std::size_t number) {
      while (workspaces_.size() < number)
        workspaces_.push_back(std::make_unique<DeviceBuffer>(bytes));
      const DeviceBuffer& workspace = *workspaces_[number - 1];
      ASSERT_CUDNN(layer.run(handle, operation, 0, {workspace.get(), workspace.bytes()}));
    }

    Order order_;
    std::vector<StreamHandle> streams_;
    std::vector<std::unique_ptr<Layer>> layers_;
    std::vector<std::unique_ptr<DeviceBuffer>> workspaces_;
    cudaEvent_t event_ = nullptr;
  };

  /// An iteration once all has settled.
  double settledMs(std::size_t streams, Order order, std::size_t eachBytes = 0) {
    Trainer trainer(streams, order);
    for (int i = 0; i < kSettlingIterations; ++i) trainer.iterate(eachBytes);
    return trainer.timeMs(eachBytes);
  }

  /// The workspace that all nine would like.
  std::size_t wantedByAll() {
    std::size_t sum = 0;
    const Handles handles;
    for (int i = 0; i < kLayers; ++i)
      for (const ucudnnOperation_t operation : kOperations) {
        std::vector<ucudnnParetoPoint_t> front;
        EXPECT_CUDNN(Convolution(smallCase(i)).front(handles.ours, operation, &front));
        sum += front.back().workspaceBytes;
      }
    return sum;
  }
};

TEST_F(OverlapTest, CallsOneBehindTheOtherLoseNothingByTheirStreams) {
  const std::size_t total = wantedByAll() / 9;
  setTotal(total, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const double one = settledMs(1, Order::kChained);
  EXPECT_EQ(1U, layouts());
  EXPECT_LE(settledMs(9, Order::kChained), 1.001 * one);
  EXPECT_EQ(2U, layouts("one arena"));
  EXPECT_EQ(2U, layouts()) << "tried another layout though nothing overlapped";
}

TEST_F(OverlapTest, StreamsThatOverlapGetArenasThatLetThem) {
  const std::size_t wanted = wantedByAll();
  for (const std::size_t total : {wanted / 6, wanted / 3, wanted}) {
    SCOPED_TRACE(total);
    setTotal(0, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
    double best = settledMs(3, Order::kFree, total / 9);
#ifdef UCUDNN_HAVE_DIVISION
    setTotal(total, UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
    best = std::min(best, settledMs(3, Order::kFree));
#endif
    for (const auto policy :
         {UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO}) {
      setTotal(total, policy);
      EXPECT_LE(settledMs(3, Order::kFree), 1.05 * best) << toText(policy);
    }
  }
  EXPECT_LT(0U, layouts("3 arenas"));
}

TEST_F(OverlapTest, ATrialMeasuresNothingAndWhatStandsItIsMeasured) {
  // With so many samples, the size that fits at most a third of the total is no power of two.
  setTotal(wantedByAll(), UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  Trainer trainer(3, Order::kFree, 96);
  trainer.iterate();
  const auto measuredKernels = [] {
    ucudnnStatistics_t statistics{};
    statistics.size = sizeof(statistics);
    EXPECT_CUDNN(ucudnnGetStatistics(&statistics));
    return statistics.kernelsMeasured;
  };
  const long long before = measuredKernels();
  for (int i = 0; i < kSettlingIterations && layouts("3 arenas") < 2; ++i) {
    EXPECT_EQ(before, measuredKernels());
    trainer.iterate();
  }
  EXPECT_EQ(2U, layouts("3 arenas")) << "tried, then kept";
  trainer.iterate();
  EXPECT_LT(before, measuredKernels()) << "a third of the total is another question";
}

TEST_F(OverlapTest, NothingIsWaitedForOnTheHost) {
  setTotal(wantedByAll(), UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  Trainer trainer(3, Order::kFree);
  trainer.iterate();
  const char* const waits[] = {"cudaEventSynchronize", "cudaStreamSynchronize", "cudaEventQuery"};
  std::vector<std::int64_t> before;
  for (const char* const name : waits) before.push_back(callCount(name));
  for (int i = 0; i < kSettlingIterations; ++i) trainer.iterate();
  EXPECT_LT(1U, layouts()) << "nothing was laid out anew: this shows nothing";
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i], callCount(waits[i])) << waits[i];
}

}  // namespace
}  // namespace ucudnn::test
