// Graphs: their time, order and memory, and captures beside other work. A GPU's behaviour was
// measured on an H200 with CUDA 13.0, 2026-11-22.
#include <thread>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kBytes = 48'000'000;  // filled in 0.0125 ms, see time_test.cpp
constexpr double kNodeMs = 0.0095;          // in a graph 3 us less
constexpr double kBeginMs = 0.002;
constexpr double kTolerance = 1e-6;

void increment(void* counter) {
  ++*static_cast<int*>(counter);
}

TEST(SimulatedGraphTest, RunsAtEveryLaunchAndNotBefore) {
  const ScopedStream stream;
  int count = 0;
  const double before = clockMs(stream);
  const CapturedGraph graph(stream, [&] {
    EXPECT_CUDA(cudaLaunchHostFunc(stream, increment, &count));
    EXPECT_CUDA(cudaLaunchHostFunc(stream, increment, &count));
  });
  EXPECT_EQ(count, 0);
  EXPECT_EQ(clockMs(stream), before);
  EXPECT_EQ(graph.nodes(), 2U);
  for (int launch = 1; launch <= 3; ++launch) {
    EXPECT_CUDA(cudaGraphLaunch(graph.exec(), stream));
    EXPECT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(count, 2 * launch);
  }
}

TEST(SimulatedGraphTest, BranchesTakeTheTimeOfTheLongest) {
  setArithmetic(Arithmetic::kOff);
  const DeviceBuffer one(kBytes);
  const DeviceBuffer two(kBytes);
  const ScopedStream main;
  const ScopedStream side;
  const ScopedEvent forked;
  const ScopedEvent joined;
  const CapturedGraph graph(main, [&] {
    EXPECT_CUDA(cudaMemsetAsync(one.get(), 0, kBytes, main));
    EXPECT_CUDA(cudaEventRecord(forked, main));
    EXPECT_CUDA(cudaStreamWaitEvent(side, forked, 0));
    EXPECT_CUDA(cudaMemsetAsync(one.get(), 0, kBytes, main));
    EXPECT_CUDA(cudaMemsetAsync(two.get(), 0, kBytes, side));
    EXPECT_CUDA(cudaMemsetAsync(two.get(), 0, kBytes, side));
    EXPECT_CUDA(cudaEventRecord(joined, side));
    EXPECT_CUDA(cudaStreamWaitEvent(main, joined, 0));
  });
  EXPECT_EQ(graph.nodes(), 4U);
  EXPECT_CUDA(cudaDeviceSynchronize());
  const double before = hostClockMs();
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), side));
  EXPECT_NEAR(clockMs(side) - before, kBeginMs + 3 * kNodeMs, kTolerance);
  setArithmetic(Arithmetic::kFull);
}

TEST(SimulatedGraphTest, NodesTakeHalfOfTheirTimeAtLeast) {
  const DeviceBuffer buffer(4096);
  const ScopedStream stream;
  EXPECT_CUDA(cudaDeviceSynchronize());
  const double begin = hostClockMs();
  EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 4096, stream));
  const double eager = clockMs(stream) - begin;
  EXPECT_LT(eager, 0.006);
  const CapturedGraph graph(stream,
                            [&] { EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 4096, stream)); });
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), stream));
  EXPECT_NEAR(clockMs(stream) - begin, eager + kBeginMs + eager / 2, kTolerance);
}

TEST(SimulatedGraphTest, LaunchesOfOneExecutableNeverOverlap) {
  setArithmetic(Arithmetic::kOff);
  const DeviceBuffer one(kBytes);
  const DeviceBuffer two(kBytes);
  const ScopedStream a;
  const ScopedStream b;
  const auto fill = [&](const DeviceBuffer& buffer) {
    return [&] { EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, kBytes, a)); };
  };
  const CapturedGraph graph(a, fill(one));
  const CapturedGraph other(a, fill(two));
  EXPECT_CUDA(cudaDeviceSynchronize());
  const double begin = hostClockMs();
  constexpr double kLaunchMs = kBeginMs + kNodeMs;
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), a));
  EXPECT_CUDA(cudaGraphLaunch(other.exec(), b));
  EXPECT_NEAR(clockMs(a) - begin, kLaunchMs, kTolerance);
  EXPECT_NEAR(clockMs(b) - begin, kLaunchMs, kTolerance);
  EXPECT_CUDA(cudaGraphLaunch(other.exec(), b));
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), b));  // a's launch has long ended
  EXPECT_NEAR(clockMs(b) - begin, 3 * kLaunchMs, kTolerance);
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), a));  // behind b's
  EXPECT_NEAR(clockMs(a) - begin, 4 * kLaunchMs, kTolerance);
  setArithmetic(Arithmetic::kFull);
}

