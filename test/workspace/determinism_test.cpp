// A deterministic algorithm is named and no workspace is given, as queries answer where there is a
// total: the call runs, deterministic if any such kernel fits what it may use. On the simulator, as
// mostly on an H200, no backward filter is deterministic without workspace.
#include <algorithm>
#include <cstdint>

#include "network.hpp"

namespace ucudnn::test {
namespace {

constexpr int kDeterministic = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
constexpr int kOpen = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0;

class DeterminismTest : public TotalWorkspaceTest {
 protected:
  /// Asks as a client does, runs what was answered and checks the result.
  void expectRuns(const StreamHandle& on, cudnnHandle_t native, const ConvolutionCase& parameters) {
    Convolution convolution(parameters);
    convolution.fill();
    const auto expected = convolution.undivided(native, UCUDNN_BACKWARD_FILTER, kOpen, 1, 0);
    for (int i = 0; i < 3; ++i) {
      convolution.output(UCUDNN_BACKWARD_FILTER).poison();
      expectRun(on.handle(), convolution);
      ASSERT_CUDA(cudaStreamSynchronize(on.stream()));
      expectEqual(convolution, *expected);
    }
  }
  static void expectRun(UcudnnHandle_t handle, Convolution& convolution) {
    std::size_t bytes = 1;
    ASSERT_CUDNN(convolution.workspaceSize(handle, UCUDNN_BACKWARD_FILTER, kDeterministic, &bytes));
    ASSERT_EQ(0U, bytes);
    ASSERT_CUDNN(convolution.run(handle, UCUDNN_BACKWARD_FILTER, kDeterministic, {}));
  }
  static void expectEqual(Convolution& convolution, const std::vector<char>& expected) {
    EXPECT_LE(distance(convolution.geometry(UCUDNN_BACKWARD_FILTER),
                       convolution.output(UCUDNN_BACKWARD_FILTER).read(),
                       expected),
              toleranceBetweenAlgorithms());
  }
  /// Warnings about a share of the total that the user has set, and about a client's own workspace.
  std::size_t warnings() const {
    return logged({"[warn", "it is not deterministic"}).size() +
           logged({"[info", "so it is not deterministic"}).size();
  }
};

TEST_F(DeterminismTest, WhateverTheTotalTheCallRuns) {
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    for (const std::size_t total : {std::size_t{100}, std::size_t{512}, std::size_t{4096}}) {
      SCOPED_TRACE(total);
      setTotal(total, policy);
      const Handles handles;
      const StreamHandle stream;
      const std::size_t before = warnings();
      expectRuns(stream, handles.native, layerCase(3));
      // cuDNN has deterministic kernels on a GPU that need no workspace.
      if (onSimulator())
        EXPECT_EQ(before + 1, warnings()) << "one for a convolution";
      else
        EXPECT_GE(before + 1, warnings()) << "one for a convolution";
    }
    setTotal(std::size_t{32} << 20, policy);
    const Handles handles;
    const StreamHandle stream;
    const std::size_t before = warnings();
    expectRuns(stream, handles.native, layerCase(3));
    EXPECT_EQ(before, warnings());
  }
}

TEST_F(DeterminismTest, WhereOthersHaveDividedTheTotalTheLargestSegmentIsUsedInTurn) {
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    setTotal(2 * wantedBytes(0), policy);
    const Handles handles;
    const StreamHandle streams[4];
    Network network({0, 1, 0}, Network::Ids::kOwn);
    network.prepare();
    for (int i = 0; i < 3; ++i) {
      network.iterate(streams[i].handle());
      ASSERT_CUDA(cudaDeviceSynchronize());
    }
    const std::size_t before = warnings();
    for (const StreamHandle& stream : streams) expectRuns(stream, handles.native, layerCase(2));
    EXPECT_EQ(before, warnings());
    ASSERT_CUDA(cudaDeviceSynchronize());
    network.expectRight(handles.native);
  }
}

// Where nothing else is allowed, such a convolution keeps its caller's workspace, and its limit.
TEST_F(DeterminismTest, AllowedAloneItKeepsTheLimitOfItsCaller) {
  setTotal(std::size_t{32} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeterministic(true));
  Convolution convolution(layerCase(3));
  convolution.fill();
  const auto expected = convolution.undivided(handles.native, UCUDNN_BACKWARD_FILTER, kOpen, 1, 0);
  std::size_t limit = SIZE_MAX;  // the least that any needs
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT; ++algorithm) {
    std::size_t bytes = 0;
    if (algorithm != kOpen && algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 &&
        convolution.workspaceSize(handles.native, UCUDNN_BACKWARD_FILTER, algorithm, &bytes) ==
            CUDNN_STATUS_SUCCESS)
      limit = std::min(limit, bytes);
  }
  if (limit == 0) GTEST_SKIP() << "one needs none";
  limit = (limit + 511) / 512 * 512;
  int named = -1;
  constexpr int kSpecifyLimit = 2;
  ASSERT_CUDNN(convolution.queryPreferred(
      handles.ours, UCUDNN_BACKWARD_FILTER, kSpecifyLimit, limit, &named));
  const DeviceBuffer workspace(limit);
  int larger = 0;
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT; ++algorithm) {
    std::size_t native = 0, bytes = 0;
    if (convolution.workspaceSize(handles.native, UCUDNN_BACKWARD_FILTER, algorithm, &native) !=
        CUDNN_STATUS_SUCCESS)
      continue;
    SCOPED_TRACE(algorithm);
    larger += native > limit ? 1 : 0;
    ASSERT_CUDNN(
        convolution.workspaceSize(handles.ours, UCUDNN_BACKWARD_FILTER, algorithm, &bytes));
    ASSERT_LE(bytes, limit);
    EXPECT_EQ(std::min(native, limit), bytes);
    if (algorithm == kOpen || algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3) continue;
    convolution.output(UCUDNN_BACKWARD_FILTER).poison();
    ASSERT_CUDNN(
        convolution.run(handles.ours, UCUDNN_BACKWARD_FILTER, algorithm, {workspace.get(), bytes}));
    expectEqual(convolution, *expected);
  }
  EXPECT_LT(0, larger) << "no algorithm was to be kept within the limit";
}

TEST_F(DeterminismTest, AlsoBesideAndAfterACapture) {
  for (const std::size_t total : {std::size_t{512}, std::size_t{32} << 20}) {
    SCOPED_TRACE(total);
    setTotal(total, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
    const Handles handles;
    const StreamHandle stream;
    // Nothing is known of it when it is captured.
    Convolution convolution(fftCase(total == 512 ? 61 : 62));
    convolution.fill();
    const auto expected =
        convolution.undivided(handles.native, UCUDNN_BACKWARD_FILTER, kOpen, 1, 0);
    convolution.output(UCUDNN_BACKWARD_FILTER).poison();
    const std::size_t before = warnings();
    ASSERT_CUDA(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeGlobal));
    expectRun(stream.handle(), convolution);
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream.stream(), &graph));
    // cuDNN may have a deterministic kernel on a GPU that needs no workspace.
    if (onSimulator() || total != 512)
      EXPECT_EQ(total == 512 ? 1U : 0U, warnings() - before);
    else
      EXPECT_GE(1U, warnings() - before);
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream.stream()));
    ASSERT_CUDA(cudaStreamSynchronize(stream.stream()));
    expectEqual(convolution, *expected);
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroy(graph));
    expectRuns(stream, handles.native, layerCase(1));
    ASSERT_CUDNN(stream.handle().releaseGraphs());
    setTotal(0, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  }
}

}  // namespace
}  // namespace ucudnn::test
