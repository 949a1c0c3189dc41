// Activation, pooling, softmax and the fused convolution, checked by eye.
#include <cmath>
#include <functional>

#include "operations_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

TEST_F(OperationsTest, ActivationsAndTheirGradients) {
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  const struct {
    cudnnActivationMode_t mode;
    double coefficient;
    std::function<float(float)> expected;
  } cases[] = {
      {CUDNN_ACTIVATION_SIGMOID, 0, sigmoid},
      {CUDNN_ACTIVATION_RELU, 0, [](float x) { return x > 0 ? x : 0; }},
      {CUDNN_ACTIVATION_TANH, 0, [](float x) { return std::tanh(x); }},
      {CUDNN_ACTIVATION_CLIPPED_RELU, 1.5, [](float x) { return x < 0      ? 0
                                                                : x < 1.5F ? x
                                                                           : 1.5F; }},
      {CUDNN_ACTIVATION_ELU, 2, [](float x) { return x >= 0 ? x : 2 * (std::exp(x) - 1); }},
      {CUDNN_ACTIVATION_IDENTITY, 0, [](float x) { return x; }},
      {CUDNN_ACTIVATION_SWISH, 0, [&](float x) { return x * sigmoid(x); }},
  };
  const Values points{-2, -0.5F, 0.5F, 2};
  cudnnActivationDescriptor_t activation;
  ASSERT_CUDNN(cudnnCreateActivationDescriptor(&activation));
  const Tensor x({1, 1, 1, 4}, points);
  const Tensor dy({1, 1, 1, 4}, {1, 1, 1, 1});
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.mode);
    const Tensor y({1, 1, 1, 4}, {kNan, kNan, kNan, kNan});
    const Tensor dx({1, 1, 1, 4}, {kNan, kNan, kNan, kNan});
    ASSERT_CUDNN(cudnnSetActivationDescriptor(
        activation, expected.mode, CUDNN_NOT_PROPAGATE_NAN, expected.coefficient));
    ASSERT_CUDNN(cudnnActivationForward(
        handle_, activation, &kOne, x.desc(), x.data(), &kZero, y.desc(), y.data()));
    ASSERT_CUDNN(cudnnActivationBackward(handle_,
                                         activation,
                                         &kOne,
                                         y.desc(),
                                         y.data(),
                                         dy.desc(),
                                         dy.data(),
                                         x.desc(),
                                         x.data(),
                                         &kZero,
                                         dx.desc(),
                                         dx.data()));
    const Values values = y.values();
    const Values slopes = dx.values();
    constexpr float kStep = 1.0F / 256;
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(expected.expected(points[i]), values[i], 1e-6F);
      const float difference =
          expected.expected(points[i] + kStep) - expected.expected(points[i] - kStep);
      EXPECT_NEAR(difference / (2 * kStep), slopes[i], 1e-4F) << points[i];
    }
  }
  EXPECT_CUDNN(cudnnDestroyActivationDescriptor(activation));
}

