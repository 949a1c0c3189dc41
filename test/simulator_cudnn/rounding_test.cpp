// UCUDNN_SIMULATOR_ROUNDING.
#include <cmath>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

class RoundingTest : public testing::Test {
 protected:
  RoundingTest() { ucudnnSimulatorSetRounding(1); }
  ~RoundingTest() override { ucudnnSimulatorSetRounding(0); }
};

ConvolutionCase layer(int filter, cudnnMathType_t math) {
  ConvolutionCase convolution;
  convolution.batch = 4;
  convolution.channels = 16;
  convolution.filters = 16;
  convolution.input = {14, 14};
  convolution.filter = {filter, filter};
  convolution.pad = {filter / 2, filter / 2};
  convolution.math = math;
  return convolution;
}

/// Normalized L2 distance to what the test computes itself, which is exact.
double errorOf(const ConvolutionCase& parameters, Operation operation, int algorithm) {
  Convolution convolution(parameters);
  EXPECT_CUDNN(convolution.run(operation, algorithm));
  const std::vector<char> result = convolution.output(operation).read();
  const std::vector<char> exact = convolution.expected(operation);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); i += bytesOf(parameters.type)) {
    const double expected = toDouble(parameters.type, exact.data() + i);
    difference += std::pow(toDouble(parameters.type, result.data() + i) - expected, 2);
    norm += expected * expected;
  }
  return std::sqrt(difference / norm);
}

TEST_F(RoundingTest, EachAlgorithmHasAnErrorOfItsOwn) {
  const struct {
    const char* what;
    int filter;
    cudnnMathType_t math;
    int algorithm;
    double error;
  } cases[] = {
      {"FMA", 5, CUDNN_FMA_MATH, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 2e-7},
      {"TF32", 5, CUDNN_DEFAULT_MATH, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 3e-4},
      {"no TF32", 5, CUDNN_DEFAULT_MATH, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, 1e-6},
      {"Winograd 3x3", 3, CUDNN_FMA_MATH, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 1e-5},
      {"Winograd 5x5", 5, CUDNN_FMA_MATH, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 1e-3},
  };
  for (const auto& c : cases)
    EXPECT_NEAR(
        c.error, errorOf(layer(c.filter, c.math), Operation::kForward, c.algorithm), 0.1 * c.error)
        << c.what;
  ConvolutionCase exact = layer(5, CUDNN_DEFAULT_MATH);
  exact.type = exact.computeType = CUDNN_DATA_DOUBLE;
  EXPECT_EQ(0,
            errorOf(exact, Operation::kForward, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM));
}

TEST_F(RoundingTest, GrowsWithTheSamplesThatAFilterGradientAddsUp) {
  ConvolutionCase small = layer(3, CUDNN_FMA_MATH);
  ConvolutionCase large = small;
  small.batch = 4;
  large.batch = 64;
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT;
  EXPECT_NEAR(2e-6, errorOf(small, Operation::kBackwardFilter, kAlgorithm), 2e-7);
  EXPECT_NEAR(8e-6, errorOf(large, Operation::kBackwardFilter, kAlgorithm), 8e-7);
}

TEST_F(RoundingTest, IsTheSameHoweverTheBatchIsSplit) {
  const ConvolutionCase parameters = layer(5, CUDNN_FMA_MATH);
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
  Convolution whole(parameters), split(parameters);
  EXPECT_CUDNN(whole.run(Operation::kForward, kAlgorithm));
  for (const int first : {0, 1})
    EXPECT_CUDNN(split.run(Operation::kForward, kAlgorithm, first, first == 0 ? 1 : 3, 0));
  EXPECT_EQ(whole.y().read(), split.y().read());
}

class KernelBitsTest : public testing::Test {
 protected:
  KernelBitsTest() { ucudnnSimulatorSetRounding(static_cast<int>(Rounding::kKernels)); }
  ~KernelBitsTest() override { ucudnnSimulatorSetRounding(0); }

  static std::vector<char> run(const ConvolutionCase& parameters,
                               Operation operation,
                               int algorithm) {
    Convolution convolution(parameters);
    EXPECT_CUDNN(convolution.run(operation, algorithm));
    return convolution.output(operation).read();
  }
};

TEST_F(KernelBitsTest, TellWhichKernelHasRun) {
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE}) {
    ConvolutionCase parameters = layer(3, CUDNN_FMA_MATH);
    parameters.type = type;
    if (type == CUDNN_DATA_DOUBLE) parameters.computeType = type;
    constexpr int kImplicit = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    constexpr int kPrecomputed = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    const auto first = run(parameters, Operation::kForward, kImplicit);
    EXPECT_EQ(first, run(parameters, Operation::kForward, kImplicit)) << type;
    EXPECT_NE(first, run(parameters, Operation::kForward, kPrecomputed)) << type;
  }
  EXPECT_GT(5e-7, errorOf(layer(3, CUDNN_FMA_MATH), Operation::kForward, 0));
}

TEST_F(KernelBitsTest, TellTheBatchSizes) {
  const ConvolutionCase parameters = layer(3, CUDNN_FMA_MATH);
  Convolution whole(parameters), split(parameters);
  EXPECT_CUDNN(whole.run(Operation::kForward, 0));
  for (const int first : {0, 1})
    EXPECT_CUDNN(split.run(Operation::kForward, 0, first, first == 0 ? 1 : 3, 0));
  EXPECT_NE(whole.y().read(), split.y().read());
}

TEST_F(KernelBitsTest, OfAKernelThatIsNotDeterministicDifferFromRunToRun) {
  const ConvolutionCase parameters = layer(3, CUDNN_FMA_MATH);
  const auto twice = [&](int algorithm) {
    return run(parameters, Operation::kBackwardFilter, algorithm) ==
           run(parameters, Operation::kBackwardFilter, algorithm);
  };
  EXPECT_FALSE(twice(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0));
  EXPECT_TRUE(twice(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1));
}

}  // namespace
}  // namespace ucudnn::simulator::test
