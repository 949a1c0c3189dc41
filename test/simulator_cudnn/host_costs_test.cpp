// UCUDNN_SIMULATOR_MEASURING_COST: what cuDNN's calls take of the host.
#include <algorithm>
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
    return enqueue(convolution_, algorithm);
  }

  double enqueue(const Convolution& convolution, int algorithm) {
    return costOf([&] {
      const float one = 1;
      const float zero = 0;
      EXPECT_CUDNN(cudnnConvolutionForward(convolution.handle(),
                                           &one,
                                           convolution.xDesc(),
                                           convolution.x().get(),
                                           convolution.wDesc(),
                                           convolution.w().get(),
                                           convolution.convDesc(),
                                           static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                           workspace_.get(),
                                           workspace_.bytes(),
                                           &zero,
                                           convolution.yDesc(),
                                           convolution.y().get()));
    });
  }

  void checkInGraph(const Convolution& convolution, int algorithm);

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

// A captured call costs 0.6 of one that runs; in a graph it saves 3 us for each kernel, but never
// more than half of its time (measured on an H200, 2026-11-22).
void HostCostTest::checkInGraph(const Convolution& convolution, int algorithm) {
  SCOPED_TRACE(algorithm);
  constexpr double kCallMs = 0.0001;  // of every function of cuDNN
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaStreamCreate(&stream));
  EXPECT_CUDNN(cudnnSetStream(convolution.handle(), stream));
  enqueue(convolution, algorithm);  // loads its kernels
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  const double hostMs = enqueue(convolution, algorithm);
  const double durationMs = ucudnnSimulatorClock(stream) - ucudnnSimulatorHostClockMs();
  EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_NEAR(enqueue(convolution, algorithm), kCallMs + 0.6 * (hostMs - kCallMs), 1e-6);
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaGraphLaunch(exec, stream));
  const double graphMs = ucudnnSimulatorClock(stream) - ucudnnSimulatorHostClockMs();
  const double kernels = (hostMs - kCallMs - 0.012) / 0.008;  // the host's time tells their number
  EXPECT_GE(kernels, 1 - 1e-6);
  EXPECT_NEAR(graphMs, 0.002 + std::max(durationMs - 0.003 * kernels, durationMs / 2), 1e-6);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDNN(cudnnSetStream(convolution.handle(), nullptr));
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

TEST_F(HostCostTest, CallsInAGraphCostLessForEachKernel) {
  for (const int algorithm : convolution_.algorithms(Operation::kForward)) {
    checkInGraph(convolution_, algorithm);
  }
  ConvolutionCase longer;  // half of its time is more than it can save
  longer.batch = 64;
  longer.channels = longer.filters = 16;
  longer.input = {56, 56};
  ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kOff));
  const Convolution convolution(longer);
  checkInGraph(convolution, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
  checkInGraph(convolution, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);  // two kernels
  ucudnnSimulatorSetArithmetic(static_cast<int>(Arithmetic::kFull));
}

TEST_F(HostCostTest, QueriesTakeMicroseconds) {
  std::size_t bytes = 0;
  const auto size = [&] {
    EXPECT_CUDNN(convolution_.workspaceSize(Operation::kForward, 0, &bytes));
  };
  size();  // the first answer about a type takes longer, once in a process
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