TEST(SimulatedGraphTest, ALaunchAfterItsStreamIsGoneWaitsForItStill) {
  setArithmetic(Arithmetic::kOff);
  const DeviceBuffer buffer(kBytes);
  const ScopedStream stream;
  const CapturedGraph graph(stream,
                            [&] { EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, kBytes, stream)); });
  EXPECT_CUDA(cudaDeviceSynchronize());
  const double begin = hostClockMs();
  {
    const ScopedStream gone;
    EXPECT_CUDA(cudaGraphLaunch(graph.exec(), gone));
  }
  EXPECT_CUDA(cudaGraphLaunch(graph.exec(), stream));
  EXPECT_NEAR(clockMs(stream) - begin, 2 * (kBeginMs + kNodeMs), kTolerance);
  setArithmetic(Arithmetic::kFull);
}

std::size_t freeBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

// 16 KiB a graph and 2.7 KiB a kernel, which no client has allocated.
TEST(SimulatedGraphTest, TakesDeviceMemoryUntilItIsDestroyed) {
  const ScopedStream stream;
  const DeviceBuffer buffer(16);
  const std::size_t before = freeBytes();
  const std::size_t live = liveBytes();
  {
    const CapturedGraph graph(stream, [&] {
      for (int i = 0; i < 10; ++i) EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, stream));
    });
    EXPECT_NEAR(static_cast<double>(before - freeBytes()), 43 * 1024, 16);
    EXPECT_EQ(liveBytes(), live);
    EXPECT_EQ(cudaGraphExecDestroy(nullptr), cudaErrorInvalidValue);
    cudaGetLastError();
  }
  EXPECT_EQ(freeBytes(), before);
}

TEST(SimulatedGraphTest, IsNotInstantiatedWithoutMemory) {
  const ScopedStream stream;
  const DeviceBuffer buffer(16);
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, stream));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  setMemory(0, 19'000);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(exec, nullptr);
  EXPECT_EQ(freeBytes(), 19'000U);
  setMemory(0, 20'000);
  EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 2048), cudaErrorMemoryAllocation);
  cudaGetLastError();
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaMalloc(&pointer, 2048));
  EXPECT_CUDA(cudaFree(pointer));
  setMemory(0, SIZE_MAX);
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(SimulatedGraphTest, AFailingInstantiationIsOneOfMemory) {
  const ScopedStream stream;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  failCall(1);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorMemoryAllocation);
  cudaGetLastError();
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

// A library captures for itself, beside clients that know nothing of it.
TEST(SimulatedGraphTest, ACaptureOnANonBlockingStreamDisturbsNobody) {
  const DeviceBuffer buffer(16);
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    const ScopedStream stream;
    const CapturedGraph graph(
        stream,
        [&] {
          EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, stream));
          std::thread([&] {
            void* pointer = nullptr;
            EXPECT_CUDA(cudaMalloc(&pointer, 16));
            EXPECT_CUDA(cudaMemsetAsync(pointer, 0, 16, nullptr));
            EXPECT_CUDA(cudaStreamSynchronize(nullptr));
            cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
            EXPECT_CUDA(cudaStreamIsCapturing(nullptr, &status));
            EXPECT_EQ(status, cudaStreamCaptureStatusNone);
            EXPECT_CUDA(cudaFree(pointer));
          }).join();
          EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, stream));
        },
        mode);
    EXPECT_EQ(graph.nodes(), 2U);
  }
}

TEST(SimulatedGraphTest, AClientsCaptureEndsWellWhereARelaxedThreadCapturesAndLaunches) {
  const DeviceBuffer buffer(16);
  const DeviceBuffer own(16);
  const ScopedStream captured;
  const ScopedStream launching;
  for (const bool blocking : {false, true}) {
    const ScopedStream client(blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    const CapturedGraph graph(
        client,
        [&] {
          EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, client));
          auto mode = cudaStreamCaptureModeRelaxed;
          EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
          {
            const CapturedGraph inner(
                captured,
                [&] { EXPECT_CUDA(cudaMemsetAsync(own.get(), 0, 16, captured)); },
                cudaStreamCaptureModeRelaxed);
            EXPECT_CUDA(cudaGraphLaunch(inner.exec(), launching));
          }
          EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
          EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, client));
        },
        cudaStreamCaptureModeGlobal);
    EXPECT_EQ(graph.nodes(), 2U);
  }
}

