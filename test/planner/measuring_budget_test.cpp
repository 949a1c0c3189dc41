#include "planner/measuring_budget.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ucudnn {
namespace {

constexpr double kShare = 0.05;
constexpr int kRepetitions = MeasuringBudget::kRepetitions;

TEST(MeasuringBudgetTest, WhatIsSeenOnceOrTwiceIsNotMeasured) {
  MeasuringBudget budget;
  budget.addTime(1e9);
  EXPECT_FALSE(budget.pays(0, 1, kShare));
  EXPECT_FALSE(budget.pays(kRepetitions - 1, 1, kShare));
  EXPECT_TRUE(budget.pays(kRepetitions, 1, kShare));
  EXPECT_FALSE(budget.pays(kRepetitions, 1, 0));
  EXPECT_FALSE(budget.pays(9, 1, kShare, 10));
  EXPECT_TRUE(budget.pays(10, 1, kShare, 10));
}

/// A settled program may spend at once what one sample has to wait for.
TEST(MeasuringBudgetTest, NoCallOfOneSampleWaits) {
  MeasuringBudget budget;
  budget.addCalls(0, 10, 1);
  EXPECT_TRUE(budget.pays(10, 1, kShare));
  EXPECT_FALSE(budget.pays(10, 1, kShare, kRepetitions, false));
  budget.addTime(2 * budget.expectedCostMs(1) / kShare);
  EXPECT_TRUE(budget.pays(10, 1, kShare, kRepetitions, false));
}

TEST(MeasuringBudgetTest, MeasuringTakesAShareOfTheTime) {
  MeasuringBudget budget;
  double spentMs = 0;
  double timeMs = 0;
  for (std::uint64_t call = 0; call < 200000; ++call) {
    budget.addCalls(call % 2, 1, 1);  // every other one is new: the program never settles
    timeMs += 1;
    if (!budget.pays(kRepetitions, 1, kShare)) continue;
    budget.spend(80);
    spentMs += 80;
    EXPECT_LE(spentMs, kShare * timeMs + 80);
  }
  EXPECT_GT(spentMs, kShare * timeMs * 0.9) << "the share is used";
}

TEST(MeasuringBudgetTest, AFixedNetworkIsMeasuredAtOnceWhenItHasRepeated) {
  MeasuringBudget budget;
  constexpr int kLayers = 15;
  int paidIn = -1;
  for (int iteration = 0; iteration < 10 && paidIn < 0; ++iteration)
    for (int layer = 0; layer < kLayers; ++layer) {
      if (paidIn < 0 && budget.pays(static_cast<std::uint64_t>(iteration), 1, kShare))
        paidIn = iteration;
      budget.addCalls(static_cast<std::uint64_t>(iteration), 1, 1);
    }
  EXPECT_GE(paidIn, kRepetitions);
  EXPECT_LE(paidIn, kRepetitions + 1);
}

TEST(MeasuringBudgetTest, WhatItSpendsAtOnceIsBounded) {
  MeasuringBudget budget;
  constexpr int kProblems = 1000;
  double spentMs = 0;
  for (std::uint64_t pass = 0; pass < 8; ++pass)
    for (int i = 0; i < kProblems; ++i) {
      budget.addCalls(pass, 1, 0.1);
      if (!budget.pays(pass + 1, 0.1, kShare)) continue;
      budget.spend(30);
      spentMs += 30;
    }
  EXPECT_GT(spentMs, 0);
  EXPECT_LE(spentMs, MeasuringBudget::kSettledMs + kShare * 8 * kProblems * 0.1 + 30);
}

TEST(MeasuringBudgetTest, WhatWasAskedForLeavesTheRestItsShare) {
  MeasuringBudget budget;
  budget.addCalls(0, 1, 1e5);  // a new one: the program has not settled
  ASSERT_TRUE(budget.pays(kRepetitions, 1, kShare));
  budget.learn(1, budget.expectedCostMs(1));  // a query's, however long it took
  EXPECT_TRUE(budget.pays(kRepetitions, 1, kShare));
  budget.spend(kShare * 1e5);
  EXPECT_FALSE(budget.pays(kRepetitions, 1, kShare));
}

TEST(MeasuringBudgetTest, WhatLacksWorkspacePaysOnceItHasTakenAsLong) {
  MeasuringBudget budget;
  budget.spend(1e9);
  const double costMs = budget.expectedCostMs(2);
  const auto calls = static_cast<std::uint64_t>(costMs / 2);
  EXPECT_FALSE(budget.paysBack(calls - 1, 2, kShare));
  EXPECT_TRUE(budget.paysBack(calls + 1, 2, kShare));
  EXPECT_FALSE(budget.paysBack(calls + 1, 2, 0)) << "never unasked";
  EXPECT_FALSE(budget.pays(calls + 1, 2, kShare)) << "nothing is left of the share";
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
