// A planner whose plans have engines, and whose database tests change.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "changed_database.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn::test {

/// Where, on the simulator, an engine is the fastest for each operation.
inline constexpr std::size_t kEnginesLimit = 16 * kMebibyte;

class PlannerEnginesTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
    settings_.kernels = Kernels::kAll;
  }

  static Problem problemOf(Operation operation) {
    Problem problem = largeProblem(operation);
    problem.mathType = CUDNN_DEFAULT_MATH;
    if (operation == Operation::kBiasActivationForward) {
      problem.activation = CUDNN_ACTIVATION_RELU;
      problem.addsZ = 1;
    }
    return problem;
  }

  /// Not one that only μ-cuDNN puts together.
  static bool isClients(Kernel kernel) {
    return kernel.source == kEngines && engineConfigurationOf(kernel.id).readsCallersTensors();
  }

  /// The first engine that copies x and y channels last, as a client has it: without our copies.
  OwnKernel copyingOf(const Problem& problem) const {
    const ProblemDescriptors descriptors(problem);
    for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true)) {
      if (offer.kernel.source != kEngines) continue;
      EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      value.blocks = 0;
      const Kernel kernel{idOf(value), offer.kernel.mathType, kEngines};
      const auto own = offeredKernel(handle_.get(), problem, nullptr, kernel);
      if (own && copiesTensors(problem, kernel, own->workspaceBytes))
        return {kernel, own->workspaceBytes};
    }
    throw std::logic_error("no engine copies");
  }

  static PlanAnswer call(Planner& planner, const PlanRequest& wanted) {
    return planner.answer(wanted, Measuring::kWhenItPays);
  }

  std::shared_ptr<const Plan> planBy(Planner& planner,
                                     Operation operation,
                                     std::size_t limitBytes = kEnginesLimit,
                                     bool deterministic = false) {
    PlanRequest wanted = request(planner, limitBytes, problemOf(operation));
    wanted.deterministic = deterministic;
    return planner.plan(wanted);
  }
  /// As another process would.
  std::shared_ptr<const Plan> planAnew(Operation operation,
                                       std::size_t limitBytes = kEnginesLimit,
                                       bool deterministic = false) {
    Planner planner;
    return planBy(planner, operation, limitBytes, deterministic);
  }
  void lie(const std::string& statement) const {
    changeDatabase(settings_.databasePath, statement);
  }
  static bool hasEngine(const Plan& plan) {
    return std::any_of(
        plan.steps.begin(), plan.steps.end(), [](const Plan::Step& step) { return !step.anyCall; });
  }

  TemporaryDirectory directory_;
};

}  // namespace ucudnn::test
