// A further source of kernels, in this file and one line: planned, stored, loaded and run.
#include "kernels/source.hpp"

#include <map>
#include <utility>
#include <vector>

#include "executor/executor.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/factor.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

/// One of cuDNN's algorithms in memory of its own.
class SelfSufficient final : public BuiltKernel {
 public:
  SelfSufficient(std::shared_ptr<const BuiltKernel> algorithm, std::size_t bytes)
      : algorithm_(std::move(algorithm)), memory_(bytes) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    ConvolutionPointers own = pointers;
    own.workspace = memory_.get();
    own.workspaceBytes = memory_.bytes();
    return algorithm_->enqueue(handle, own, fused);
  }
  cudnnStatus_t workspaceSize(cudnnHandle_t, std::size_t* bytes) const noexcept override {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  std::shared_ptr<const BuiltKernel> algorithm_;
  DeviceBuffer memory_;
};

/// Why cuDNN, which names the kernels, can't make them ready to run: engines may be so.
cudnnStatus_t whyNotBuilt = CUDNN_STATUS_SUCCESS;
/// How often each kernel has been prepared, and built.
std::map<std::pair<int, Kernel>, int> preparations, builds;

class Prepared final : public PreparedKernel {
 public:
  Prepared(std::unique_ptr<PreparedKernel> algorithm,
           cudnnHandle_t handle,
           std::pair<int, Kernel> name)
      : algorithm_(std::move(algorithm)), handle_(handle), name_(std::move(name)) {}

  std::optional<KernelOffer> offer(int* failures) override {
    auto offer = algorithm_->offer(failures);
    if (offer) offer->workspaceBytes = 0;
    return offer;
  }
  std::shared_ptr<const BuiltKernel> build() override {
    ++builds[name_];
    if (whyNotBuilt != CUDNN_STATUS_SUCCESS) throw Error(whyNotBuilt, "refused");
    auto algorithm = algorithm_->build();
    std::size_t bytes = 0;
    UCUDNN_CHECK_CUDNN(algorithm->workspaceSize(handle_, &bytes));
    return std::make_shared<const SelfSufficient>(std::move(algorithm), bytes);
  }

 private:
  std::unique_ptr<PreparedKernel> algorithm_;
  cudnnHandle_t handle_;
  std::pair<int, Kernel> name_;  ///< batch size and kernel
};

/// The same algorithms once more, none of which needs the caller's workspace.
class SelfSufficientSource final : public KernelSource {
 public:
  std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                  const Problem& problem,
                                  const ConvolutionDescriptors& descriptors,
                                  int* failures) const override {
    auto offers = algorithms_->offers(handle, problem, descriptors, failures);
    for (KernelOffer& offer : offers) offer.workspaceBytes = 0;
    return offers;
  }
  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t handle,
                                          const Problem& problem,
                                          std::shared_ptr<const ProblemDescriptors> descriptors,
                                          Kernel kernel) const override {
    ++preparations[{problem.batch(), kernel}];
    return std::make_unique<Prepared>(
        algorithms_->prepare(handle, problem, std::move(descriptors), kernel),
        handle,
        std::pair(problem.batch(), kernel));
  }
  std::string text(Operation operation, Kernel kernel) const override {
    return "self-sufficient " + algorithms_->text(operation, kernel);
  }
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    constexpr std::string_view kPrefix = "self-sufficient ";
    if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
    return algorithms_->parse(problem, text.substr(kPrefix.size()));
  }

 private:
  std::unique_ptr<KernelSource> algorithms_ = makeAlgorithmSource();
};

class SourceTest : public PlannerTest {
 protected:
  static void SetUpTestSuite() { addKernelSource(std::make_unique<SelfSufficientSource>()); }

  /// The output of the plan, or of cuDNN's own IMPLICIT_GEMM where there is none.
  std::vector<float> run(const Plan* plan);

  TemporaryDirectory directory_;
  const Problem problem_ = largeProblem(Operation::kForward, 4);
};

