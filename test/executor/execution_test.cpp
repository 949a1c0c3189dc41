// Calls that a client makes by an execution plan of its own, which could run as it is.
#include <gtest/gtest.h>

#include <vector>

#include "executor/equivalence.hpp"
#include "kernels/descriptors.hpp"
#include "kernels/factor.hpp"
#include "support/device.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

/// y of ones: nine products of each of four channels, less at the borders, are added to it.
class ExecutionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::hasDevice()) GTEST_SKIP() << "no GPU";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
    for (DeviceBuffer* const buffer : {&x_, &w_, &y_}) {
      *buffer = DeviceBuffer(buffer == &w_ ? problem_.wBytes() : problem_.xBytes());
      const std::vector<float> ones(buffer->bytes() / sizeof(float), 1);
      UCUDNN_CHECK_CUDA(
          cudaMemcpy(buffer->get(), ones.data(), buffer->bytes(), cudaMemcpyHostToDevice));
    }
    descriptors_.emplace(problem_);
  }

  /// By a plan that cuDNN refuses, as there is none.
  ConvolutionCall call() const {
    return {descriptors_->get(),
            {Factor::one(problem_).get(),
             Factor::one(problem_).get(),
             x_.get(),
             w_.get(),
             y_.get(),
             nullptr,
             0},
            nullptr,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
            &execution_};
  }
  float middleOfY() const {
    constexpr std::size_t kPlace = 3 * 8 + 3;
    float value = 0;
    UCUDNN_CHECK_CUDA(cudaMemcpy(&value,
                                 static_cast<const float*>(y_.get()) + kPlace,
                                 sizeof value,
                                 cudaMemcpyDeviceToHost));
    return value;
  }

  const Problem problem_ = test::sampleProblem();
  const ClientExecution execution_{nullptr, nullptr, nullptr, 0, false};
  CudnnHandle handle_;
  DeviceBuffer x_, w_, y_;
  std::optional<ProblemDescriptors> descriptors_;
};

TEST_F(ExecutionTest, AnUndividedPlanRunsByItsOwnAlgorithm) {
  Plan plan;
  plan.problem = problem_;
  plan.callersAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  EXPECT_EQ(runPlan(handle_.get(), plan, call()).status, CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(middleOfY(), 37);
  EXPECT_NE(runNative(handle_.get(), problem_.operation, call()), CUDNN_STATUS_SUCCESS);
}

// The client's plan would write the client's output.
TEST_F(ExecutionTest, TheEquivalenceTestComputesInMemoryOfItsOwn) {
  EquivalenceTest tested(handle_.get(), problem_, call());
  ConvolutionCall split = call();
  split.execution = nullptr;
  ASSERT_EQ(runNative(handle_.get(), problem_.operation, split), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tested.distance(), 0);
  EXPECT_EQ(middleOfY(), 37);
}

}  // namespace
}  // namespace ucudnn
