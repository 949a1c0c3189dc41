#include "context/hot_plans.hpp"

#include <gtest/gtest.h>

#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::sampleProblem;

HotPlans::Key key(int batch = 8, std::size_t workspaceBytes = 0, bool deterministic = false) {
  return {sampleProblem(Operation::kForward, batch), workspaceBytes, deterministic};
}

std::shared_ptr<const Plan> planFor(const HotPlans::Key& k) {
  auto plan = std::make_shared<Plan>();
  plan->problem = k.problem;
  return plan;
}

TEST(HotPlansTest, AnEmptyTableKnowsNothing) {
  EXPECT_EQ(HotPlans().find(key(), 1), nullptr);
}

TEST(HotPlansTest, WhatWasPutIsFound) {
  HotPlans table;
  const auto plan = planFor(key());
  table.put(key(), 1, plan);
  const HotPlans::Entry* const entry = table.find(key(), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->plan, plan);
}

TEST(HotPlansTest, EveryPartOfTheKeyCounts) {
  HotPlans table;
  table.put(key(), 1, planFor(key()));
  EXPECT_EQ(table.find(key(9), 1), nullptr);
  EXPECT_EQ(table.find(key(8, 512), 1), nullptr);
  EXPECT_EQ(table.find(key(8, 1), 1), nullptr) << "a byte, which the hash does not tell apart";
  EXPECT_EQ(table.find(key(8, 0, true), 1), nullptr);
}

TEST(HotPlansTest, ThatThereIsNoPlanIsRememberedToo) {
  HotPlans table;
  table.put(key(), 1, nullptr);
  const HotPlans::Entry* const entry = table.find(key(), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->plan, nullptr);
}

TEST(HotPlansTest, AnotherEpochHidesWhatIsThere) {
  HotPlans table;
  table.put(key(), 1, planFor(key()));
  EXPECT_EQ(table.find(key(), 2), nullptr);
  EXPECT_NE(table.find(key(), 1), nullptr);
}

TEST(HotPlansTest, AnotherEpochsFirstPlanEmptiesTheTable) {
  HotPlans table;
  table.put(key(8), 1, planFor(key(8)));
  table.put(key(9), 2, planFor(key(9)));
  EXPECT_EQ(table.find(key(8), 2), nullptr);
  EXPECT_EQ(table.find(key(8), 1), nullptr);
  EXPECT_NE(table.find(key(9), 2), nullptr);
}

// What came next the last time is looked at first.
TEST(HotPlansTest, InWhateverOrderEachKeyHasItsOwnPlan) {
  HotPlans table;
  for (int batch = 1; batch <= 3; ++batch) table.put(key(batch), 1, planFor(key(batch)));
  for (const int batch : {1, 2, 3, 1, 2, 3, 3, 2, 1, 1, 3, 2, 4, 2, 3}) {
    const HotPlans::Entry* const entry = table.find(key(batch), 1);
    EXPECT_EQ(entry == nullptr ? 4 : entry->plan->problem.batch(), batch);
  }
  const auto later = planFor(key(2));
  table.put(key(2), 1, later);  // where 3 is followed by 2
  EXPECT_NE(table.find(key(3), 1), nullptr);
  EXPECT_EQ(table.find(key(2), 1)->plan, later);
}

// Workspaces that differ below the hash's resolution share a slot.
TEST(HotPlansTest, OfKeysInOneSlotTheLaterStays) {
  const HotPlans::Key first = key(8, 512), second = key(8, 513);
  ASSERT_EQ(first.hash(), second.hash());
  HotPlans table;
  table.put(first, 1, planFor(first));
  const auto plan = planFor(second);
  table.put(second, 1, plan);
  EXPECT_EQ(table.find(first, 1), nullptr);
  ASSERT_NE(table.find(second, 1), nullptr);
  EXPECT_EQ(table.find(second, 1)->plan, plan);
}

TEST(HotPlansTest, AForgottenKeyIsKnownToHaveNoPlan) {
  HotPlans table;
  table.put(key(), 1, planFor(key()));
  table.forget(key());
  ASSERT_NE(table.find(key(), 1), nullptr);
  EXPECT_EQ(table.find(key(), 1)->plan, nullptr);
}

TEST(HotPlansTest, ForgettingAKeyLeavesTheOneInItsSlot) {
  HotPlans table;
  table.forget(key());  // of an empty table: nothing happens
  table.put(key(8, 512), 1, planFor(key(8, 512)));
  table.forget(key(8, 513));
  ASSERT_NE(table.find(key(8, 512), 1), nullptr);
  EXPECT_NE(table.find(key(8, 512), 1)->plan, nullptr);
}

TEST(HotPlansTest, AClearedTableKnowsNothing) {
  HotPlans table;
  table.put(key(), 1, planFor(key()));
  table.clear();
  EXPECT_EQ(table.find(key(), 1), nullptr);
  table.put(key(), 1, planFor(key()));
  EXPECT_NE(table.find(key(), 1), nullptr);
}

}  // namespace
}  // namespace ucudnn
