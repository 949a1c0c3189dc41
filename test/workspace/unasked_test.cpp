// A network under a total whose measurements nobody asked for.
#include <algorithm>

#include "network.hpp"

namespace ucudnn::test {
namespace {

/// As large as AlexNet's. The mode tells problems apart that take the same times.
std::vector<ConvolutionCase> layers(cudnnConvolutionMode_t mode) {
  std::vector<ConvolutionCase> cases;
  for (const int channels : {384, 512}) {
    ConvolutionCase& one = cases.emplace_back();
    one.batch = 64;
    one.channels = channels;
    one.filters = 512;
    one.input = {13, 13};
    one.mode = mode;
  }
  return cases;
}

/// Trains in Caffe's way: a handle and a stream for each operation of each layer, one call behind
/// the other, and sizes are asked on one handle for all.
class CaffesWay {
 public:
  explicit CaffesWay(cudnnConvolutionMode_t mode) {
    for (const ConvolutionCase& one : layers(mode))
      layers_.push_back(std::make_unique<Layer>(one, static_cast<int>(layers_.size())));
    for (std::size_t i = 0; i < 3 * layers_.size(); ++i)
      streams_.push_back(std::make_unique<StreamHandle>());
    EXPECT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    for (const auto& layer : layers_)
      for (const ucudnnOperation_t operation : kOperations) {
        std::size_t bytes = 1;
        EXPECT_CUDNN(
            layer->convolution().workspaceSize(streams_.front()->handle(), operation, 0, &bytes));
        EXPECT_EQ(0U, bytes);
      }
  }
  ~CaffesWay() { EXPECT_CUDA(cudaEventDestroy(event_)); }
  CaffesWay(const CaffesWay&) = delete;
  CaffesWay& operator=(const CaffesWay&) = delete;

  std::size_t calls() const { return streams_.size(); }
  /// Its virtual time.
  double iterate() {
    const double before = clock();
    std::size_t number = 0;
    for (const auto& layer : layers_)
      for (const ucudnnOperation_t operation : kOperations) {
        const StreamHandle& on = *streams_[number++];
        EXPECT_CUDA(cudaStreamWaitEvent(on.stream(), event_, 0));
        EXPECT_CUDNN(layer->run(on.handle(), operation));
        EXPECT_CUDA(cudaEventRecord(event_, on.stream()));
      }
    EXPECT_CUDA(cudaDeviceSynchronize());
    return clock() - before;
  }

 private:
  double clock() const {
    double latest = 0;
    for (const auto& stream : streams_) latest = std::max(latest, clockMs(stream->stream()));
    return latest;
  }

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<StreamHandle>> streams_;
  cudaEvent_t event_ = nullptr;
};

class UnaskedTest : public TotalWorkspaceTest {
 protected:
  void SetUp() override {
    TotalWorkspaceTest::SetUp();
    if (IsSkipped()) return;
    if (!onSimulator()) GTEST_SKIP() << "counts virtual time";
    setArithmetic(Arithmetic::kOff);
    setTotal(kTotal, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  }
  std::size_t measurements() const { return logged({"kernels timed in"}).size(); }

  static constexpr std::size_t kTotal = std::size_t{120} << 20;
  const EnvironmentGuard noDatabase_{"UCUDNN_DATABASE", ""};
};

/// How many calls a slice needs depends on the host, whose time counts: it may be busy.
TEST_F(UnaskedTest, ANetworkRunsAtOnceAndBecomesAsFastAsOneThatIsMeasuredAtOnce) {
  double alwaysMs = 0;
  {
    CaffesWay always(CUDNN_CONVOLUTION);
    always.iterate();
    EXPECT_EQ(always.calls(), measurements());
    alwaysMs = always.iterate();
  }
  const std::size_t before = measurements();
  const EnvironmentGuard share("UCUDNN_BENCHMARK_SHARE", "0.03");
  CaffesWay unasked(CUDNN_CROSS_CORRELATION);
  const auto allocations = callCount("cudaMalloc");
  unasked.iterate();
  EXPECT_EQ(allocations, callCount("cudaMalloc")) << "something has been timed";
  EXPECT_LT(alwaysMs, unasked.iterate()) << "what cuDNN proposes is as fast: this shows nothing";
  constexpr int kMostIterations = 100000, kEach = 50;  // the log is read so seldom
  for (int i = 0; i < kMostIterations && measurements() < before + unasked.calls(); i += kEach)
    for (int j = 0; j < kEach; ++j) unasked.iterate();
  EXPECT_EQ(before + unasked.calls(), measurements());
  unasked.iterate();
  EXPECT_LE(unasked.iterate(), 1.02 * alwaysMs);
  EXPECT_EQ(2U, layouts("one arena")) << "laid out anew";
  EXPECT_EQ(0U, layouts(" arenas"));
}

}  // namespace
}  // namespace ucudnn::test
