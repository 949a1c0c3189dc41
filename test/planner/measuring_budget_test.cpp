#include "planner/measuring_budget.hpp"

#include <gtest/gtest.h>

namespace ucudnn {
namespace {

constexpr double kShare = 0.05;

/// Whatever measuring gains then, the program has lost no more.
TEST(MeasuringBudgetTest, WorthMeasuringIsWhatTakesSoLongThatAGainWouldPay) {
  const MeasuringBudget budget;
  for (const double timeMs : {0.02, 1.0, 30.0})
    for (const double gain :
         {MeasuringBudget::kHopedGain, MeasuringBudget::kHopedGainInParts, 1.0}) {
      const double callsMs = budget.expectedCostMs(timeMs) / gain;
      EXPECT_FALSE(budget.isWorth(0.99 * callsMs, timeMs, gain));
      EXPECT_TRUE(budget.isWorth(1.01 * callsMs, timeMs, gain));
    }
}

TEST(MeasuringBudgetTest, MeasuringTakesAShareOfTheTime) {
  MeasuringBudget budget;
  constexpr double kSliceMs = 5;
  double spentMs = 0;
  double timeMs = 0;
  for (int call = 0; call < 20000; ++call) {
    budget.addTime(1);
    timeMs += 1;
    if (!budget.has(kSliceMs, kShare)) continue;
    budget.spend(kSliceMs);
    spentMs += kSliceMs;
    ASSERT_LE(spentMs, kShare * timeMs);
  }
  EXPECT_GT(spentMs, kShare * timeMs * 0.9) << "the share is used";
  EXPECT_FALSE(budget.has(kSliceMs, 0));
}

TEST(MeasuringBudgetTest, WhatWasAskedForLeavesTheRestItsShare) {
  MeasuringBudget budget;
  budget.addTime(1e5);
  budget.learn(1, budget.expectedCostMs(1));  // a query's, however long it took
  EXPECT_TRUE(budget.has(5, kShare));
  budget.spend(kShare * 1e5);
  EXPECT_FALSE(budget.has(5, kShare));
}

TEST(MeasuringBudgetTest, CostsAreLearned) {
  MeasuringBudget budget;
  const double before = budget.expectedCostMs(1);
  for (int i = 0; i < 50; ++i) budget.learn(1, 3 * before);
  EXPECT_NEAR(budget.expectedCostMs(1), 3 * before, 0.1 * before);
  EXPECT_GT(budget.expectedCostMs(10), budget.expectedCostMs(1));
}

}  // namespace
}  // namespace ucudnn
