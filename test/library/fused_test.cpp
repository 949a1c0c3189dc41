// cudnnConvolutionBiasActivationForward, split: z in place and apart, added or not, both
// activations.
#include "fused.hpp"

#include <algorithm>

#include "../support/simulator.hpp"
#include "child.hpp"

namespace ucudnn::test {
namespace {

std::vector<ConvolutionCase> fusedCases() {
  ConvolutionCase plain;
  plain.name = "Float";
  ConvolutionCase half = plain;
  half.name = "HalfNhwc";
  half.type = CUDNN_DATA_HALF;
  half.math = CUDNN_TENSOR_OP_MATH;
  half.format = CUDNN_TENSOR_NHWC;
  return {plain, half};
}

class FusedTest : public LibraryTest, public ::testing::WithParamInterface<ConvolutionCase> {};

TEST_P(FusedTest, SplitEqualsUndivided) {
  const ForcedSplits forced({GetParam()}, ForcedSplits::Operations::kFused);
  const Handles handles;
  Convolution convolution(GetParam());
  // The one algorithm that goes with both activations.
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t bytes = 0;
  ASSERT_CUDNN(convolution.workspaceSize(handles.native, UCUDNN_FORWARD, kAlgorithm, &bytes));
  const DeviceBuffer workspace(bytes);
  for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY})
    for (const double alpha2 : {0.0, 0.5})
      for (const bool inPlace : {false, true}) {
        SCOPED_TRACE("activation " + std::to_string(mode) + ", alpha2 " + std::to_string(alpha2) +
                     (inPlace ? ", z in place" : ", z apart"));
        Fused fused(convolution, mode);
        const auto result = [&](auto handle) {
          convolution.fill();
          if (alpha2 == 0 || !inPlace) convolution.y().poison();
          EXPECT_CUDNN(
              fused.run(handle, kAlgorithm, {workspace.get(), bytes}, 1.5, alpha2, inPlace));
          return convolution.y().read();
        };
        const auto expected = result(handles.native);
        const long long splitBefore = statistics().splitCalls;
        const auto split = result(handles.ours);
        EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
        EXPECT_LE(distance(convolution.geometry(UCUDNN_FORWARD), split, expected),
                  tolerance(GetParam()));
        if (onSimulator()) {
          EXPECT_TRUE(split == expected) << "not bit-equal";
        }
      }
  EXPECT_EQ(0, statistics().kernelsMeasured) << "the database was to answer everything";
}

// z cannot be cut in step with y.
TEST_P(FusedTest, ZOfAnotherLayoutIsLeftToCudnn) {
  const ForcedSplits forced({GetParam()}, ForcedSplits::Operations::kFused);
  const Handles handles;
  Convolution convolution(GetParam());
  Fused fused(convolution, CUDNN_ACTIVATION_RELU);
  fused.layOutZ(GetParam().format == CUDNN_TENSOR_NCHW ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t bytes = 0;
  ASSERT_CUDNN(convolution.workspaceSize(handles.native, UCUDNN_FORWARD, kAlgorithm, &bytes));
  const DeviceBuffer workspace(bytes);
  std::vector<char> result;
  const auto run = [&](auto handle) {
    convolution.y().poison();
    const cudnnStatus_t status =
        fused.run(handle, kAlgorithm, {workspace.get(), bytes}, 1.5, 0.5, false);
    result = convolution.y().read();
    return status;
  };
  const cudnnStatus_t status = run(handles.native);
  const std::vector<char> expected = result;
  const ucudnnStatistics_t before = statistics();
  EXPECT_EQ(status, run(handles.ours));
  EXPECT_EQ(before.splitCalls, statistics().splitCalls);
  EXPECT_EQ(before.bypassedCalls + 1, statistics().bypassedCalls);
  EXPECT_TRUE(result == expected);
}

// Without an activation there is only one algorithm; the workspace that GetWorkspaceSize names for
// it is enough.
TEST_P(FusedTest, NamedWorkspaceSufficesWithoutAnActivation) {
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  ConvolutionCase parameters = GetParam();
  parameters.math = CUDNN_DEFAULT_MATH;  // where the algorithm needs more workspace than others
  parameters.channels = 10;
  const Handles handles;
  Convolution convolution(parameters);
  for (const Query how : {Query::kGet, Query::kFind}) {
    SCOPED_TRACE("query " + std::to_string(static_cast<int>(how)));
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(handles.ours, UCUDNN_FORWARD, how, 1, &results));
    std::size_t bytes = 0;
    ASSERT_CUDNN(convolution.workspaceSize(handles.ours, UCUDNN_FORWARD, kAlgorithm, &bytes));
    std::size_t own = 0;
    ASSERT_CUDNN(convolution.workspaceSize(handles.native, UCUDNN_FORWARD, kAlgorithm, &own));
    EXPECT_LE(own, bytes);
    const DeviceBuffer workspace(bytes);
    Fused fused(convolution, CUDNN_ACTIVATION_IDENTITY);
    for (const double alpha2 : {0.0, 0.5}) {
      const auto result = [&](auto handle) {
        convolution.y().poison();
        EXPECT_CUDNN(fused.run(handle, kAlgorithm, {workspace.get(), bytes}, 1.5, alpha2, false));
        return convolution.y().read();
      };
      const auto expected = result(handles.native);
      EXPECT_LE(distance(convolution.geometry(UCUDNN_FORWARD), result(handles.ours), expected),
                std::max(tolerance(parameters), toleranceBetweenAlgorithms()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, FusedTest, ::testing::ValuesIn(fusedCases()), [](const auto& test) {
  return test.param.name;
});

}  // namespace
}  // namespace ucudnn::test
