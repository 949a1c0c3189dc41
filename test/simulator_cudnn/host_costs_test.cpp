// UCUDNN_SIMULATOR_MEASURING_COST: what cuDNN's calls take of the host.
#include <functional>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

class HostCostTest : public testing::Test {
 protected:
  HostCostTest() { ucudnnSimulatorSetMeasuringCost(1); }
  ~HostCostTest() override { ucudnnSimulatorSetMeasuringCost(0); }

  static double costOf(const std::function<void()>& call) {
    const double before = ucudnnSimulatorHostClockMs();
    call();
    return ucudnnSimulatorHostClockMs() - before;
  }

  double forward(int algorithm) {
    EXPECT_CUDA(cudaDeviceSynchronize());
    return costOf([&] {
      const float one = 1;
      const float zero = 0;
      EXPECT_CUDNN(cudnnConvolutionForward(convolution_.handle(),
                                           &one,
                                           convolution_.xDesc(),
                                           convolution_.x().get(),
                                           convolution_.wDesc(),
                                           convolution_.w().get(),
                                           convolution_.convDesc(),
                                           static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                           workspace_.get(),
                                           workspace_.bytes(),
                                           &zero,
                                           convolution_.yDesc(),
                                           convolution_.y().get()));
    });
  }

  static void EXPECT_CUDA(cudaError_t error) { EXPECT_EQ(cudaSuccess, error); }

  Convolution convolution_{ConvolutionCase{}};
  DeviceBuffer workspace_{std::size_t{4} << 20};
};

TEST_F(HostCostTest, EnqueueingAConvolutionTakesTwentyToFortyFiveMicroseconds) {
  for (const int algorithm : convolution_.algorithms(Operation::kForward)) {
    forward(algorithm);  // loads its kernels
    const double cost = forward(algorithm);
    EXPECT_GE(cost, 0.020) << algorithm;
    EXPECT_LE(cost, 0.045) << algorithm;
  }
}

TEST_F(HostCostTest, TheFirstCallOfAKernelLoadsIt) {
  forward(0);
  const double warm = forward(0);
  EXPECT_NEAR(forward(1) - warm, 2, 0.1);  // another kernel
  EXPECT_NEAR(forward(0), warm, 1e-6);
  ucudnnSimulatorSetMeasuringCost(1);
  EXPECT_NEAR(forward(0) - warm, 2, 1e-6);
}

TEST_F(HostCostTest, QueriesTakeMicroseconds) {
  std::size_t bytes = 0;
  const auto size = [&] {
    EXPECT_CUDNN(convolution_.workspaceSize(Operation::kForward, 0, &bytes));
  };
  EXPECT_NEAR(costOf(size), 0.01, 1e-6);
  int returned = 0;
  cudnnConvolutionFwdAlgoPerf_t perf;
  EXPECT_NEAR(costOf([&] {
                EXPECT_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(convolution_.handle(),
                                                                    convolution_.xDesc(),
                                                                    convolution_.wDesc(),
                                                                    convolution_.convDesc(),
                                                                    convolution_.yDesc(),
                                                                    1,
                                                                    &returned,
                                                                    &perf));
              }),
              0.05,
              1e-6);
}

// Find allocates the tensors and each algorithm's workspace, and frees them.
TEST_F(HostCostTest, FindPaysForItsMemory) {
  int returned = 0;
  cudnnConvolutionFwdAlgoPerf_t perf;
  EXPECT_GT(costOf([&] {
              EXPECT_CUDNN(cudnnFindConvolutionForwardAlgorithm(convolution_.handle(),
                                                                convolution_.xDesc(),
                                                                convolution_.wDesc(),
                                                                convolution_.convDesc(),
                                                                convolution_.yDesc(),
                                                                1,
                                                                &returned,
                                                                &perf));
            }),
            3 * 0.6);
}

}  // namespace
}  // namespace ucudnn::simulator::test
