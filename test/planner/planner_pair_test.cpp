// When a plan holds a second one, for calls that aren't replayed.
#include <string>

#include "changed_database.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerPairTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
    settings_.batchSizePolicy = BatchSizePolicy::kUndivided;
  }

  /// The plan of another process in which IMPLICIT_GEMM takes `plain` ms and IMPLICIT_PRECOMP_GEMM
  /// `precomputed` ms; all others take longer.
  std::shared_ptr<const Plan> planOf(KernelTiming plain, KernelTiming precomputed) {
    Planner first;
    first.plan(request(first, kDividedLimit));
    const auto set = [&](const std::string& kernels, KernelTiming timing) {
      changeDatabase(settings_.databasePath,
                     "UPDATE measurement SET time_ms = " + std::to_string(timing.timeMs) +
                         ", device_ms = " + std::to_string(timing.deviceMs) + " WHERE kernel " +
                         kernels);
    };
    set("IS NOT NULL", {100, 100});
    set("LIKE 'IMPLICIT_GEMM/%'", plain);
    set("LIKE 'IMPLICIT_PRECOMP_GEMM/%'", precomputed);
    Planner planner;
    return planner.plan(request(planner, kDividedLimit));
  }

  static bool runs(const Plan& plan, const char* kernel) {
    return toText(plan).find(kernel) != std::string::npos;
  }

  TemporaryDirectory directory_;
};

TEST_F(PlannerPairTest, WhatIsFasterWhenEnqueuedIsASecondPlan) {
  const auto plan = planOf({1.0, 0.9}, {1.02, 0.5});
  ASSERT_TRUE(plan && plan->replayed && plan->enqueued);
  EXPECT_TRUE(runs(*plan, "IMPLICIT_PRECOMP_GEMM")) << toText(*plan);
  EXPECT_TRUE(runs(*plan->enqueued, "IMPLICIT_GEMM")) << toText(*plan->enqueued);
}

TEST_F(PlannerPairTest, ThereIsNoneForLessThanTheNoiseOfTimings) {
  const auto plan = planOf({1.0, 0.9}, {1.005, 0.5});
  ASSERT_TRUE(plan && plan->replayed);
  EXPECT_FALSE(plan->enqueued) << toText(*plan->enqueued);
  EXPECT_TRUE(runs(*plan, "IMPLICIT_PRECOMP_GEMM")) << toText(*plan);
}

TEST_F(PlannerPairTest, WhatReplayDoesNotGainByRunsAsItIsFasterEnqueued) {
  const auto plan = planOf({1.0, 1.0}, {1.002, 0.999});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->replayed);
  EXPECT_FALSE(plan->enqueued);
  EXPECT_TRUE(runs(*plan, "IMPLICIT_GEMM")) << toText(*plan);
}

/// Calls with UCUDNN_DETERMINISTIC have the first one's bits.
TEST_F(PlannerPairTest, ThereIsNoneWhereRepeatedCallsMustBeAlike) {
  settings_.deterministic = true;
  const auto plan = planOf({1.0, 0.9}, {1.02, 0.5});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->enqueued);
}

}  // namespace
}  // namespace ucudnn