/// A captured line of three works, to be edited: add one, clear, add one.
class SimulatedEditedGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    EXPECT_CUDA(cudaLaunchHostFunc(stream_, increment, &count_));
    EXPECT_CUDA(cudaMemsetAsync(buffer_.get(), 0, kCleared, stream_));
    EXPECT_CUDA(cudaLaunchHostFunc(stream_, increment, &count_));
    EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph_));
    nodes_ = nodes();
    ASSERT_EQ(nodes_.size(), 3U);
  }
  void TearDown() override { EXPECT_CUDA(cudaGraphDestroy(graph_)); }

  std::vector<cudaGraphNode_t> nodes() const {
    std::size_t count = 0;
    EXPECT_CUDA(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> found(count);
    EXPECT_CUDA(cudaGraphGetNodes(graph_, found.data(), &count));
    return found;
  }
  template <typename Function>
  static std::vector<cudaGraphNode_t> neighbours(cudaGraphNode_t node, Function function) {
    std::size_t count = 0;
    EXPECT_CUDA(function(node, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> found(count);
    std::vector<cudaGraphEdgeData> edges(count);
    EXPECT_CUDA(function(node, found.data(), edges.data(), &count));
    return found;
  }
  void launch() const {
    cudaGraphExec_t exec = nullptr;
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph_, 0));
    EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
    EXPECT_CUDA(cudaStreamSynchronize(stream_));
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
  }

  static constexpr std::size_t kCleared = 128;
  const ScopedStream stream_;
  const DeviceBuffer buffer_{kCleared};
  int count_ = 0;
  cudaGraph_t graph_ = nullptr;
  std::vector<cudaGraphNode_t> nodes_;
};

TEST_F(SimulatedEditedGraphTest, NodesSayWhatTheyAreAndWhatTheyFollow) {
  cudaGraphNodeType type;
  EXPECT_CUDA(cudaGraphNodeGetType(nodes_[0], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeHost);
  EXPECT_CUDA(cudaGraphNodeGetType(nodes_[1], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeMemset);
  cudaMemsetParams params{};
  EXPECT_CUDA(cudaGraphMemsetNodeGetParams(nodes_[1], &params));
  EXPECT_EQ(params.dst, buffer_.get());
  EXPECT_EQ(params.value, 0U);
  EXPECT_EQ(params.width * params.elementSize, kCleared);
  EXPECT_EQ(cudaGraphMemsetNodeGetParams(nodes_[0], &params), cudaErrorInvalidValue);
  const std::vector<cudaGraphNode_t> first{nodes_[0]}, last{nodes_[2]};
  EXPECT_EQ(neighbours(nodes_[1], cudaGraphNodeGetDependencies), first);
  EXPECT_EQ(neighbours(nodes_[1], cudaGraphNodeGetDependentNodes), last);
  EXPECT_TRUE(neighbours(nodes_[0], cudaGraphNodeGetDependencies).empty());
}

TEST_F(SimulatedEditedGraphTest, WhatIsCapturedIntoItRunsWhereItIsPut) {
  static int seen;
  seen = -1;
  struct Look {
    const int* count;
    static void at(void* look) { seen = *static_cast<Look*>(look)->count; }
  } look{&count_};
  EXPECT_CUDA(cudaStreamBeginCaptureToGraph(
      stream_, graph_, &nodes_[0], nullptr, 1, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(cudaLaunchHostFunc(stream_, Look::at, &look));
  cudaGraph_t extended = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(stream_, &extended));
  EXPECT_EQ(extended, graph_);
  const auto four = nodes();
  ASSERT_EQ(four.size(), 4U);
  const cudaGraphNode_t added = four[3];
  EXPECT_CUDA(cudaGraphAddDependencies(graph_, &added, &nodes_[2], nullptr, 1));
  EXPECT_EQ(cudaGraphAddDependencies(graph_, &nodes_[2], &added, nullptr, 1), cudaErrorInvalidValue)
      << "a circle";
  EXPECT_CUDA(cudaGraphDestroyNode(nodes_[1]));
  EXPECT_EQ(nodes().size(), 3U);
  EXPECT_EQ(neighbours(nodes_[2], cudaGraphNodeGetDependencies).size(), 1U);
  EXPECT_EQ(cudaGraphDestroyNode(nodes_[1]), cudaErrorInvalidValue);
  launch();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(count_, 2);
}

}  // namespace
}  // namespace ucudnn::test
