// Graphs: their time, order and memory, and captures beside other work. What a GPU does was
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

// What a library does that captures for itself, beside clients that know nothing of it.
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

}  // namespace
}  // namespace ucudnn::test
