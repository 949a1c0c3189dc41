// Calls that repeat in a workspace that μ-cuDNN owns.
#include <thread>

#include "network.hpp"

namespace ucudnn::test {
namespace {

class TotalReplayTest : public TotalWorkspaceTest,
                        public ::testing::WithParamInterface<ucudnnTotalWorkspacePolicy_t> {
 protected:
  void TearDown() override {
    EXPECT_EQ(0, statistics().graphs);
    EXPECT_EQ(0, statistics().graphBytes);
    EXPECT_EQ(0, liveHandles("graph") + liveHandles("graphExec"));
    TotalWorkspaceTest::TearDown();
  }

  /// Prepares, iterates, and checks each result. Returns the calls that were replayed.
  static long long iterate(Network& network, const StreamHandle& stream, double beta = 0) {
    const Handles handles;
    network.prepare(beta);
    const long long before = statistics().replayedCalls;
    network.iterate(stream.handle(), beta);
    const long long replayed = statistics().replayedCalls - before;
    network.expectRight(handles.native, beta);
    return replayed;
  }
};

TEST_P(TotalReplayTest, CallsAreReplayedOnceTheLayoutStands) {
  setTotal(3 * wantedBytes(0) + 512, GetParam());
  const StreamHandle stream;
  Network network({0, 1}, Network::Ids::kOwn);
  for (int i = 0; i < 8; ++i) iterate(network, stream);
  const long long splitBefore = statistics().splitCalls;
  const std::int64_t captures = callCount("cudaStreamBeginCapture");
  EXPECT_EQ(6, iterate(network, stream));
  EXPECT_EQ(splitBefore + 6, statistics().splitCalls);
  EXPECT_EQ(captures, callCount("cudaStreamBeginCapture"));
  for (int i = 0; i < 3; ++i) iterate(network, stream, 1);
  EXPECT_EQ(6, iterate(network, stream, 1));
}

TEST_P(TotalReplayTest, NewLayersChangeTheLayoutUnderGraphs) {
  setTotal(3 * wantedBytes(0) + 1024, GetParam());
  const StreamHandle stream;
  Network network({0, 1});
  for (int i = 0; i < 4; ++i) iterate(network, stream);
  std::vector<std::unique_ptr<Network>> late;
  for (const int kind : {2, 3, 2}) {
    late.push_back(std::make_unique<Network>(std::vector<int>{kind, 0}));
    for (int i = 0; i < 3; ++i) {
      iterate(*late.back(), stream);
      iterate(network, stream);
    }
  }
  for (int i = 0; i < 4; ++i) iterate(network, stream);
  EXPECT_EQ(6, iterate(network, stream));
}

TEST_P(TotalReplayTest, OwnedMemoryThatIsAllocatedAnewIsUsed) {
  for (int round = 0; round < 3; ++round) {
    setTotal((3 + static_cast<std::size_t>(round % 2)) * wantedBytes(0) + 1536, GetParam());
    const StreamHandle stream;
    Network network({0, 1});
    for (int i = 0; i < 6; ++i) iterate(network, stream);
    // The memory goes with the setting, and comes again.
    const std::size_t total = 3 * wantedBytes(0) + 2048;
    ASSERT_CUDNN(ucudnnSetTotalWorkspaceSize(stream.handle(), 0));
    EXPECT_EQ(0, statistics().graphs);
    for (int i = 0; i < 3; ++i) iterate(network, stream);
    ASSERT_CUDNN(ucudnnSetTotalWorkspaceSize(stream.handle(), total));
    for (int i = 0; i < 8; ++i) iterate(network, stream);
    EXPECT_EQ(6, iterate(network, stream));
  }
}

// Regions are ordered by events around the launches.
TEST_P(TotalReplayTest, StreamsThatShareRegionsReplaySideBySide) {
  setTotal(3 * wantedBytes(0) + 2560, GetParam());
  const Handles handles;
  const StreamHandle streams[2];
  Network networks[] = {Network({0, 1}), Network({0, 1})};
  for (Network& network : networks) network.prepare();
  const long long before = statistics().replayedCalls;
  for (int i = 0; i < 24; ++i) {
    // The second comes later: the layout changes under the first one's graphs.
    networks[0].iterate(streams[0].handle());
    if (i >= 8) networks[1].iterate(streams[1].handle());
  }
  EXPECT_LT(before, statistics().replayedCalls);
  for (Network& network : networks) network.expectRight(handles.native);
}

TEST_P(TotalReplayTest, CapturedIterationLeavesTheReplayedOnesAlone) {
  setTotal(3 * wantedBytes(0) + 3584, GetParam());
  const Handles handles;
  const StreamHandle stream;
  Network network({0, 1});
  for (int i = 0; i < 6; ++i) iterate(network, stream);
  const long long before = statistics().replayedCalls;
  ASSERT_CUDA(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeGlobal));
  network.iterate(stream.handle());
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream.stream(), &graph));
  EXPECT_EQ(before, statistics().replayedCalls);
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) {
    network.prepare();
    ASSERT_CUDA(cudaGraphLaunch(exec, stream.stream()));
    network.expectRight(handles.native);
    EXPECT_EQ(6, iterate(network, stream));
  }
  ASSERT_CUDA(cudaGraphExecDestroy(exec));
}

// The last one: behind threads nothing is captured for 10 s.
TEST_P(TotalReplayTest, ThreadsReplayInSharedRegions) {
  setTotal(3 * wantedBytes(0) + 3072, GetParam());
  const Handles handles;
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<StreamHandle>> streams;
  std::vector<std::unique_ptr<Network>> networks;
  for (int i = 0; i < kThreads; ++i) {
    streams.push_back(std::make_unique<StreamHandle>());
    networks.push_back(std::make_unique<Network>(std::vector<int>{i % 2, i % 3}));
    networks.back()->prepare();
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int iteration = 0; iteration < 30; ++iteration)
        networks[i]->iterate(streams[i]->handle());
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& network : networks) network->expectRight(handles.native);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         TotalReplayTest,
                         ::testing::ValuesIn(policies()),
                         [](const auto& test) { return std::string(toText(test.param)); });

}  // namespace
}  // namespace ucudnn::test
