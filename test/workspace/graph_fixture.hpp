// Captures of a network in CUDA graphs.
#pragma once

#include <utility>

#include "network.hpp"

namespace ucudnn::test {

class GraphTest : public TotalWorkspaceTest {
 protected:
  /// Captures what `work` enqueues on `stream`.
  template <typename Work>
  void captureWork(cudaStream_t stream, Work work) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    ASSERT_NE(nullptr, graph);
    ASSERT_CUDA(cudaGraphInstantiateWithFlags(&exec_, graph, 0));
    ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  /// Captures an iteration of `network` on `stream`.
  void capture(const StreamHandle& stream, Network& network) {
    captureWork(stream.stream(), [&] { network.iterate(stream.handle()); });
  }
  void launch(cudaStream_t stream) { ASSERT_CUDA(cudaGraphLaunch(exec_, stream)); }
  void destroyGraph() {
    if (exec_ != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    }
    exec_ = nullptr;
  }
  /// It is the caller's to destroy.
  cudaGraphExec_t keepGraph() { return std::exchange(exec_, nullptr); }
  void TearDown() override {
    destroyGraph();
    TotalWorkspaceTest::TearDown();
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

#ifdef UCUDNN_HAVE_DIVISION
constexpr ucudnnTotalWorkspacePolicy_t kFirst = UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE;
#else
constexpr ucudnnTotalWorkspacePolicy_t kFirst = UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE;
#endif

}  // namespace ucudnn::test
