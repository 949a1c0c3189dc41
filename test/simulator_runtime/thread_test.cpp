#include <thread>
#include <vector>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

/// The measurements of one thread on its own stream: the times of a few fills.
std::vector<float> measure(char* target) {
  const ScopedStream stream;
  const ScopedEvent start;
  const ScopedEvent end;
  std::vector<float> times;
  for (std::size_t bytes = 1; bytes <= 512; ++bytes) {
    EXPECT_CUDA(cudaEventRecord(start, stream));
    EXPECT_CUDA(cudaMemsetAsync(target, 1, bytes, stream));
    EXPECT_CUDA(cudaMemsetAsync(target, 2, bytes, stream));
    EXPECT_CUDA(cudaEventRecord(end, stream));
    EXPECT_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    EXPECT_CUDA(cudaEventElapsedTime(&ms, start, end));
    times.push_back(ms);
  }
  return times;
}

TEST(SimulatedThreadTest, TimesDoNotDependOnOtherThreads) {
  const std::int64_t violations = violationCount();
  const DeviceBuffer buffer(4 * 512);
  const std::vector<float> alone = measure(buffer.get());
  std::vector<std::vector<float>> together(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < together.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = measure(buffer.get() + i * 512); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& times : together) EXPECT_EQ(times, alone);
  EXPECT_EQ(violationCount(), violations);
}

TEST(SimulatedThreadTest, EverythingMayBeUsedByAllThreads) {
  const std::int64_t handles = liveHandles();
  const ScopedStream shared;
  std::vector<std::thread> threads;
  int executed = 0;  // guarded by the stream's order
  const auto increment = [](void* count) { ++*static_cast<int*>(count); };
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const ScopedStream own;
        const ScopedEvent event;
        const DeviceBuffer buffer(1000);
        EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 1000, own));
        EXPECT_CUDA(cudaEventRecord(event, own));
        EXPECT_CUDA(cudaStreamWaitEvent(shared, event, 0));
        EXPECT_CUDA(cudaLaunchHostFunc(shared, increment, &executed));
        EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 1000, cudaStreamPerThread));
        EXPECT_CUDA(cudaDeviceSynchronize());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_CUDA(cudaStreamSynchronize(shared));
  EXPECT_EQ(executed, 200);
  EXPECT_EQ(liveHandles(), handles + 1);
}

TEST(SimulatedThreadTest, TheCurrentDeviceAndTheLastErrorBelongToTheThread) {
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  std::thread([] {
    int device = -1;
    EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  ASSERT_CUDA(cudaSetDevice(0));
}

}  // namespace
}  // namespace ucudnn::test
