// Plans within a largest error: UCUDNN_MAX_ERROR.
#include "errors_fixture.hpp"
#include "support/operations.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr int kWinograd = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;

TEST_F(PlannerErrorsTest, EachPlanIsTheFastestWithinTheError) {
  for (const Kernels kernels : {Kernels::kLegacy, Kernels::kAll})
    for (const Operation operation : kOperations)
      for (const cudnnMathType_t math : {CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH}) {
        settings_.kernels = kernels;
        Problem problem = smallProblem(operation);
        problem.mathType = math;
        Planner planner;
        double fastestMs = 0, leastError = 1;
        for (const double maxError : {1e-2, 5e-4, 1e-5, 2e-6, 5e-7, 1e-9}) {
          const auto plan = planWithin(planner, maxError, problem);
          if (maxError == 1e-2) {
            ASSERT_TRUE(plan);
          }
          if (maxError == 1e-9) {
            EXPECT_FALSE(plan) << "no float output is as accurate";
          }
          if (!plan) continue;
          EXPECT_LE(errorOf(*plan) * kErrorSpread, maxError);
          EXPECT_GE(plan->predictedMs, fastestMs * 0.999) << "less accurate ones are no slower";
          fastestMs = std::max(fastestMs, plan->predictedMs);
          leastError = std::min(leastError, errorOf(*plan));
        }
        EXPECT_LT(leastError, 5e-6) << toText(operation);
      }
}

TEST_F(PlannerErrorsTest, WhatIsMeasuredForOneErrorServesAll) {
  Planner planner;
  const Problem problem = smallProblem(Operation::kForward);
  ASSERT_TRUE(planWithin(planner, 1e-2, problem));
  const auto kernels = measured(planner);
  for (const double maxError : {1e-5, 1e-3, 1e-9}) planWithin(planner, maxError, problem);
  EXPECT_EQ(kernels, measured(planner));
}

// Answers don't depend on the order of questions.
TEST_F(PlannerErrorsTest, ErrorsDecideNothingWhereNoneIsStated) {
  for (const Operation operation : kOperations) {
    const Problem problem = smallProblem(operation);
    Planner before, after;
    const auto expected = planWithin(before, 0, problem);
    planWithin(after, 1e-6, problem);
    const auto plan = planWithin(after, 0, problem);
    ASSERT_TRUE(expected && plan);
    EXPECT_EQ(toText(*expected), toText(*plan));
    EXPECT_EQ(kUnknownError, errorOf(*expected));

    // And the other way round: what is known is timed again, for its error.
    const auto within = planWithin(before, 1e-6, problem);
    const auto alone = planWithin(after, 1e-6, problem);
    ASSERT_EQ(within == nullptr, alone == nullptr);
    if (within) {
      EXPECT_EQ(toText(*within), toText(*alone));
    }
  }
}

// By name it is inaccurate: a user who allows its error gets it, and one who doesn't never.
TEST_F(PlannerErrorsTest, AStatedErrorDecidesInTheNamesPlace) {
  bool isUsed = false;
  const Problem problem = smallProblem(Operation::kForward);
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    setRandomTimes(seed);
    Planner planner;
    const auto rough = planWithin(planner, 1e-2, problem);
    const auto fine = planWithin(planner, 1e-4, problem);
    ASSERT_TRUE(rough && fine);
    for (const Plan::Step& step : rough->steps) isUsed |= step.kernel.id == kWinograd;
    for (const Plan::Step& step : fine->steps) EXPECT_NE(kWinograd, step.kernel.id);
    EXPECT_LE(rough->predictedMs, fine->predictedMs);
  }
  EXPECT_TRUE(isUsed);
}

TEST_F(PlannerErrorsTest, TheFrontIsWithinTheErrorToo) {
  Planner planner;
  const Problem problem = smallProblem(Operation::kForward, 32);
  settings_.maxError = 1e-4;
  const PlanRequest wanted = request(planner, kUndividedLimit, problem);
  const auto front = planner.front(wanted);
  ASSERT_FALSE(front.empty());
  const Measurements known = planner.measurements(wanted, Measuring::kNever);
  const KernelErrors largest = largestErrors(known);
  for (const Configuration& point : front)
    for (const MicroBatches& group : point.microBatches)
      EXPECT_LT(
          ucudnn::errorOf(known.at(group.batch).kernels.at(static_cast<std::size_t>(group.kernel)),
                          problem.operation,
                          group.batch,
                          largest),
          1e-4);
  settings_.maxError = 1e-9;
  EXPECT_TRUE(planner.front(wanted).empty());
}

// They may hold anything, zeros or no numbers.
TEST_F(PlannerErrorsTest, AreNotMeasuredOnTheCallersData) {
  const Problem problem = smallProblem(Operation::kForward);
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes()),
      workspace(kMebibyte);
  const TensorBuffers buffers{x.get(), w.get(), y.get(), workspace.get(), kMebibyte};
  settings_.maxError = 1e-4;
  Planner planner, other;
  PlanRequest wanted = request(planner, kMebibyte, problem);
  const auto expected = other.plan(request(other, kMebibyte, problem));
  wanted.buffers = &buffers;
  const auto plan = planner.plan(wanted);
  ASSERT_TRUE(plan && expected);
  EXPECT_EQ(toText(*expected), toText(*plan));
  EXPECT_EQ(errorOf(*expected), errorOf(*plan));
}

// A split's micro-batches add up less each than the mini-batch does.
TEST_F(PlannerErrorsTest, AFilterGradientMayBeMoreAccurateSplit) {
  Planner planner;
  const Problem problem = smallProblem(Operation::kBackwardFilter, 64);
  bool isSplit = false;
  for (double maxError = 1e-5; maxError > 1e-7; maxError /= 1.5)
    if (const auto plan = planWithin(planner, maxError, problem)) isSplit |= plan->isDivided();
  EXPECT_TRUE(isSplit);
}

}  // namespace
}  // namespace ucudnn
