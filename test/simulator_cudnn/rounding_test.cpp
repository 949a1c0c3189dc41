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

}  // namespace
}  // namespace ucudnn::simulator::test
