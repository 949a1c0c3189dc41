// Capture in CUDA graphs.
#include <thread>

#include "graph_fixture.hpp"

namespace ucudnn::test {
namespace {

class GraphPolicyTest : public GraphTest,
                        public ::testing::WithParamInterface<ucudnnTotalWorkspacePolicy_t> {};

TEST_P(GraphPolicyTest, CapturedAfterTheFirstIterationRunsAsPlanned) {
  setTotal(3 * wantedBytes(0) + 512, GetParam());
  const Handles handles;
  const StreamHandle stream;
  Network network({0, 1}, Network::Ids::kOwn);
  network.prepare();
  for (int iteration = 0; iteration < 3; ++iteration) network.iterate(stream.handle());
  const long long split = statistics().splitCalls;
  network.iterate(stream.handle());
  const long long perIteration = statistics().splitCalls - split;
  EXPECT_LT(0, perIteration);
  ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
  ASSERT_NO_FATAL_FAILURE(capture(stream, network));
  EXPECT_EQ(split + 2 * perIteration, statistics().splitCalls);
  for (int i = 0; i < 2; ++i) {
    network.prepare();
    launch(stream.stream());
    network.expectRight(handles.native);
  }
  // Later work leaves the captured workspace alone.
  const StreamHandle other;
  Network late({2, 0});
  late.prepare();
  network.prepare();
  for (int iteration = 0; iteration < 4; ++iteration) {
    launch(stream.stream());
    late.iterate(other.handle());
  }
  ASSERT_CUDA(cudaDeviceSynchronize());
  late.expectRight(handles.native);
  network.expectRight(handles.native);
}

TEST_P(GraphPolicyTest, CapturedFirstRunsInWorkspaceOfItsOwn) {
  setTotal(3 * wantedBytes(0) + 1024, GetParam());
  const Handles handles;
  const StreamHandle stream;
  Network network({0});
  network.prepare();
  const std::size_t before = liveBytes();
  const std::size_t total = 3 * wantedBytes(0) + 1024;
  ASSERT_NO_FATAL_FAILURE(capture(stream, network));
  EXPECT_GE(before + total, liveBytes());
  launch(stream.stream());
  network.expectRight(handles.native);
  // And then as ever.
  network.prepare();
  network.iterate(stream.handle());
  network.expectRight(handles.native);
}

TEST_P(GraphPolicyTest, CapturedOnAnotherStreamThanItRanOnRunsAsPlanned) {
  setTotal(3 * wantedBytes(0) + 1536, GetParam());
  const Handles handles;
  const StreamHandle eager;
  const StreamHandle captured;
  Network network({0, 1});
  network.prepare();
  for (int iteration = 0; iteration < 3; ++iteration) network.iterate(eager.handle());
  const long long before = statistics().splitCalls;
  network.iterate(eager.handle());
  const long long perIteration = statistics().splitCalls - before;
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_NO_FATAL_FAILURE(capture(captured, network));
  EXPECT_EQ(before + 2 * perIteration, statistics().splitCalls);
  network.prepare();
  Network beside({0, 1});
  beside.prepare();
  launch(captured.stream());
  beside.iterate(eager.handle());
  ASSERT_CUDA(cudaDeviceSynchronize());
  network.expectRight(handles.native);
  beside.expectRight(handles.native);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         GraphPolicyTest,
                         ::testing::ValuesIn(policies()),
                         [](const auto& test) { return std::string(toText(test.param)); });

TEST_F(GraphTest, CapturedMemoryOutlivesTheHandlesOfItsNetwork) {
  setTotal(3 * wantedBytes(0) + 2048, kFirst);
  cudnnHandle_t native = nullptr;
  ASSERT_CUDNN(::cudnnCreate(&native));
  const std::size_t before = liveBytes();
  {
    UcudnnHandle_t other;  // without a total: of no network
    {
      const EnvironmentGuard noTotal("UCUDNN_TOTAL_WORKSPACE_SIZE", "0");
      ASSERT_CUDNN(cudnnCreate(&other));
    }
    Network network({0});
    network.prepare();
    const std::size_t withNetwork = liveBytes();
    {
      const StreamHandle stream;
      for (int iteration = 0; iteration < 3; ++iteration) network.iterate(stream.handle());
      ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
      ASSERT_NO_FATAL_FAILURE(capture(stream, network));
    }
    if (onSimulator()) {
      EXPECT_LT(withNetwork, liveBytes()) << "captured without workspace: this shows nothing";
    }
    network.prepare();
    launch(nullptr);
    network.expectRight(native);
    ASSERT_CUDNN(cudnnDestroy(other));
    if (onSimulator()) {
      EXPECT_EQ(withNetwork, liveBytes()) << "kept beyond the last handle";
    }
  }
  EXPECT_EQ(before, liveBytes());
  ASSERT_CUDNN(::cudnnDestroy(native));
}

TEST_F(GraphTest, CapturedMemoryIsGivenBackWhenTheClientSaysSo) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not say how much memory is in use";
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnReleaseGraphs(nullptr));
  const std::size_t total = 3 * wantedBytes(0) + 2560;
  setTotal(total, kFirst);
  const Handles handles;
  const StreamHandle stream;
  Network network({0});
  network.prepare();
  for (int iteration = 0; iteration < 3; ++iteration) network.iterate(stream.handle());
  ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
  const std::size_t before = liveBytes();
  for (int i = 0; i < 40; ++i) {
    ASSERT_NO_FATAL_FAILURE(capture(stream, network));
    EXPECT_LT(before, liveBytes());
    EXPECT_GE(before + total, liveBytes()) << "more than the network can use";
    network.prepare();
    launch(stream.stream());
    ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
    network.expectRight(handles.native);
    ASSERT_CUDNN(stream.handle().releaseGraphs());
    ASSERT_EQ(before, liveBytes());
    destroyGraph();
  }
}

