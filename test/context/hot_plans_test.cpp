#include "context/hot_plans.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::sampleProblem;

HotPlans::Key key(int batch = 8, std::size_t workspaceBytes = 0, bool deterministic = false) {
  static std::map<int, Problem> problems;  // a key names its call's
  HotPlans::Terms terms;
  terms.workspaceBytes = workspaceBytes;
  terms.deterministic = deterministic;
  return {problems.emplace(batch, sampleProblem(Operation::kForward, batch)).first->second, terms};
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
  // Behind itself it is looked for first, whatever the hash says.
  for (int i = 0; i < 2; ++i) EXPECT_NE(table.find(key(), 1), nullptr);
  const auto expectNone = [&](const char* part, auto change) {
    HotPlans::Key other = key();
    change(other);
    EXPECT_EQ(table.find(other, 1), nullptr) << part;
  };
  expectNone("execution", [](HotPlans::Key& other) { other.isExecution = true; });
  expectNone("equal bits", [](HotPlans::Key& other) { other.repeatsBits = true; });
  expectNone("own kernel", [](HotPlans::Key& other) { other.own = 0; });
  expectNone("layer", [](HotPlans::Key& other) { other.layer = 1; });
  expectNone("stream", [](HotPlans::Key& other) { other.stream = 1; });
}

TEST(HotPlansTest, ThatThereIsNoPlanIsRememberedToo) {
  HotPlans table;
  table.put(key(), 1, nullptr);
  const HotPlans::Entry* const entry = table.find(key(), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->plan, nullptr);
}

TEST(HotPlansTest, PlansTakeTurnsToBeCheckedAgain) {
  std::map<std::uint32_t, int> checks;  // of a step
  for (int batch = 1; batch <= 150; ++batch) ++checks[HotPlans::checkedAfter(key(batch))];
  EXPECT_GT(checks.begin()->first, HotPlans::kMostUses);
  EXPECT_LT(checks.rbegin()->first, 999U) << "with the 1,000th call at the latest";
  for (const auto& [step, count] : checks) EXPECT_LE(count, 3) << step;
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

// The table first looks at the entry that came next the last time.
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

/// How many of the uses the planner is asked about, where each answer is for now.
int askedIn(HotPlans& table, int uses) {
  int asked = 0;
  for (int use = 0; use < uses; ++use) {
    HotPlans::Entry* const entry = table.find(key(), 1);
    if (entry == nullptr || !entry->use()) {
      ++asked;
      table.putForNow(key(), 1, nullptr, "not yet");
    }
  }
  return asked;
}

TEST(HotPlansTest, WhatHoldsForNowIsAskedAtEachOfTheFirstCallsThenSeldom) {
  HotPlans table;
  EXPECT_EQ(askedIn(table, 8), 8);
  const int later = askedIn(table, 1000);
  EXPECT_GE(later, 1000 / (HotPlans::kMostUses + 1));
  EXPECT_LE(later, 30);
}

TEST(HotPlansTest, WhatHoldsForNowIsCountedUntilItIsAskedAgain) {
  HotPlans table;
  for (std::uint32_t asked = 0; asked <= HotPlans::kAskedEach; ++asked)
    table.putForNow(key(), 1, nullptr, "not yet");
  HotPlans::Entry* const entry = table.find(key(), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_STREQ(entry->why, "not yet");
  ASSERT_EQ(entry->goodFor, 2u);
  EXPECT_TRUE(entry->use());
  EXPECT_TRUE(entry->use());
  EXPECT_FALSE(entry->use());
  EXPECT_EQ(entry->uses, 3u);
}

TEST(HotPlansTest, ThePlansKernelIsPartOfTheKey) {
  HotPlans table;
  HotPlans::Key own = key();
  own.own = 7;
  table.put(own, 1, planFor(own));
  EXPECT_EQ(table.find(key(), 1), nullptr);
  ASSERT_NE(table.find(own, 1), nullptr);
  EXPECT_TRUE(table.find(own, 1)->use());
}

TEST(HotPlansTest, WhatAKeyHasFoundATicketFinds) {
  HotPlans table;
  table.put(key(8), 1, planFor(key(8)));
  table.put(key(9), 1, planFor(key(9)));
  HotPlans::Entry* const entry = table.find(key(8), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(table.find(Ticket(entry->ticket), key(8), 1), entry);
  EXPECT_NE(table.find(key(9), 1)->ticket, entry->ticket);
}

TEST(HotPlansTest, WhatIsFoundByTheKeyLeavesItsTicket) {
  HotPlans table;
  table.put(key(8), 1, planFor(key(8)));
  Ticket ticket{0};
  EXPECT_EQ(table.find(&ticket, key(9), 1), nullptr);
  EXPECT_EQ(ticket, 0u);
  HotPlans::Entry* const entry = table.find(&ticket, key(8), 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(ticket, entry->ticket);
  EXPECT_EQ(table.find(ticket, key(8), 1), entry);
  EXPECT_EQ(table.find(nullptr, key(8), 1), entry) << "none is kept";
}

TEST(HotPlansTest, ATicketIsOfItsTermsAndEpoch) {
  HotPlans table;
  table.put(key(8), 1, planFor(key(8)));
  const Ticket ticket{table.find(key(8), 1)->ticket};
  EXPECT_EQ(table.find(ticket, key(8, 512), 1), nullptr);
  EXPECT_EQ(table.find(ticket, key(8, 0, true), 1), nullptr);
  HotPlans::Terms repeating;
  repeating.repeatsBits = true;
  EXPECT_EQ(table.find(ticket, repeating, 1), nullptr);
  EXPECT_EQ(table.find(ticket, key(8), 2), nullptr);
}

TEST(HotPlansTest, ATicketFindsWhatItsKeyHasGotSince) {
  HotPlans table;
  table.putForNow(key(8), 1, nullptr, "not yet");
  const Ticket ticket{table.find(key(8), 1)->ticket};
  const auto plan = planFor(key(8));
  table.put(key(8), 1, plan);
  ASSERT_NE(table.find(ticket, key(8), 1), nullptr);
  EXPECT_EQ(table.find(ticket, key(8), 1)->plan, plan);
}

TEST(HotPlansTest, ATicketsEntryIsGoneWithItsKey) {
  HotPlans table;
  const HotPlans::Key first = key(8, 512), second = key(8, 513);  // of one slot
  table.put(first, 1, planFor(first));
  const Ticket ticket{table.find(first, 1)->ticket};
  table.put(second, 1, planFor(second));
  EXPECT_EQ(table.find(ticket, first, 1), nullptr);
  EXPECT_EQ(table.find(ticket, second, 1), nullptr);
  table.put(first, 1, planFor(first));
  EXPECT_EQ(table.find(ticket, first, 1), nullptr) << "perhaps it is another problem's by now";
  table.clear();
  EXPECT_EQ(table.find(ticket, first, 1), nullptr);
}

TEST(HotPlansTest, AnotherTablesTicketFindsNothing) {
  HotPlans table, others;
  table.put(key(8), 1, planFor(key(8)));
  others.put(key(8), 1, planFor(key(8)));
  EXPECT_EQ(table.find(Ticket(others.find(key(8), 1)->ticket), key(8), 1), nullptr);
  EXPECT_EQ(table.find(Ticket(0), {}, 1), nullptr) << "none has been found yet";
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
