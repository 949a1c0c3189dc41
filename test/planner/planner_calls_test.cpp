// When calls are measured that no query asked for.
#include "planner/planner.hpp"
#include "planner_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

TEST_F(PlannerTest, ACallIsMeasuredWhenItsRepetitionPays) {
  Planner planner;
  const PlanRequest wanted = request(planner, kUndividedLimit);
  EXPECT_FALSE(planner.answer(wanted, Measuring::kWhenItPays).plan) << "first seen";
  EXPECT_EQ(measured(planner), 0);
  int calls = 1;
  PlanAnswer answer;
  while (!answer.plan && calls < 100) {
    answer = planner.answer(wanted, Measuring::kWhenItPays);
    ++calls;
  }
  ASSERT_TRUE(answer.plan);
  EXPECT_TRUE(answer.isFinal);
  EXPECT_GT(calls, MeasuringBudget::kRepetitions);
  Planner alone;
  EXPECT_EQ(toText(*answer.plan), toText(*alone.plan(request(alone, kUndividedLimit))));
}

TEST_F(PlannerTest, WithoutAShareNothingIsMeasuredUnasked) {
  settings_.benchmarkShare = 0;
  Planner planner;
  const PlanRequest wanted = request(planner, kUndividedLimit);
  for (int call = 0; call < 1000; ++call)
    ASSERT_FALSE(planner.answer(wanted, Measuring::kWhenItPays).plan);
  EXPECT_TRUE(planner.plan(wanted)) << "a query that asks";
  settings_.benchmarkShare = kMeasureAlways;
  const PlanRequest other = request(planner, kUndividedLimit, largeProblem(Operation::kForward, 9));
  EXPECT_TRUE(planner.answer(other, Measuring::kWhenItPays).plan) << "always";
}

/// Calls that answer what is not measured yet.
int callsWithoutPlan(Planner& planner, const PlanRequest& wanted) {
  int calls = 0;
  while (calls < 100 && !planner.answer(wanted, Measuring::kWhenItPays).plan) ++calls;
  return calls;
}

TEST_F(PlannerTest, WhatWasAskedForDoesNotDelayTheRest) {
  Planner planner;
  // On the simulated device they cost more than may be spent at once.
  for (int batch = 1000; batch < 1150; ++batch)
    ASSERT_TRUE(
        planner.plan(request(planner, kUndividedLimit, largeProblem(Operation::kForward, batch))));
  EXPECT_EQ(callsWithoutPlan(planner, request(planner, kUndividedLimit)),
            MeasuringBudget::kRepetitions);
}

TEST_F(PlannerTest, WhatLacksWorkspaceIsMeasuredBeforeTheProgramSettles) {
  Planner planner;
  const auto requestOf = [&](int batch) {
    return request(planner, kUndividedLimit, largeProblem(Operation::kForward, batch));
  };
  const auto isPlannedAfter = [&](const PlanRequest& wanted, int calls) {
    bool isPlanned = false;
    for (int call = 0; call < calls; ++call)
      isPlanned = planner.answer(wanted, Measuring::kWhenItPays).plan != nullptr;
    return isPlanned;
  };
  settings_.benchmarkShare = 1e-9;
  for (int batch = 1000; batch < 2000; ++batch) isPlannedAfter(requestOf(batch), 1);
  PlanRequest wanted = requestOf(320);
  EXPECT_FALSE(isPlannedAfter(wanted, 500));
  wanted.lacksWorkspace = true;
  EXPECT_TRUE(isPlannedAfter(wanted, 1)) << "its calls have taken as long";
  wanted = requestOf(321);
  wanted.lacksWorkspace = true;
  EXPECT_FALSE(isPlannedAfter(wanted, 10)) << "not yet";
}

TEST_F(PlannerTest, WhatIsAlsoRunWithTensorCoresIsMeasuredOnceItStays) {
  Problem tensorCores = largeProblem(), exact = tensorCores;
  tensorCores.mathType = CUDNN_DEFAULT_MATH;
  exact.mathType = CUDNN_FMA_MATH;
  exact.transform = Transform::kNone;
  Planner alone, both, asked;
  const auto calls = [&](Planner& planner, const Problem& problem) {
    return callsWithoutPlan(planner, request(planner, kUndividedLimit, problem));
  };
  EXPECT_EQ(calls(alone, exact), MeasuringBudget::kRepetitions);
  EXPECT_EQ(calls(both, tensorCores), MeasuringBudget::kRepetitions);
  EXPECT_EQ(calls(both, exact) + 1, MeasuringBudget::kRepetitionsOfCandidates);
  calls(asked, tensorCores);
  EXPECT_TRUE(asked.plan(request(asked, kUndividedLimit, exact))) << "a query that asks";
}

}  // namespace
}  // namespace ucudnn
