// The three convolutions against sums written out in convolution_fixture.cpp.
#include <cmath>

#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

class ConvolutionTest : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(ConvolutionTest, EqualsItsDefinitionByEveryAlgorithm) {
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(GetParam());
    const std::vector<char> before = convolution.output(operation).read();
    const std::vector<char> expected = convolution.expected(operation);
    const std::vector<int> algorithms = convolution.algorithms(operation);
    ASSERT_FALSE(algorithms.empty());
    for (const int algorithm : algorithms) {
      SCOPED_TRACE(algorithm);
      convolution.output(operation).write(before);
      ASSERT_CUDNN(convolution.run(operation, algorithm));
      EXPECT_EQ(expected, convolution.output(operation).read());
    }
  }
}

// The fused call has no query of its own: clients give it what the forward convolution's names.
TEST_P(ConvolutionTest, FusedWithBiasItNeedsNoMoreThanTheForwardQueryNames) {
  const Convolution convolution(GetParam());
  const auto filters = static_cast<std::size_t>(GetParam().filters);
  const auto type = GetParam().type;
  std::vector<int> biasDims(GetParam().input.size() + 2, 1);
  biasDims[1] = GetParam().filters;
  cudnnTensorDescriptor_t biasDesc = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&biasDesc));
  ASSERT_CUDNN(cudnnCreateActivationDescriptor(&activation));
  ASSERT_CUDNN(cudnnSetTensorNdDescriptorEx(
      biasDesc, CUDNN_TENSOR_NCHW, type, static_cast<int>(biasDims.size()), biasDims.data()));
  const DeviceBuffer bias(filters * sizeof(double));
  const double wide = 1;
  const float narrow = 1;
  const double wideZero = 0;
  const float narrowZero = 0;
  const bool isDouble = type == CUDNN_DATA_DOUBLE;
  const auto run = [&](int algorithm, void* workspace, std::size_t bytes) {
    return cudnnConvolutionBiasActivationForward(
        convolution.handle(),
        isDouble ? static_cast<const void*>(&wide) : &narrow,
        convolution.xDesc(),
        convolution.x().get(),
        convolution.wDesc(),
        convolution.w().get(),
        convolution.convDesc(),
        static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
        workspace,
        bytes,
        isDouble ? static_cast<const void*>(&wideZero) : &narrowZero,
        convolution.yDesc(),
        convolution.y().get(),
        biasDesc,
        bias.get(),
        activation,
        convolution.yDesc(),
        convolution.y().get());
  };
  for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY}) {
    ASSERT_CUDNN(cudnnSetActivationDescriptor(activation, mode, CUDNN_NOT_PROPAGATE_NAN, 0));
    for (const int algorithm : convolution.algorithms(Operation::kForward)) {
      const bool precomputed = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
      if (mode == CUDNN_ACTIVATION_IDENTITY && !precomputed) continue;
      SCOPED_TRACE(testing::Message() << mode << ", algorithm " << algorithm);
      std::size_t bytes = 0;
      ASSERT_CUDNN(convolution.workspaceSize(Operation::kForward, algorithm, &bytes));
      const DeviceBuffer workspace(bytes);
      EXPECT_CUDNN(run(algorithm, workspace.get(), bytes));
    }
  }
  cudnnDestroyActivationDescriptor(activation);
  cudnnDestroyTensorDescriptor(biasDesc);
}

TEST_P(ConvolutionTest, SplitsBitForBit) {
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(GetParam());
    const std::vector<char> before = convolution.output(operation).read();
    const int algorithm = convolution.algorithms(operation).back();
    ASSERT_CUDNN(convolution.run(operation, algorithm));
    const std::vector<char> undivided = convolution.output(operation).read();
    convolution.output(operation).write(before);
    ASSERT_CUDNN(convolution.run(operation, algorithm, 0, 1, GetParam().beta));
    ASSERT_CUDNN(convolution.run(operation, algorithm, 1, 2, GetParam().beta));
    EXPECT_EQ(undivided, convolution.output(operation).read());
  }
}

TEST_P(ConvolutionTest, FilterGradientsOfPartsAddUp) {
  Convolution convolution(GetParam());
  const std::vector<char> expected = convolution.expected(Operation::kBackwardFilter);
  const int algorithm = convolution.algorithms(Operation::kBackwardFilter).front();
  ASSERT_CUDNN(convolution.run(Operation::kBackwardFilter, algorithm, 0, 2, GetParam().beta));
  ASSERT_CUDNN(convolution.run(Operation::kBackwardFilter, algorithm, 2, 1, 1));
  // 2^-7 is bfloat16's step; the types with more bits are exact here.
  const double step = GetParam().type == CUDNN_DATA_BFLOAT16 ? 1.0 / 128
                      : GetParam().type == CUDNN_DATA_HALF   ? 1.0 / 1024
                                                             : 0;
  const std::vector<char> actual = convolution.w().read();
  const Geometry& geometry = convolution.geometry(Operation::kBackwardFilter);
  const std::size_t size = geometry.bytes() / geometry.elements();
  for (std::size_t i = 0; i < geometry.elements(); ++i) {
    const double value = toDouble(geometry.type, expected.data() + i * size);
    // Each part is rounded by itself; parts of opposite sign are larger than their sum.
    const double tolerance = step * (std::abs(value) + 64);
    ASSERT_NEAR(value, toDouble(geometry.type, actual.data() + i * size), tolerance) << i;
  }
}

TEST_P(ConvolutionTest, DoesNotReadAnOutputThatBetaIgnores) {
  ConvolutionCase parameters = GetParam();
  parameters.beta = 0;
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    Convolution convolution(parameters);
    DeviceBuffer& output = convolution.output(operation);
    output.write(std::vector<char>(output.bytes(), '\xFF'));  // NaN in every type
    const std::vector<char> expected = convolution.expected(operation);
    ASSERT_CUDNN(convolution.run(operation, convolution.algorithms(operation).front()));
    EXPECT_EQ(expected, output.read());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         ConvolutionTest,
                         testing::ValuesIn(convolutionCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn::simulator::test
