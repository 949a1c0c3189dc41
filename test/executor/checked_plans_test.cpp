// The memory of plans that were checked.
#include "executor/checked_plans.hpp"

#include <gtest/gtest.h>

namespace ucudnn {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 40;

/// Without steps: it needs nothing, and cuDNN isn't asked.
Plan planOf(std::uint64_t id) {
  Plan plan;
  plan.id = id;
  return plan;
}

// A program of changing shapes makes plans for ever, and cuDNN may refuse each.
TEST(CheckedPlansTest, RefusedPlansAreBoundedToo) {
  CheckedPlans checked;
  const Plan kept = planOf(1);
  checked.refuse(kept);
  for (std::uint64_t id = 2; id < 3 * CheckedPlans::kMostPlans; ++id) {
    checked.refuse(planOf(id));
    ASSERT_FALSE(checked.accepts(nullptr, kept, kMuch)) << "it is asked about, " << id;
    ASSERT_LE(checked.size(), CheckedPlans::kMostPlans);
  }
  EXPECT_EQ(CheckedPlans::kMostPlans, checked.size());
  EXPECT_FALSE(checked.accepts(nullptr, planOf(3 * CheckedPlans::kMostPlans - 1), kMuch));
}

TEST(CheckedPlansTest, AcceptedPlansAreForgottenInTurn) {
  CheckedPlans checked;
  for (std::uint64_t id = 1; id < 3 * CheckedPlans::kMostPlans; ++id)
    ASSERT_TRUE(checked.accepts(nullptr, planOf(id), 0));
  EXPECT_EQ(CheckedPlans::kMostPlans, checked.size());
}

}  // namespace
}  // namespace ucudnn
