// Capture in CUDA graphs.
#include "network.hpp"

namespace ucudnn::test {
namespace {

class GraphTest : public TotalWorkspaceTest {
 protected:
  /// Captures an iteration of `network` on `stream`.
  void capture(const StreamHandle& stream, Network& network) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal));
    network.iterate(stream.handle());
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream.stream(), &graph));
    ASSERT_NE(nullptr, graph);
    ASSERT_CUDA(cudaGraphInstantiateWithFlags(&exec_, graph, 0));
    ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  void launch(const StreamHandle& stream) { ASSERT_CUDA(cudaGraphLaunch(exec_, stream.stream())); }
  void TearDown() override {
    if (exec_ != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    }
    TotalWorkspaceTest::TearDown();
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

#ifdef UCUDNN_HAVE_GLPK
constexpr ucudnnTotalWorkspacePolicy_t kFirst = UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE;
#else
constexpr ucudnnTotalWorkspacePolicy_t kFirst = UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE;
#endif

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
    launch(stream);
    network.expectRight(handles.native);
  }
  // What comes later leaves the captured workspace alone.
  const StreamHandle other;
  Network late({2, 0});
  late.prepare();
  network.prepare();
  for (int iteration = 0; iteration < 4; ++iteration) {
    launch(stream);
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
  launch(stream);
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
  launch(captured);
  beside.iterate(eager.handle());
  ASSERT_CUDA(cudaDeviceSynchronize());
  network.expectRight(handles.native);
  beside.expectRight(handles.native);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         GraphPolicyTest,
                         ::testing::ValuesIn(policies()),
                         [](const auto& test) { return std::string(toText(test.param)); });

TEST_F(GraphTest, CapturedMemoryOutlivesTheHandle) {
  setTotal(3 * wantedBytes(0) + 2048, kFirst);
  const Handles handles;
  Network network({0});
  network.prepare();
  const StreamHandle launching;
  {
    const StreamHandle stream;
    for (int iteration = 0; iteration < 3; ++iteration) network.iterate(stream.handle());
    ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
    ASSERT_NO_FATAL_FAILURE(capture(stream, network));
  }
  network.prepare();
  launch(launching);
  network.expectRight(handles.native);
}

}  // namespace
}  // namespace ucudnn::test
