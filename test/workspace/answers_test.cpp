// The answers to queries when μ-cuDNN owns the workspace.
#include <algorithm>

#include "network.hpp"

namespace ucudnn::test {
namespace {

class AnswersTest : public TotalWorkspaceTest {};

TEST_F(AnswersTest, QueriesNameAnAlgorithmWithoutWorkspaceAndMeasureNothing) {
  const EnvironmentGuard noDatabase("UCUDNN_DATABASE", "");
  setTotal(std::size_t{32} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_AUTO);
  const Handles handles;
  Convolution convolution(fftCase(50));  // of no other test: nothing is known of it
  const DeviceBuffer memory(1 << 20);
  const auto before = statistics();
  for (const ucudnnOperation_t operation : kOperations)
    for (const Query how : kQueries) {
      SCOPED_TRACE(toText(operation));
      std::vector<Performance> results;
      ASSERT_CUDNN(convolution.query(
          handles.ours, operation, how, 8, &results, {memory.get(), memory.bytes()}));
      ASSERT_FALSE(results.empty());
      EXPECT_EQ(0U, results[0].memory);
      for (const Performance& result : results) {
        EXPECT_EQ(CUDNN_STATUS_SUCCESS, result.status);
        EXPECT_EQ(CUDNN_FMA_MATH, result.mathType);
        std::size_t native = 1;
        ASSERT_CUDNN(
            convolution.workspaceSize(handles.native, operation, result.algorithm, &native));
        EXPECT_EQ(native, result.memory) << "not valid by itself";
        std::size_t ours = 1;
        ASSERT_CUDNN(convolution.workspaceSize(handles.ours, operation, result.algorithm, &ours));
        // Without an activation bias_activation_forward has this algorithm only.
        const bool mayBeFused =
            operation == UCUDNN_FORWARD &&
            result.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
        EXPECT_EQ(mayBeFused ? native : 0U, ours);
      }
    }
  EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
  EXPECT_EQ(before.plans, statistics().plans);
}

TEST_F(AnswersTest, WhatIsLoggedMovesNoMeasuring) {
  const EnvironmentGuard noDatabase("UCUDNN_DATABASE", "");
  setTotal(std::size_t{32} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  setArithmetic(Arithmetic::kOff);
  Convolution first(fftCase(51));  // of no other test: nothing is known of them
  Convolution second(fftCase(52));
  for (Convolution* const convolution : {&first, &second}) {
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution->query(handles.ours, UCUDNN_FORWARD, Query::kGet, 1, &results));
  }
  long long measured = statistics().kernelsMeasured;
  for (Convolution* const convolution : {&first, &second})
    for (const bool again : {false, true}) {
      ASSERT_CUDNN(convolution->run(handles.ours, UCUDNN_FORWARD, 0, {}));
      EXPECT_EQ(again, measured == statistics().kernelsMeasured) << "by the other's first call";
      measured = statistics().kernelsMeasured;
    }
  EXPECT_EQ(2U, logged({"% of the total"}).size());
}

TEST_F(AnswersTest, ADeterministicHandleIsNamedDeterministicAlgorithms) {
  setTotal(std::size_t{32} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setDeterministic(true));
  Convolution convolution(layerCase(0));
  for (const ucudnnOperation_t operation : kOperations) {
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 1, &results));
    if (results[0].memory == 0) {
      EXPECT_EQ(CUDNN_DETERMINISTIC, results[0].determinism) << toText(operation);
    }
  }
}

#ifdef UCUDNN_HAVE_DIVISION
TEST_F(AnswersTest, TheFirstCallDividesAmongAllThatWereAskedAbout) {
  setTotal(std::size_t{32} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
  const Handles handles;
  Network network({0, 1});
  for (std::size_t i = 0; i < network.size(); ++i)
    for (const ucudnnOperation_t operation : kOperations) {
      std::vector<Performance> results;
      ASSERT_CUDNN(
          network.layer(i).convolution().query(handles.ours, operation, Query::kGet, 1, &results));
    }
  network.prepare();
  network.iterate(handles.ours);
  network.expectRight(handles.native);
  EXPECT_EQ(1U, layouts("6 convolutions divide it"));
  EXPECT_EQ(1U, layouts("divide it"));
  EXPECT_EQ(6U, logged({"% of the total"}).size());
}
#endif

#ifndef UCUDNN_HAVE_DIVISION
TEST_F(AnswersTest, DivideIsRefusedWhereItIsLeftOut) {
  setTotal(1 << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_DIVIDE);
  UcudnnHandle_t handle;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnCreate(&handle));
  EXPECT_EQ(1U, logged({"UCUDNN_TOTAL_WORKSPACE_POLICY", "-DUCUDNN_DIVIDE=ON"}).size());
}
#endif

TEST_F(AnswersTest, SettersChangeTheTotalAndThePolicy) {
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setTotalWorkspaceSize(std::size_t{16} << 20));
  EXPECT_CUDNN(handles.ours.setTotalWorkspacePolicy(UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE));
  EXPECT_EQ(
      CUDNN_STATUS_BAD_PARAM,
      ucudnnSetTotalWorkspacePolicy(handles.ours, static_cast<ucudnnTotalWorkspacePolicy_t>(3)));
  Network network({0});
  network.prepare();
  network.iterate(handles.ours);
  network.expectRight(handles.native);
  EXPECT_EQ(1U, layouts("16 MiB of workspace: one arena"));
  const std::size_t owned = liveBytes();
  ASSERT_CUDNN(handles.ours.setTotalWorkspaceSize(0));
  if (onSimulator()) {
    EXPECT_LE(liveBytes() + (std::size_t{16} << 20), owned) << "kept";
  }
  network.prepare();
  network.iterate(handles.ours);
  network.expectRight(handles.native);
}

// As on a handle that comes to a device where the total can't be had.
TEST_F(AnswersTest, ALimitNamedUnderATotalHoldsWithoutIt) {
  setTotal(std::size_t{16} << 20, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  Convolution convolution(layerCase(0));
  constexpr int kNoWorkspace = 0;  // preferences of the removed queries
  constexpr int kPreferFastest = 1;
  for (const ucudnnOperation_t operation : kOperations)
    for (const int preference : {kNoWorkspace, kPreferFastest}) {
      SCOPED_TRACE(std::string(toText(operation)) + ", preference " + std::to_string(preference));
      const Handles handles;
      int algorithm = -1;
      ASSERT_CUDNN(
          convolution.queryPreferred(handles.ours, operation, kNoWorkspace, 0, &algorithm));
      ASSERT_CUDNN(convolution.queryPreferred(handles.ours, operation, preference, 0, &algorithm));
      ASSERT_CUDNN(handles.ours.setTotalWorkspaceSize(0));
      // The one that was named needs nothing; others are kept within a named limit.
      std::size_t most = 0;
      for (algorithm = 0; algorithm < 8; ++algorithm) {  // cuDNN has at most 8 of an operation
        // Without an activation bias_activation_forward has this algorithm only.
        const bool mayBeFused = operation == UCUDNN_FORWARD &&
                                algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
        std::size_t bytes = 0;
        if (!mayBeFused && convolution.workspaceSize(handles.ours, operation, algorithm, &bytes) ==
                               CUDNN_STATUS_SUCCESS)
          most = std::max(most, bytes);
      }
      if (preference == kNoWorkspace)
        EXPECT_EQ(0U, most);
      else
        EXPECT_LT(0U, most) << "the limit was named no more";
    }
}

}  // namespace
}  // namespace ucudnn::test