TEST_F(OperationsTest, PoolingForwardAndBackward) {
  const struct {
    cudnnPoolingMode_t mode;
    Values y;
    Values dx;  // of a gradient of 1 everywhere
  } cases[] = {
      // Windows of 2 with padding 1, stride 2, over {1, 5, 3}: {pad, 1} and {5, 3}.
      {CUDNN_POOLING_MAX, {1, 5}, {1, 1, 0}},
      {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, {0.5F, 4}, {0.5F, 0.5F, 0.5F}},
      {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, {1, 4}, {1, 0.5F, 0.5F}},
  };
  cudnnPoolingDescriptor_t pooling;
  ASSERT_CUDNN(cudnnCreatePoolingDescriptor(&pooling));
  const Tensor x({1, 1, 1, 3}, {1, 5, 3});
  const Tensor dy({1, 1, 1, 2}, {1, 1});
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.mode);
    ASSERT_CUDNN(cudnnSetPooling2dDescriptor(
        pooling, expected.mode, CUDNN_NOT_PROPAGATE_NAN, 1, 2, 0, 1, 1, 2));
    int n = 0;
    int c = 0;
    int h = 0;
    int w = 0;
    ASSERT_CUDNN(cudnnGetPooling2dForwardOutputDim(pooling, x.desc(), &n, &c, &h, &w));
    ASSERT_EQ(2, w);
    const Tensor y({1, 1, 1, 2}, {kNan, kNan});
    const Tensor dx({1, 1, 1, 3}, {kNan, kNan, kNan});
    ASSERT_CUDNN(cudnnPoolingForward(
        handle_, pooling, &kOne, x.desc(), x.data(), &kZero, y.desc(), y.data()));
    expectNear(expected.y, y.values());
    ASSERT_CUDNN(cudnnPoolingBackward(handle_,
                                      pooling,
                                      &kOne,
                                      y.desc(),
                                      y.data(),
                                      dy.desc(),
                                      dy.data(),
                                      x.desc(),
                                      x.data(),
                                      &kZero,
                                      dx.desc(),
                                      dx.data()));
    expectNear(expected.dx, dx.values());
  }
  EXPECT_CUDNN(cudnnDestroyPoolingDescriptor(pooling));
}

// Caffe rounds the output up where cuDNN's formula rounds down; cuDNN takes either, and more.
TEST_F(OperationsTest, PoolingTakesOutputsOfOtherSizesThanTheFormulas) {
  const float kInfinity = HUGE_VALF;
  const struct {
    cudnnPoolingMode_t mode;
    Values y;
    Values dx;  // of a gradient of 1 everywhere
  } cases[] = {
      // Windows of 2 at stride 2 over {1, 5, 3}: {1, 5}, then {3, pad}, then nothing but padding.
      {CUDNN_POOLING_MAX, {5, 3, -kInfinity}, {0, 1, 1}},
      {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, {3, 1.5F, 0}, {0.5F, 0.5F, 0.5F}},
      {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, {3, 3, 0}, {0.5F, 0.5F, 1}},
  };
  cudnnPoolingDescriptor_t pooling;
  ASSERT_CUDNN(cudnnCreatePoolingDescriptor(&pooling));
  const Tensor x({1, 1, 1, 3}, {1, 5, 3});
  for (const auto& expected : cases) {
    ASSERT_CUDNN(cudnnSetPooling2dDescriptor(
        pooling, expected.mode, CUDNN_NOT_PROPAGATE_NAN, 1, 2, 0, 0, 1, 2));
    for (int outputs = 1; outputs <= 3; ++outputs) {
      SCOPED_TRACE(testing::Message() << expected.mode << ", " << outputs << " outputs");
      const auto count = static_cast<std::size_t>(outputs);
      const Tensor y({1, 1, 1, outputs}, Values(count, kNan));
      const Tensor dy({1, 1, 1, outputs}, Values(count, 1));
      const Tensor dx({1, 1, 1, 3}, {kNan, kNan, kNan});
      ASSERT_CUDNN(cudnnPoolingForward(
          handle_, pooling, &kOne, x.desc(), x.data(), &kZero, y.desc(), y.data()));
      const Values got = y.values();
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(expected.y[i], got[i]) << i;
      ASSERT_CUDNN(cudnnPoolingBackward(handle_,
                                        pooling,
                                        &kOne,
                                        y.desc(),
                                        y.data(),
                                        dy.desc(),
                                        dy.data(),
                                        x.desc(),
                                        x.data(),
                                        &kZero,
                                        dx.desc(),
                                        dx.data()));
      if (outputs == 3) expectNear(expected.dx, dx.values());
    }
  }
  const Tensor wrongChannels({1, 2, 1, 1}, {0, 0});
  EXPECT_EQ(
      CUDNN_STATUS_BAD_PARAM,
      cudnnPoolingForward(
          handle_, pooling, &kOne, x.desc(), x.data(), &kZero, wrongChannels.desc(), x.data()));
  EXPECT_CUDNN(cudnnDestroyPoolingDescriptor(pooling));
}

