// Several handles, streams and threads. The simulator checks that nothing races: it aborts.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "network.hpp"

namespace ucudnn::test {
namespace {

class StreamsTest : public TotalWorkspaceTest {};

TEST_F(StreamsTest, TheSameLayerOnSeveralStreamsNeverUsesASegmentAtTheSameTime) {
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    setTotal(3 * wantedBytes(0) + 512 * static_cast<std::size_t>(policy), policy);
    const Handles handles;
    const StreamHandle streams[3];
    Network groups[] = {Network({0, 0}), Network({0, 0}), Network({0, 0})};
    for (Network& group : groups) group.prepare();
    for (int iteration = 0; iteration < 4; ++iteration)
      for (int i = 0; i < 3; ++i) groups[i].iterate(streams[i].handle());
    for (Network& group : groups) group.expectRight(handles.native);
  }
}

TEST_F(StreamsTest, AStreamForEveryIterationDoesNotStarveTheOthers) {
  setTotal(4 * wantedBytes(0), UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  UcudnnHandle_t handle;
  ASSERT_CUDNN(cudnnCreate(&handle));
  Network network({0});
  network.prepare();
  long long split = 0;
  for (int i = 0; i < 40; ++i) {
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDNN(cudnnSetStream(handle, stream));
    split = statistics().splitCalls;
    network.iterate(handle);
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    ASSERT_CUDNN(cudnnSetStream(handle, nullptr));
    ASSERT_CUDA(cudaStreamDestroy(stream));
  }
  EXPECT_EQ(split + 3, statistics().splitCalls) << "nothing was left for the last";
  network.expectRight(handles.native);
  ASSERT_CUDNN(cudnnDestroy(handle));
}

TEST_F(StreamsTest, HostTimeDoesNotGrowWithTheStreamsSeen) {
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    setTotal(4 * wantedBytes(0) + 512 * static_cast<std::size_t>(policy), policy);
    const Handles handles;
    setArithmetic(Arithmetic::kOff);
    UcudnnHandle_t handle;
    ASSERT_CUDNN(cudnnCreate(&handle));
    Network network({0});
    // So many that what grows with them grows far beyond what a busy machine does to a median.
    constexpr int kStreams = 20000, kPart = 200;
    std::vector<double> microseconds;
    for (int i = 0; i < kStreams; ++i) {
      cudaStream_t stream = nullptr;
      ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      ASSERT_CUDNN(cudnnSetStream(handle, stream));
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_CUDNN(network.layer(0).run(handle, UCUDNN_FORWARD));
      microseconds.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count());
      ASSERT_CUDA(cudaStreamSynchronize(stream));
      ASSERT_CUDNN(cudnnSetStream(handle, nullptr));
      ASSERT_CUDA(cudaStreamDestroy(stream));
    }
    // Medians of 200: a busy machine slows single calls, and all of them less than ten times.
    const auto median = [&](auto begin) {
      std::nth_element(begin, begin + kPart / 2, begin + kPart);
      return *(begin + kPart / 2);
    };
    const double first = median(microseconds.begin() + kPart);
    EXPECT_LE(median(microseconds.end() - kPart), 10 * first);
    ASSERT_CUDNN(cudnnDestroy(handle));
  }
}

TEST_F(StreamsTest, TwoThreadsTrainTwoNetworks) {
  // A check takes memory while it lasts, as measuring does.
  const EnvironmentGuard unchecked("UCUDNN_CHECK_KERNELS", "0");
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    const std::size_t total = 3 * wantedBytes(0) + 1024 * static_cast<std::size_t>(policy);
    setTotal(total, policy);
    const Handles handles;
    const StreamHandle streams[2];
    Network networks[] = {Network({0, 1}, Network::Ids::kOwn), Network({1, 2})};
    for (Network& network : networks) network.prepare();
    const std::size_t before = liveBytes();
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        for (int iteration = 0; iteration < 6; ++iteration) {
          networks[i].iterate(streams[i].handle());
          if (liveBytes() > before + total) ++failures;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0, failures) << "above the total";
    for (Network& network : networks) network.expectRight(handles.native);
  }
}

}  // namespace
}  // namespace ucudnn::test
