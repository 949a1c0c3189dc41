// UCUDNN_SIMULATOR_MEASURING_COST: the host's virtual time.
#include <functional>
#include <thread>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

constexpr double kToleranceMs = 1e-6;

class SimulatedHostCostTest : public testing::Test {
 protected:
  SimulatedHostCostTest() {
    setArithmetic(Arithmetic::kOff);
    setMeasuringCost(true);
  }
  ~SimulatedHostCostTest() override {
    setMeasuringCost(false);
    setArithmetic(Arithmetic::kFull);
  }

  static double costOf(const std::function<void()>& call) {
    const double before = hostClockMs();
    call();
    return hostClockMs() - before;
  }
};

TEST_F(SimulatedHostCostTest, AllocatingTakesLongerTheLargerItIs) {
  void* small = nullptr;
  void* large = nullptr;
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaMalloc(&small, 512)); }), 0.3, 1e-3);
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaMalloc(&large, std::size_t{2} << 30)); }), 1.3, 1e-3);
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaFree(small)); }), 0.3, 1e-3);
  EXPECT_CUDA(cudaFree(large));
}

TEST_F(SimulatedHostCostTest, FreeingWaitsForTheDevice) {
  constexpr std::size_t kBytes = 4'800'000'000;  // written in 1 ms
  const DeviceBuffer busy(kBytes);
  const ScopedStream stream;
  void* pointer = nullptr;
  EXPECT_CUDA(cudaMalloc(&pointer, 512));
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaMemsetAsync(busy.get(), 0, kBytes, stream));
  const double cost = costOf([&] { EXPECT_CUDA(cudaFree(pointer)); });
  EXPECT_GE(hostClockMs(), clockMs(stream));
  EXPECT_NEAR(cost, 1.0, 0.01);  // its own 0.3 ms pass while the device works
}

TEST_F(SimulatedHostCostTest, EnqueueingTakesMicrosecondsAndWaitingTheDevicesTime) {
  constexpr std::size_t kBytes = 48'000'000;  // 0.0125 ms, see time_test.cpp
  const DeviceBuffer buffer(kBytes);
  const ScopedStream stream;
  const ScopedEvent event;
  const auto fill = [&] { EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, kBytes, stream)); };
  EXPECT_NEAR(costOf(fill), 0.002, kToleranceMs);
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaEventRecord(event, stream)); }), 0.002, kToleranceMs);
  const double end = clockMs(stream);
  EXPECT_CUDA(cudaEventSynchronize(event));
  EXPECT_NEAR(hostClockMs(), end, kToleranceMs);
}

// A short work takes 2.5 us of the device; when the host takes 12, the device waits for it.
TEST_F(SimulatedHostCostTest, ShortWorksWaitForTheHost) {
  const DeviceBuffer buffer(512);
  const ScopedStream stream;
  const double before = hostClockMs();
  for (int i = 0; i < 1000; ++i) {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_CUDA(cudaMemGetInfo(&free, &total));
    EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 512, stream));
  }
  EXPECT_NEAR(hostClockMs() - before, 1000 * 0.012, kToleranceMs);
  EXPECT_NEAR(clockMs(stream) - hostClockMs(), 0.0025, 1e-4);
}

// Microseconds, as on an H200: 30 + 2.5 a kernel, 10 + 1 for the first launch, 3 for each later
// one, 10 + 1 to destroy; each launch takes 1.1 more for each memset, which these are. Nothing
// waits for the device.
TEST_F(SimulatedHostCostTest, AGraphCostsByItsKernels) {
  constexpr std::size_t kBytes = 4'800'000'000;  // written in 1 ms
  const DeviceBuffer busy(kBytes);
  const ScopedStream stream;
  for (const int kernels : {1, 8, 100}) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) {
      EXPECT_CUDA(cudaMemsetAsync(busy.get(), 0, kBytes, stream));
    }
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = nullptr;
    EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0)); }),
                0.030 + 0.0025 * kernels,
                kToleranceMs);
    const auto launch = [&] { EXPECT_CUDA(cudaGraphLaunch(exec, stream)); };
    EXPECT_NEAR(costOf(launch), 0.010 + 0.0021 * kernels, kToleranceMs);
    EXPECT_NEAR(costOf(launch), 0.003 + 0.0011 * kernels, kToleranceMs);
    EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaGraphExecDestroy(exec)); }),
                0.010 + 0.001 * kernels,
                kToleranceMs);
    EXPECT_GT(clockMs(stream), hostClockMs());  // still under way
    EXPECT_CUDA(cudaGraphDestroy(graph));
  }
}

TEST_F(SimulatedHostCostTest, AnUploadedGraphIsLaunchedAsQuicklyAsLater) {
  const DeviceBuffer buffer(16);
  const ScopedStream stream;
  const CapturedGraph graph(stream,
                            [&] { EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, stream)); });
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaGraphUpload(graph.exec(), stream)); }), 0.011, 1e-6);
  EXPECT_NEAR(costOf([&] { EXPECT_CUDA(cudaGraphLaunch(graph.exec(), stream)); }), 0.0041, 1e-6);
}

TEST_F(SimulatedHostCostTest, EachThreadHasItsOwnClock) {
  const double mine = hostClockMs();
  std::thread([] {
    EXPECT_EQ(hostClockMs(), 0);
    const DeviceBuffer buffer(512);
    EXPECT_NEAR(hostClockMs(), 0.3, 1e-3);
  }).join();
  EXPECT_EQ(hostClockMs(), mine);
}

TEST_F(SimulatedHostCostTest, NothingCostsAnythingWhileItIsOff) {
  setMeasuringCost(false);
  EXPECT_EQ(costOf([] {
              const DeviceBuffer buffer(512);
              const ScopedStream stream;
              int device = 0;
              EXPECT_CUDA(cudaGetDevice(&device));
            }),
            0);
}

}  // namespace
}  // namespace ucudnn::test
