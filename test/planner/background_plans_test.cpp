// Plans that are made beside the calls that are to run them.
#include "planner/background_plans.hpp"

#include <atomic>
#include <future>
#include <stdexcept>

#include "kernels/engines.hpp"
#include "planner/planner.hpp"
#include "planner_engines_fixture.hpp"

namespace ucudnn::test {
namespace {

class BackgroundPlansTest : public PlannerEnginesTest {
 protected:
  /// A client's call whose own engine is slower than the plan for it, which the database knows.
  void SetUp() override {
    PlannerEnginesTest::SetUp();
    Planner planner;
    const auto offers = offeredKernels(handle_.get(),
                                       problem_,
                                       ProblemDescriptors(problem_).get(),
                                       true,
                                       nullptr,
                                       Calls::kOverwriting);
    for (const KernelOffer& offer : offers) {
      if (offer.kernel.source != kEngines) continue;
      own_ = OwnKernel{offer.kernel, offer.workspaceBytes};
      const auto plan = planner.plan(call(planner));
      if (!plan) continue;
      text_ = toText(*plan);
      return;
    }
    throw std::logic_error("no engine is slower than its plan");
  }

  PlanRequest call(Planner& planner) const {
    PlanRequest wanted = request(planner, own_.workspaceBytes, problem_);
    wanted.suitsEngines = true;
    wanted.calls = CallKind::kOverwriting;
    wanted.own = own_;
    return wanted;
  }

  const Problem problem_ = problemOf(Operation::kForward);
  OwnKernel own_;
  std::string text_;  ///< of the plan
};

TEST_F(BackgroundPlansTest, ACallRunsItsOwnKernelUntilItsPlanIsReady) {
  Planner planner;
  const PlanRequest wanted = call(planner);
  const PlanAnswer first = planner.answer(wanted, Measuring::kWhenItPays);
  EXPECT_FALSE(first.plan);
  EXPECT_FALSE(first.isFinal);
  EXPECT_TRUE(first.isOngoing) << "the next call has to ask again";
  planner.waitFor(wanted);
  const PlanAnswer next = planner.answer(wanted, Measuring::kWhenItPays);
  ASSERT_TRUE(next.plan);
  EXPECT_EQ(text_, toText(*next.plan));
  EXPECT_EQ(0, measured(planner));
}

/// Who asks for workspace waits for a plan only if it saves some.
TEST_F(BackgroundPlansTest, AQueryWaitsForNoPlanThatSavesNoWorkspace) {
  for (const bool savesSome : {false, true}) {
    Planner planner;
    PlanRequest query = call(planner);
    query.own->workspaceBytes = savesSome ? kWorthTellingLess + own_.workspaceBytes : 0;
    query.mayTellLess = true;
    const PlanAnswer found = planner.answer(query, Measuring::kIfKnown);
    EXPECT_EQ(found.plan != nullptr, savesSome);
    EXPECT_EQ(found.isFinal, savesSome);
    EXPECT_EQ(planner.statistics().plans, savesSome ? 1 : 0);
    if (savesSome) continue;
    EXPECT_FALSE(planner.answer(call(planner), Measuring::kWhenItPays).isFinal);
    planner.waitFor(call(planner));
    EXPECT_TRUE(planner.answer(call(planner), Measuring::kWhenItPays).plan) << "calls have it made";
    EXPECT_FALSE(planner.answer(query, Measuring::kIfKnown).plan) << "as it was told before";
    query.own.reset();
    EXPECT_TRUE(planner.answer(query, Measuring::kIfKnown).plan) << "for another kernel";
  }
}

TEST_F(BackgroundPlansTest, ACallInPartsGoesOnInPartsUntilItsPlanIsReady) {
  settings_.databasePath.clear();
  settings_.benchmarkShare = 1e6;
  settings_.benchmarkStallMs = 1e-6;  // a step a call: a fast host would take all of them at once
  Planner planner;
  PlanRequest wanted = call(planner);
  wanted.own->workspaceBytes = 2 * own_.workspaceBytes;  // as if it lacked some
  wanted.lacksWorkspace = true;
  wanted.callsSince = 100000;
  const auto answer = [&] { return planner.answer(wanted, Measuring::kWhenItPays); };
  const auto parts = answer().plan;
  ASSERT_TRUE(parts && !parts->measured);
  PlanAnswer found;
  do {
    found = answer();
    EXPECT_EQ(parts, found.plan);
    EXPECT_TRUE(found.isOngoing);
  } while (measured(planner) == 0);
  planner.waitFor(wanted);
  found = answer();
  ASSERT_TRUE(found.plan && found.plan->measured);
  EXPECT_EQ(found.plan, answer().plan) << "also while the other kernels are timed";
}

TEST_F(BackgroundPlansTest, ACallThatCannotDoWithoutWaits) {
  const auto answer = [&](auto change) {
    Planner planner;
    PlanRequest wanted = call(planner);
    change(wanted);
    return planner.answer(wanted, Measuring::kWhenItPays);
  };
  EXPECT_TRUE(answer([](PlanRequest& wanted) { wanted.lacksWorkspace = true; }).plan);
  EXPECT_TRUE(answer([](PlanRequest& wanted) { wanted.own.reset(); }).plan);
  settings_.backgroundPlanning = false;
  const PlanAnswer found = answer([](PlanRequest&) {});
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(text_, toText(*found.plan));
}

TEST_F(BackgroundPlansTest, ACapturedCallHasWhatWasBegun) {
  Planner planner;
  const PlanRequest wanted = call(planner);
  EXPECT_FALSE(planner.answer(wanted, Measuring::kWhenItPays).plan);
  planner.waitFor(wanted);
  EXPECT_TRUE(planner.answer(wanted, Measuring::kNever).plan);
}

TEST_F(BackgroundPlansTest, WhereNoThreadHelpsTheCallMakesIt) {
  Planner planner;
  PlanRequest wanted = call(planner);
  wanted.device = 99;  // the thread's handle can't be made
  EXPECT_FALSE(planner.answer(wanted, Measuring::kWhenItPays).plan);
  planner.waitFor(wanted);
  const PlanAnswer found = planner.answer(wanted, Measuring::kWhenItPays);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(text_, toText(*found.plan));
}

TEST_F(BackgroundPlansTest, OneThatFailsIsLeftToTheCall) {
  BackgroundPlans plans;
  Planner planner;
  const PlanRequest wanted = call(planner);
  EXPECT_TRUE(plans.begin(wanted, [](const PlanRequest&) { throw std::bad_alloc(); }));
  plans.wait(wanted);
  EXPECT_FALSE(plans.begin(wanted, [](const PlanRequest&) {}));
  PlanRequest other = wanted;
  other.limitBytes += 1;
  EXPECT_TRUE(plans.begin(other, [](const PlanRequest&) {}));
}

TEST_F(BackgroundPlansTest, IsMadeOnceForAllThatAsk) {
  BackgroundPlans plans;
  Planner planner;
  const PlanRequest wanted = call(planner);
  std::atomic<int> made{0};
  std::promise<void> go;
  const auto wait = go.get_future().share();
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(plans.begin(wanted, [&made, wait](const PlanRequest& request) {
      EXPECT_NE(nullptr, request.handle);
      wait.wait();
      ++made;
    }));
  go.set_value();
  plans.wait(wanted);
  EXPECT_EQ(1, made);
}

}  // namespace
}  // namespace ucudnn::test
