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
  EXPECT_TRUE(answer.lasts);
  EXPECT_GT(calls, Investment::kRepetitions);
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

TEST_F(PlannerTest, WhatIsAlsoRunWithTensorCoresIsMeasuredOnceItStays) {
  Problem tensorCores = largeProblem(), exact = tensorCores;
  tensorCores.mathType = CUDNN_DEFAULT_MATH;
  exact.mathType = CUDNN_FMA_MATH;
  exact.transform = Transform::kNone;
  Planner alone, both, asked;
  const auto calls = [&](Planner& planner, const Problem& problem) {
    return callsWithoutPlan(planner, request(planner, kUndividedLimit, problem));
  };
  EXPECT_EQ(calls(alone, exact), Investment::kRepetitions);
  EXPECT_EQ(calls(both, tensorCores), Investment::kRepetitions);
  EXPECT_EQ(calls(both, exact) + 1, Investment::kRepetitionsOfCandidates);
  calls(asked, tensorCores);
  EXPECT_TRUE(asked.plan(request(asked, kUndividedLimit, exact))) << "a query that asks";
}

}  // namespace
}  // namespace ucudnn