std::vector<float> SourceTest::run(const Plan* plan) {
  const auto filled = [](std::size_t bytes) {
    std::vector<float> values(bytes / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
    DeviceBuffer buffer(bytes);
    UCUDNN_CHECK_CUDA(cudaMemcpy(buffer.get(), values.data(), bytes, cudaMemcpyHostToDevice));
    return buffer;
  };
  const DeviceBuffer x = filled(problem_.xBytes());
  const DeviceBuffer w = filled(problem_.wBytes());
  const DeviceBuffer y(problem_.yBytes());
  const ProblemDescriptors descriptors(problem_);
  ConvolutionCall call;
  call.descriptors = descriptors.get();
  call.pointers.alpha = Factor::one(problem_).get();
  call.pointers.beta = Factor::zero(problem_).get();
  call.pointers.x = x.get();
  call.pointers.w = w.get();
  call.pointers.y = y.get();
  call.algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  EXPECT_EQ(plan != nullptr ? runPlan(handle_.get(), *plan, call).status
                            : runNative(handle_.get(), problem_.operation, call),
            CUDNN_STATUS_SUCCESS);
  std::vector<float> result(problem_.yBytes() / sizeof(float));
  UCUDNN_CHECK_CUDA(cudaMemcpy(result.data(), y.get(), problem_.yBytes(), cudaMemcpyDeviceToHost));
  return result;
}

TEST_F(SourceTest, AKernelIsBuiltOnceHoweverOftenItIsTimed) {
  builds.clear();
  Planner planner;
  planner.measurements(request(planner, kUndividedLimit, problem_));
  EXPECT_FALSE(builds.empty());
  for (const auto& [kernel, times] : builds)
    EXPECT_EQ(times, 1) << toText(problem_.operation, kernel.second) << " N=" << kernel.first;
}

TEST_F(SourceTest, ItsKernelsArePlannedStoredLoadedAndRun) {
  settings_.databasePath = directory_.file("ucudnn.db");
  std::string expected;
  {
    Planner planner;
    const auto plan = planner.plan(request(planner, 0, problem_));
    ASSERT_TRUE(plan);
    expected = toText(*plan);
  }
  EXPECT_NE(expected.find("self-sufficient "), std::string::npos) << expected;
  preparations.clear();
  builds.clear();
  Planner planner;
  const auto plan = planner.plan(request(planner, 0, problem_));
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*plan), expected);
  EXPECT_EQ(measured(planner), 0);
  // To confirm a kernel cuDNN is given the same as to build it, and all plans of one answer share
  // it.
  EXPECT_FALSE(builds.empty());
  for (const auto* each : {&preparations, &builds})
    for (const auto& [kernel, times] : *each)
      EXPECT_EQ(times, 1) << toText(problem_.operation, kernel.second) << " N=" << kernel.first;
  // A client can name only an algorithm, and none but those without workspace fit.
  ASSERT_GE(plan->algorithm, 0);
  EXPECT_EQ(plan->algorithmBytes, 0u);

  setArithmetic(Arithmetic::kFull);
  const std::vector<float> ours = run(plan.get());
  const std::vector<float> cudnns = run(nullptr);
  ASSERT_EQ(ours.size(), cudnns.size());
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], cudnns[i], 0.01) << i;
}

TEST_F(SourceTest, WhatCannotBeBuiltIsNotPlanned) {
  settings_.databasePath = directory_.file("ucudnn.db");
  bool isComplete = false;
  const auto planAnew = [&] {
    Planner planner;
    const PlanAnswer answer = planner.answer(request(planner, 0, problem_), Measuring::kNow);
    isComplete = answer.isFinal;
    return answer.plan != nullptr ? toText(*answer.plan) : std::string();
  };
  const std::string with = planAnew();
  ASSERT_NE(with.find("self-sufficient "), std::string::npos) << with;
  const std::string file = settings_.databasePath;
  for (const cudnnStatus_t why : {CUDNN_STATUS_NOT_SUPPORTED,
                                  CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED,
                                  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED}) {
    whyNotBuilt = why;
    settings_.databasePath = file;
    const std::string without = planAnew();
    EXPECT_FALSE(without.empty());
    EXPECT_EQ(without.find("self-sufficient "), std::string::npos) << without;

    // Measured where they are refused: nothing is left to try.
    settings_.databasePath.clear();
    EXPECT_EQ(planAnew(), without);
    EXPECT_TRUE(isComplete) << why;
  }
  whyNotBuilt = CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace ucudnn
