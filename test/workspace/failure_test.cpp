// Behaviour when memory or kernels are missing.
#include "../library/fused.hpp"
#include "network.hpp"

namespace ucudnn::test {
namespace {

class FailureTest : public TotalWorkspaceTest {};

// No device has as much.
constexpr std::size_t kTooMuch = std::size_t{1} << 50;

TEST_F(FailureTest, AnArenaThatCannotBeAllocatedLeavesEachItsCallersWorkspace) {
  setTotal(kTooMuch, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  const Handles handles;
  Convolution convolution(layerCase(0));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 8, &results));
    EXPECT_LT(0U, results[0].memory) << "the caller was not asked for workspace";
    std::size_t bytes = 0;
    ASSERT_CUDNN(convolution.workspaceSize(handles.ours, operation, results[0].algorithm, &bytes));
    EXPECT_EQ(results[0].memory, bytes);
    const DeviceBuffer workspace(bytes);
    convolution.fill();
    const auto expected = convolution.undivided(handles.native, operation, 0, 1, 0);
    const long long split = statistics().splitCalls;
    ASSERT_CUDNN(
        convolution.run(handles.ours, operation, results[0].algorithm, {workspace.get(), bytes}));
    EXPECT_EQ(split + 1, statistics().splitCalls);
    EXPECT_LE(
        distance(convolution.geometry(operation), convolution.output(operation).read(), *expected),
        toleranceBetweenAlgorithms());
  }
  EXPECT_EQ(1U, logged({"[warn", "can't be allocated"}).size());
}

TEST_F(FailureTest, ACallWithNoQueryBeforeFindsOutAndRuns) {
  setTotal(kTooMuch + 512, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  const Handles handles;
  Network network({0, 1});
  network.prepare();
  network.iterate(handles.ours);
  network.expectRight(handles.native);
  EXPECT_EQ(1U, logged({"[warn", "can't be allocated"}).size());
}

// Nobody can ask about it before: it has its share of the total, or else the caller's workspace.
TEST_F(FailureTest, WhatNeedsWorkspaceInAnyCaseRuns) {
  setTotal(std::size_t{16} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  const Handles handles;
  // Without an activation cuDNN fuses the bias with IMPLICIT_PRECOMP_GEMM only.
  Convolution convolution(layerCase(0));
  convolution.fill();
  Fused fused(convolution, CUDNN_ACTIVATION_IDENTITY);
  constexpr int kPrecomp = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t bytes = 0;
  ASSERT_CUDNN(convolution.workspaceSize(handles.native, UCUDNN_FORWARD, kPrecomp, &bytes));
  if (bytes == 0) GTEST_SKIP() << "this cuDNN needs no workspace for it";
  const DeviceBuffer workspace(bytes);
  ASSERT_CUDNN(fused.run(handles.native, kPrecomp, {workspace.get(), bytes}, 1, 0, false));
  const auto expected = convolution.output(UCUDNN_FORWARD).read();
  for (const bool hasWorkspace : {true, false}) {
    const Workspace callers{hasWorkspace ? workspace.get() : nullptr, hasWorkspace ? bytes : 0};
    convolution.output(UCUDNN_FORWARD).poison();
    ASSERT_CUDNN(fused.run(handles.ours, kPrecomp, callers, 1, 0, false));
    EXPECT_LE(distance(convolution.geometry(UCUDNN_FORWARD),
                       convolution.output(UCUDNN_FORWARD).read(),
                       expected),
              toleranceBetweenAlgorithms());
  }
}

TEST_F(FailureTest, AnyOneCallOfCudaMayFail) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU's calls cannot be made to fail";
  int n = 1;
  for (bool failed = true; failed; ++n) {
    for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
      SCOPED_TRACE(std::string(toText(policy)) + ", call " + std::to_string(n));
      setTotal(3 * wantedBytes(0) + 512 * static_cast<std::size_t>(policy), policy);
      const Handles handles;
      Layer layer(layerCase(0), UCUDNN_LAYER_ANY);
      layer.prepare(0);
      failCall(n);
      const cudnnStatus_t status = layer.run(handles.ours, UCUDNN_FORWARD);
      const std::int64_t calls = callCount(nullptr);
      failed = n <= 60 && calls > 0;
      failCall(0);
      if (status != CUDNN_STATUS_SUCCESS) continue;  // cuDNN's own call failed: the caller is told
      layer.expectRight(handles.native, UCUDNN_FORWARD);
      ASSERT_CUDNN(layer.run(handles.ours, UCUDNN_FORWARD));
      layer.expectRight(handles.native, UCUDNN_FORWARD);
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
