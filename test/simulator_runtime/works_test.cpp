// The parts of the runtime that the simulated cuDNN uses: works, ranges, races.
#include <vector>

#include "fixtures.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::test {
namespace {

using simulator::Access;
using simulator::Work;

cudaError_t put(cudaStream_t stream, std::vector<Access> accesses) {
  return simulator::enqueue(stream, Work{"work", 1.0, {}, std::move(accesses)});
}

TEST(SimulatedWorkTest, RunsInOrderAndAdvancesTheClock) {
  const ScopedStream stream;
  std::vector<int> order;
  const double before = clockMs(stream);
  for (int i = 0; i < 3; ++i) {
    EXPECT_CUDA(simulator::enqueue(stream, Work{"work", 0.5, [&, i] { order.push_back(i); }}));
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(clockMs(stream) - before, 1.5);
}

TEST(SimulatedWorkTest, NeedsAStreamOfTheCurrentDevice) {
  const ScopedStream stream;
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(put(stream, {}), cudaErrorInvalidResourceHandle);
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(put(reinterpret_cast<cudaStream_t>(0x1234), {}), cudaErrorInvalidResourceHandle);
}

TEST(SimulatedWorkTest, MayNotCallCuda) {
  cudaError_t error = cudaSuccess;
  EXPECT_CUDA(
      simulator::enqueue(nullptr, Work{"work", 0, [&] { error = cudaDeviceSynchronize(); }}));
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

enum class Order { kNone, kEvent, kHost, kLegacy, kSameStream };

struct RaceCase {
  const char* name;
  Access first;
  Access second;
  Order order;
  bool race;
};

TEST(SimulatedWorkTest, UnorderedConflictsAreRaces) {
  const DeviceBuffer buffer(256);
  char* const base = buffer.get();
  const Access writes = {base, 128, true};
  const Access reads = {base + 64, 128, false};
  const Access apart = {base + 128, 128, true};
  const RaceCase cases[] = {
      {"write, write", writes, writes, Order::kNone, true},
      {"write, read", writes, reads, Order::kNone, true},
      {"read, write", reads, writes, Order::kNone, true},
      {"read, read", reads, reads, Order::kNone, false},
      {"side by side", writes, apart, Order::kNone, false},
      {"event", writes, writes, Order::kEvent, false},
      {"host", writes, writes, Order::kHost, false},
      {"legacy stream", writes, writes, Order::kLegacy, false},
      {"same stream", writes, writes, Order::kSameStream, false},
  };
  for (const RaceCase& test : cases) {
    SCOPED_TRACE(test.name);
    ASSERT_CUDA(cudaDeviceSynchronize());
    const ScopedStream a(cudaStreamDefault);
    const ScopedStream b(cudaStreamDefault);
    const ScopedEvent event;
    const std::int64_t before = simulator::ucudnnSimulatorViolationCount();
    EXPECT_CUDA(put(a, {test.first}));
    if (test.order == Order::kEvent) {
      EXPECT_CUDA(cudaEventRecord(event, a));
      EXPECT_CUDA(cudaStreamWaitEvent(b, event, 0));
    }
    if (test.order == Order::kHost) {
      EXPECT_CUDA(cudaStreamSynchronize(a));
    }
    if (test.order == Order::kLegacy) {
      EXPECT_CUDA(put(nullptr, {}));
    }
    EXPECT_CUDA(
        put(test.order == Order::kSameStream ? cudaStream_t(a) : cudaStream_t(b), {test.second}));
    EXPECT_EQ(simulator::ucudnnSimulatorViolationCount() - before, test.race ? 1 : 0);
  }
}

TEST(SimulatedWorkTest, RowsThatInterleaveDoNotRace) {
  const DeviceBuffer buffer(4096);
  const ScopedStream a;
  const ScopedStream b;
  const auto fillRows = [&](std::size_t first, cudaStream_t stream) {
    EXPECT_CUDA(cudaMemset2DAsync(buffer.get() + first, 256, 1, 64, 4, stream));
  };
  const std::int64_t before = violationCount();
  fillRows(0, a);
  fillRows(64, b);
  EXPECT_EQ(before, violationCount());
  fillRows(96, a);
  EXPECT_EQ(before + 1, violationCount()) << "half of each row";
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(SimulatedWorkTest, EarlierRacesAreFoundAfterLaterOrderedWork) {
  const DeviceBuffer buffer(256);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const ScopedStream a;
  const ScopedStream b;
  const std::int64_t before = simulator::ucudnnSimulatorViolationCount();
  EXPECT_CUDA(put(a, {{buffer.get(), 256, true}}));
  EXPECT_CUDA(put(a, {{buffer.get(), 256, false}}));
  EXPECT_CUDA(put(a, {{buffer.get() + 128, 128, false}}));
  EXPECT_CUDA(put(b, {{buffer.get(), 16, false}}));  // with the write
  EXPECT_EQ(simulator::ucudnnSimulatorViolationCount(), before + 1);
}

TEST(SimulatedWorkTest, BranchesOfACaptureRace) {
  const DeviceBuffer buffer(256);
  const ScopedStream a;
  const ScopedStream b;
  const ScopedEvent forked;
  const ScopedEvent joined;
  ASSERT_CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  EXPECT_CUDA(cudaEventRecord(forked, a));
  EXPECT_CUDA(cudaStreamWaitEvent(b, forked, 0));
  const std::int64_t before = simulator::ucudnnSimulatorViolationCount();
  EXPECT_CUDA(put(a, {{buffer.get(), 256, true}}));
  EXPECT_CUDA(put(b, {{buffer.get(), 256, true}}));
  EXPECT_EQ(simulator::ucudnnSimulatorViolationCount(), before + 1);
  EXPECT_CUDA(cudaEventRecord(joined, b));
  EXPECT_CUDA(cudaStreamWaitEvent(a, joined, 0));
  EXPECT_CUDA(put(a, {{buffer.get(), 256, true}}));
  EXPECT_EQ(simulator::ucudnnSimulatorViolationCount(), before + 1);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(a, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(SimulatedWorkTest, TakesLessInAGraphForEachOfItsKernels) {
  const ScopedStream stream;
  const CapturedGraph graph(stream, [&] {
    EXPECT_CUDA(simulator::enqueue(stream, Work{"work", 0.1, {}, {}, 4}));
    EXPECT_CUDA(simulator::enqueue(stream, Work{"work", 0.01, {}, {}, 4}));
  });
  EXPECT_EQ(graph.nodes(), 2U);
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), stream));
  // 2 us for the graph; 4 * 3 us less, but never less than half.
  EXPECT_NEAR(clockMs(stream) - hostClockMs(), 0.002 + 0.088 + 0.005, 1e-9);
}

/// A graph that writes to the buffer.
class WritingGraph {
 public:
  WritingGraph(cudaStream_t stream, const DeviceBuffer& buffer)
      : graph_(stream, [&] {
          EXPECT_CUDA(put(stream, {{buffer.get(), 256, true}}));
        }) {}
  cudaError_t launch(cudaStream_t stream) const { return cudaGraphLaunch(graph_.exec(), stream); }

 private:
  CapturedGraph graph_;
};

class SimulatedGraphRaceTest : public testing::Test {
 protected:
  std::int64_t races() const { return simulator::ucudnnSimulatorViolationCount() - before_; }
  void order() {
    EXPECT_CUDA(cudaEventRecord(event_, a_));
    EXPECT_CUDA(cudaStreamWaitEvent(b_, event_, 0));
  }

  const DeviceBuffer buffer_{256};
  const ScopedStream a_;
  const ScopedStream b_;
  const ScopedEvent event_;
  const Access reads_{buffer_.get(), 16, false};
  const WritingGraph graph_{a_, buffer_};
  const WritingGraph other_{a_, buffer_};
  const std::int64_t before_ = simulator::ucudnnSimulatorViolationCount();
};

TEST_F(SimulatedGraphRaceTest, AGraphAndLaterWorkOfAnotherStream) {
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_CUDA(put(b_, {reads_}));
  EXPECT_EQ(races(), 1);
}

TEST_F(SimulatedGraphRaceTest, AGraphAndEarlierWorkOfAnotherStream) {
  EXPECT_CUDA(put(a_, {reads_}));
  EXPECT_CUDA(graph_.launch(b_));
  EXPECT_EQ(races(), 1);
}

TEST_F(SimulatedGraphRaceTest, TwoGraphsOnTwoStreams) {
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_CUDA(other_.launch(b_));
  EXPECT_EQ(races(), 1);
}

TEST_F(SimulatedGraphRaceTest, EveryLaunchRaces) {
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(put(b_, {reads_}));
  EXPECT_EQ(races(), 0);
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_EQ(races(), 1);
}

TEST_F(SimulatedGraphRaceTest, OrderedGraphsDoNot) {
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_CUDA(other_.launch(a_));
  order();
  EXPECT_CUDA(other_.launch(b_));
  EXPECT_CUDA(graph_.launch(b_));
  EXPECT_CUDA(put(b_, {reads_}));
  EXPECT_EQ(races(), 0);
}

// CUDA orders the launches of one executable graph, and what comes before and after with them.
TEST_F(SimulatedGraphRaceTest, LaunchesOfOneExecutableDoNot) {
  EXPECT_CUDA(put(a_, {reads_}));
  EXPECT_CUDA(graph_.launch(a_));
  EXPECT_CUDA(graph_.launch(b_));
  EXPECT_CUDA(put(b_, {reads_}));
  EXPECT_EQ(races(), 0);
  EXPECT_CUDA(put(a_, {reads_}));  // with b's launch
  EXPECT_EQ(races(), 1);
}

struct RangeCase {
  const char* name;
  std::ptrdiff_t offset;
  std::size_t bytes;
  bool inside;
};

TEST(SimulatedWorkTest, RangesAreCheckedAgainstTheirBlock) {
  const DeviceBuffer buffer(256);
  const RangeCase cases[] = {
      {"whole", 0, 256, true},
      {"last byte", 255, 1, true},
      {"nothing", 300, 0, true},
      {"one too many", 1, 256, false},
      {"before", -1, 1, false},
      {"after", 256, 1, false},
      {"overflow", 16, SIZE_MAX, false},
  };
  for (const RangeCase& test : cases) {
    SCOPED_TRACE(test.name);
    const std::int64_t before = simulator::ucudnnSimulatorViolationCount();
    EXPECT_EQ(simulator::checkRange(buffer.get() + test.offset, test.bytes, "x"), test.inside);
    EXPECT_EQ(simulator::ucudnnSimulatorViolationCount() - before, test.inside ? 0 : 1);
  }
}

TEST(SimulatedWorkTest, KernelsReachManagedMemoryAndNoOtherOfTheHost) {
  void* managed = nullptr;
  void* pinned = nullptr;
  ASSERT_CUDA(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal));
  ASSERT_CUDA(cudaMallocHost(&pinned, 64));
  const std::int64_t before = violationCount();
  EXPECT_TRUE(simulator::checkRange(managed, 64, "x"));
  EXPECT_EQ(before, violationCount());
  EXPECT_FALSE(simulator::checkRange(pinned, 64, "x"));
  EXPECT_EQ(before + 1, violationCount());
  cudaPointerAttributes attributes{};
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, managed));
  EXPECT_EQ(cudaMemoryTypeManaged, attributes.type);
  EXPECT_CUDA(cudaFree(managed));
  EXPECT_CUDA(cudaFreeHost(pinned));
}

TEST(SimulatedWorkTest, OtherDevicesMemoryNeedsPeerAccess) {
  const DeviceBuffer buffer(256);
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_FALSE(simulator::checkRange(buffer.get(), 1, "x"));
  ASSERT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_TRUE(simulator::checkRange(buffer.get(), 1, "x"));
  ASSERT_CUDA(cudaDeviceDisablePeerAccess(0));
  ASSERT_CUDA(cudaSetDevice(0));
}

}  // namespace
}  // namespace ucudnn::test