TEST_F(GraphTest, EagerCallsAreAsFastBesideACaptureAndAfterItsGraph) {
  if (!onSimulator()) GTEST_SKIP() << "counts virtual time";
  setTotal(3 * wantedBytes(0) + 3584, kFirst);
  const Handles handles;
  const StreamHandle eager;
  Network network({0, 1});
  Network beside({0, 1});
  network.prepare();
  beside.prepare();
  const auto iterationMs = [&] {
    const double before = clockMs(eager.stream());
    network.iterate(eager.handle());
    EXPECT_CUDA(cudaStreamSynchronize(eager.stream()));
    return clockMs(eager.stream()) - before;
  };
  for (int iteration = 0; iteration < 4; ++iteration) network.iterate(eager.handle());
  const double before = iterationMs();
  {
    const StreamHandle captured;
    ASSERT_NO_FATAL_FAILURE(capture(captured, beside));
    for (int i = 0; i < 3; ++i) {
      launch(captured.stream());
      EXPECT_LE(iterationMs(), 1.1 * before);
    }
    ASSERT_CUDA(cudaDeviceSynchronize());
    beside.expectRight(handles.native);
    destroyGraph();
  }
  // Two iterations: what came anew has settled.
  iterationMs();
  iterationMs();
  EXPECT_LE(iterationMs(), 1.1 * before);
  network.expectRight(handles.native);
}

TEST_F(GraphTest, StreamsOfOneCaptureTakeTurns) {
  setTotal(3 * wantedBytes(0) + 4096, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  const StreamHandle streams[2];
  Network networks[] = {Network({0}), Network({0})};
  for (Network& network : networks) {
    network.prepare();
    network.iterate(streams[0].handle());
    network.iterate(streams[0].handle());
  }
  ASSERT_CUDA(cudaDeviceSynchronize());
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_CUDA(cudaEventCreate(&fork));
  ASSERT_CUDA(cudaEventCreate(&join));
  const long long split = statistics().splitCalls;
  const auto both = [&] {
    ASSERT_CUDA(cudaEventRecord(fork, streams[0].stream()));
    ASSERT_CUDA(cudaStreamWaitEvent(streams[1].stream(), fork, 0));
    networks[0].iterate(streams[0].handle());
    networks[1].iterate(streams[1].handle());
    ASSERT_CUDA(cudaEventRecord(join, streams[1].stream()));
    ASSERT_CUDA(cudaStreamWaitEvent(streams[0].stream(), join, 0));
  };
  ASSERT_NO_FATAL_FAILURE(captureWork(streams[0].stream(), both));
  EXPECT_EQ(split + 6, statistics().splitCalls);
  for (Network& network : networks) network.prepare();
  launch(streams[1].stream());
  for (Network& network : networks) network.expectRight(handles.native);
  ASSERT_CUDA(cudaEventDestroy(fork));
  ASSERT_CUDA(cudaEventDestroy(join));
}

// cudaStreamPerThread has one value and is another stream in each thread.
TEST_F(GraphTest, AThreadsOwnStreamIsNoOtherThreads) {
  setTotal(3 * wantedBytes(0) + 4608, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  Network eager({0});
  Network captured({0});
  eager.prepare();
  captured.prepare();
  const auto onOwnStream = [](auto work) {
    UcudnnHandle_t handle;
    ASSERT_CUDNN(cudnnCreate(&handle));
    ASSERT_CUDNN(cudnnSetStream(handle, cudaStreamPerThread));
    work(handle);
    ASSERT_CUDNN(cudnnDestroy(handle));
  };
  onOwnStream([&](UcudnnHandle_t handle) {
    for (int iteration = 0; iteration < 3; ++iteration) eager.iterate(handle);
    ASSERT_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    std::thread([&] {
      onOwnStream([&](UcudnnHandle_t theirs) {
        ASSERT_NO_FATAL_FAILURE(
            captureWork(cudaStreamPerThread, [&] { captured.iterate(theirs); }));
        captured.prepare();
        launch(cudaStreamPerThread);
      });
    }).join();
    eager.iterate(handle);  // a race if both have the same workspace
    ASSERT_CUDA(cudaDeviceSynchronize());
  });
  eager.expectRight(handles.native);
  captured.expectRight(handles.native);
}

}  // namespace
}  // namespace ucudnn::test
