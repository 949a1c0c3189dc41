// Plans of kernels whose errors are measured, on the simulator.
#pragma once

#include <algorithm>
#include <memory>

#include "planner_fixture.hpp"

namespace ucudnn::test {

/// Small, so that it can be computed. Which kernel is fastest is left to chance: launches take most
/// of the time.
class PlannerErrorsTest : public PlannerTest {
 protected:
  PlannerErrorsTest() { arithmetic_ = Arithmetic::kFull; }
  void SetUp() override {
    PlannerTest::SetUp();
    if (IsSkipped()) return;
    settings_.kernels = Kernels::kLegacy;
    settings_.tuning = Tuning::kExhaustive;
    setRounding(true);
    setRandomTimes(7);
  }
  void TearDown() override {
    setRounding(false);
    setRandomTimes(0);
    PlannerTest::TearDown();
  }

  static Problem smallProblem(Operation operation, int batch = 8) {
    Problem problem = sampleProblem(operation, batch, 4);
    problem.wSizes = {4, 4, 5, 5, 0};
    problem.pads = {2, 2, 0};
    return problem;
  }

  std::shared_ptr<const Plan> planWithin(Planner& planner,
                                         double maxError,
                                         const Problem& problem,
                                         std::size_t limitBytes = kUndividedLimit) {
    settings_.maxError = maxError;
    return planner.plan(request(planner, limitBytes, problem));
  }
};

inline double errorOf(const Plan& plan) {
  double error = 0;
  for (const Plan::Step& step : plan.steps) error = std::max(error, step.error);
  return error;
}

}  // namespace ucudnn::test