TEST_F(OperationsTest, SoftmaxForwardAndBackward) {
  // exp of the first sample's channels is 1 : 3, of the second's 1 : 1.
  const float three = std::log(3.0F);
  const Tensor x({2, 2, 1, 1}, {5, 5 + three, 0, 0});
  const Tensor dy({2, 2, 1, 1}, {1, 0, 0, 1});
  const Tensor y({2, 2, 1, 1}, {kNan, kNan, kNan, kNan});
  const Tensor dx({2, 2, 1, 1}, {kNan, kNan, kNan, kNan});
  const auto forward = [&](cudnnSoftmaxAlgorithm_t algorithm) {
    return cudnnSoftmaxForward(handle_,
                               algorithm,
                               CUDNN_SOFTMAX_MODE_CHANNEL,
                               &kOne,
                               x.desc(),
                               x.data(),
                               &kZero,
                               y.desc(),
                               y.data());
  };
  ASSERT_CUDNN(forward(CUDNN_SOFTMAX_LOG));
  expectNear({std::log(0.25F), std::log(0.75F), std::log(0.5F), std::log(0.5F)}, y.values());
  ASSERT_CUDNN(forward(CUDNN_SOFTMAX_ACCURATE));
  expectNear({0.25F, 0.75F, 0.5F, 0.5F}, y.values());
  ASSERT_CUDNN(cudnnSoftmaxBackward(handle_,
                                    CUDNN_SOFTMAX_ACCURATE,
                                    CUDNN_SOFTMAX_MODE_CHANNEL,
                                    &kOne,
                                    y.desc(),
                                    y.data(),
                                    dy.desc(),
                                    dy.data(),
                                    &kZero,
                                    dx.desc(),
                                    dx.data()));
  expectNear({0.1875F, -0.1875F, -0.25F, 0.25F}, dx.values());
}

TEST_F(OperationsTest, BiasActivationIsConvolutionAddBiasRelu) {
  // A 1x1 filter of 2 on {1, -3}: {2, -6}; half of z on top; bias 1; then the negative cut off.
  const Tensor x({1, 1, 1, 2}, {1, -3});
  const Tensor z({1, 1, 1, 2}, {4, 8});
  const Tensor bias({1, 1, 1, 1}, {1});
  const Tensor w({1, 1, 1, 1}, {2});
  const Tensor y({1, 1, 1, 2}, {kNan, kNan});
  const float half = 0.5F;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  cudnnActivationDescriptor_t activation;
  ASSERT_CUDNN(cudnnCreateFilterDescriptor(&filter));
  ASSERT_CUDNN(cudnnCreateConvolutionDescriptor(&convolution));
  ASSERT_CUDNN(cudnnCreateActivationDescriptor(&activation));
  ASSERT_CUDNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1));
  ASSERT_CUDNN(cudnnSetConvolution2dDescriptor(
      convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  ASSERT_CUDNN(
      cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  const auto run = [&](cudnnConvolutionFwdAlgo_t algorithm) {
    return cudnnConvolutionBiasActivationForward(handle_,
                                                 &kOne,
                                                 x.desc(),
                                                 x.data(),
                                                 filter,
                                                 w.data(),
                                                 convolution,
                                                 algorithm,
                                                 nullptr,
                                                 0,
                                                 &half,
                                                 z.desc(),
                                                 z.data(),
                                                 bias.desc(),
                                                 bias.data(),
                                                 activation,
                                                 y.desc(),
                                                 y.data());
  };
  ASSERT_CUDNN(run(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM));
  EXPECT_EQ((Values{5, 0}), y.values());
  ASSERT_CUDNN(cudnnSetActivationDescriptor(
      activation, CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, run(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM));
  ASSERT_CUDNN(
      cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_TANH, CUDNN_NOT_PROPAGATE_NAN, 0));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, run(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM));
  cudnnDestroyActivationDescriptor(activation);
  cudnnDestroyConvolutionDescriptor(convolution);
  cudnnDestroyFilterDescriptor(filter);
}

}  // namespace
}  // namespace ucudnn::simulator::test
