// Several handles, streams and threads. That nothing races is the simulator's to find: it aborts.
#include <atomic>
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

#ifdef UCUDNN_HAVE_GLPK
TEST_F(StreamsTest, AutoTakesWhatIsPredictedToBeFasterForTheStreamsSeen) {
  const Handles handles;
  std::vector<ucudnnParetoPoint_t> front;
  ASSERT_CUDNN(Convolution(layerCase(0)).front(handles.ours, UCUDNN_FORWARD, &front));
  ASSERT_LT(0U, front.back().workspaceBytes);
  // One convolution on several streams: a segment of the total holds what a part of it does not.
  setTotal((front.back().workspaceBytes + 511) / 512 * 512, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  const StreamHandle streams[4];
  std::vector<std::unique_ptr<Layer>> layers;
  for (std::size_t i = 0; i < 4; ++i) {
    layers.push_back(std::make_unique<Layer>(layerCase(0), UCUDNN_LAYER_ANY));
    layers[i]->prepare(0);
    for (std::size_t j = 0; j <= i; ++j)
      ASSERT_CUDNN(layers[j]->run(streams[j].handle(), UCUDNN_FORWARD));
    EXPECT_EQ(1U, logged({"1 convolutions share"}).size());
    EXPECT_EQ(i == 0 ? 0U : 1U, logged({"1 convolutions divide"}).size());
  }
  ASSERT_CUDA(cudaDeviceSynchronize());
  for (const auto& layer : layers) layer->expectRight(handles.native, UCUDNN_FORWARD);
}
#endif

TEST_F(StreamsTest, EachNewStreamDividesTheArenasAnew) {
  const std::size_t total = 4 * wantedBytes(0);
  setTotal(total, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  const StreamHandle streams[4];
  std::vector<std::unique_ptr<Network>> networks;
  for (std::size_t i = 0; i < 4; ++i) {
    networks.push_back(std::make_unique<Network>(std::vector<int>{0}));
    networks[i]->prepare();
    for (std::size_t j = 0; j <= i; ++j) networks[j]->iterate(streams[j].handle());
    EXPECT_EQ(i + 1, layouts());
  }
  for (const auto& network : networks) network->expectRight(handles.native);
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

TEST_F(StreamsTest, TwoThreadsTrainTwoNetworks) {
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
