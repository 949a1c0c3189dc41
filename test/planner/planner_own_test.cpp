// A client's own kernel beside what a plan would run.
#include "planner/planner.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "kernels/engines.hpp"
#include "planner/configuration_times.hpp"
#include "planner_engines_fixture.hpp"
#include "support/operations.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

class PlannerOwnTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
  }

  /// A call of the graph API by that kernel, with all the workspace that it needs.
  PlanRequest callOf(Planner& planner, const Problem& problem, const KernelOffer& own) const {
    PlanRequest wanted = request(planner, own.workspaceBytes, problem);
    wanted.suitsEngines = true;
    wanted.calls = CallKind::kOverwriting;
    wanted.own = OwnKernel{own.kernel, own.workspaceBytes};
    return wanted;
  }

  std::vector<KernelOffer> engines(const Problem& problem, Calls calls) const {
    auto offers = offeredKernels(
        handle_.get(), problem, ProblemDescriptors(problem).get(), true, nullptr, calls);
    offers.erase(
        std::remove_if(offers.begin(),
                       offers.end(),
                       [](const KernelOffer& offer) { return offer.kernel.source != kEngines; }),
        offers.end());
    return offers;
  }

  /// One that cuDNN's heuristics do not name, as a client may have set knobs of its own.
  KernelOffer unnamed(const Problem& problem) const {
    const auto named = engines(problem, Calls::kOverwriting);
    for (const auto& choice : variantsOf(handle_.get(), problem, named.front().kernel))
      for (const Kernel kernel : choice) {
        const bool isNamed = std::any_of(named.begin(), named.end(), [&](const KernelOffer& offer) {
          return offer.kernel == kernel;
        });
        const auto offer =
            offeredKernel(handle_.get(), problem, nullptr, kernel, nullptr, Calls::kOverwriting);
        if (!isNamed && offer) return *offer;
      }
    throw std::logic_error("each variant is named");
  }

  static double timeOf(Planner& planner, const PlanRequest& wanted) {
    for (const Measurement& m : planner.undivided(wanted))
      if (m.kernel == wanted.own->kernel) return std::min(m.timeMs, m.deviceMs);
    throw std::logic_error("the own kernel has not been timed");
  }
};

TEST_F(PlannerOwnTest, APlanTakesItsPlaceOnlyWhereItIsFaster) {
  int replaced = 0, kept = 0;
  for (const Operation operation : kOperations) {
    const Problem problem = problemOf(operation);
    Planner planner;
    for (const KernelOffer& own : engines(problem, Calls::kOverwriting)) {
      const PlanRequest wanted = callOf(planner, problem, own);
      const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
      const double ownMs = timeOf(planner, wanted);
      if (found.plan) {
        ++replaced;
        EXPECT_LE(found.plan->predictedMs, ownMs);
        EXPECT_LE(found.plan->workspaceBytes, own.workspaceBytes);
      } else {
        ++kept;
        EXPECT_TRUE(found.ownIsBest);
        EXPECT_TRUE(found.isFinal);
        PlanRequest any = wanted;
        any.own.reset();
        const auto plan = planner.plan(any);
        ASSERT_TRUE(plan);
        const Plan& slower = plan->enqueued ? *plan->enqueued : *plan;
        EXPECT_GT(slower.predictedMs * kSplitGain, ownMs);
      }
    }
  }
  EXPECT_LT(0, replaced);
  EXPECT_LT(0, kept);
}

TEST_F(PlannerOwnTest, GainsBelowWhatAPlannedCallCostsDoNotReplaceIt) {
  int small = 0;
  for (const Operation operation : kOperations)
    for (const int channels : {24, 48, 192}) {
      Problem problem = sampleProblem(operation, 32, channels);
      problem.mathType = CUDNN_DEFAULT_MATH;
      Planner planner;
      for (const KernelOffer& own : engines(problem, Calls::kOverwriting)) {
        const PlanRequest wanted = callOf(planner, problem, own);
        const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
        PlanRequest any = wanted;
        any.own.reset();
        const auto plan = planner.plan(any);
        ASSERT_TRUE(plan);
        const double ownMs = timeOf(planner, wanted), gainedMs = ownMs - plan->predictedMs;
        if (gainedMs <= 0.02 * ownMs || gainedMs >= kLeastGainMs) continue;
        ++small;
        EXPECT_FALSE(found.plan) << gainedMs << " of " << ownMs << " ms";
      }
    }
  EXPECT_LT(0, small);
}

TEST_F(PlannerOwnTest, OneThatHeuristicsDoNotNameIsTimedToo) {
  for (const Operation operation : kOperations) {
    const Problem problem = problemOf(operation);
    Planner planner;
    const KernelOffer own = unnamed(problem);
    const PlanRequest wanted = callOf(planner, problem, own);
    planner.answer(wanted, Measuring::kNow);
    EXPECT_LT(0, timeOf(planner, wanted)) << toText(operation);
  }
}

TEST_F(PlannerOwnTest, NothingTakesItsPlaceBeforeItIsTimed) {
  const Problem problem = problemOf(Operation::kForward);
  Planner planner;
  const KernelOffer own = unnamed(problem);
  PlanRequest others = callOf(planner, problem, own);
  others.own.reset();
  ASSERT_TRUE(planner.plan(others));
  const auto before = measured(planner);
  const PlanRequest wanted = callOf(planner, problem, own);
  const PlanAnswer unknown = planner.answer(wanted, Measuring::kIfKnown);
  EXPECT_FALSE(unknown.plan);
  EXPECT_FALSE(unknown.isFinal);
  const PlanAnswer known = planner.answer(wanted, Measuring::kNow);
  EXPECT_TRUE(known.plan || known.ownIsBest);
  EXPECT_TRUE(known.isFinal);
  EXPECT_LE(measured(planner), before + 2) << "it is timed, and at one more size at most";
}

TEST_F(PlannerOwnTest, OneThatCannotBeTimedStays) {
  const Problem problem = problemOf(Operation::kForward);
  Planner planner;
  KernelOffer own = unnamed(problem);
  EngineConfiguration unknown = engineConfigurationOf(own.kernel.id);
  unknown.engine = 4711;
  own.kernel.id = idOf(unknown);
  const PlanRequest wanted = callOf(planner, problem, own);
  for (int call = 0; call < 2; ++call) {
    const auto before = measured(planner);
    const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
    EXPECT_FALSE(found.plan);
    EXPECT_TRUE(found.isFinal);
    EXPECT_EQ(call == 0, measured(planner) > before) << "it is not tried again";
  }
}

// Workspace that is not granted yet can be saved at no cost of time.
TEST_F(PlannerOwnTest, MuchLessWorkspaceReplacesItWhereItIsAskedFor) {
  int saved = 0;
  for (const Operation operation : kOperations) {
    const Problem problem = problemOf(operation);
    Planner planner;
    for (KernelOffer own : engines(problem, Calls::kOverwriting)) {
      own.workspaceBytes += 2 * kWorthTellingLess;  // as a client may be told by its own cuDNN
      PlanRequest wanted = callOf(planner, problem, own);
      wanted.mayTellLess = true;
      const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
      const double ownMs = timeOf(planner, wanted) + kLaunchMs;
      if (!found.plan || found.plan->predictedMs * kSplitGain <= ownMs) continue;
      ++saved;
      EXPECT_LE(found.plan->predictedMs, kSplitGain * ownMs);
      EXPECT_LE(found.plan->workspaceBytes + kWorthTellingLess, own.workspaceBytes);
      wanted.mayTellLess = false;
      EXPECT_FALSE(planner.answer(wanted, Measuring::kNow).plan) << "the workspace is granted";
    }
  }
  EXPECT_LT(0, saved);
}

// Some engines overwrite their output, but can't add to it.
TEST_F(PlannerOwnTest, EnginesThatCannotAddRunCallsThatOverwrite) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();  // the others can add
  std::set<Kernel> overwriteOnly;
  for (const Operation operation : kOperations) {
    const Problem problem = problemOf(operation);
    std::set<Kernel> adding;
    for (const KernelOffer& offer : engines(problem, Calls::kAll)) adding.insert(offer.kernel);
    Planner planner;
    for (const KernelOffer& offer : engines(problem, Calls::kOverwriting)) {
      if (adding.count(offer.kernel) != 0) continue;
      overwriteOnly.insert(offer.kernel);
      EXPECT_EQ(offer.calls, Calls::kOverwriting);
      const PlanRequest wanted = callOf(planner, problem, offer);
      const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
      EXPECT_TRUE(found.plan || found.ownIsBest);
      // Calls that add get a plan that can.
      PlanRequest adds = wanted;
      adds.own.reset();
      adds.calls = CallKind::kAdding;
      const auto plan = planner.plan(adds);
      if (!plan) continue;
      for (const Plan::Step& step : plan->steps) EXPECT_FALSE(step.kernel == offer.kernel);
      PlanRequest overwrites = wanted;
      overwrites.own.reset();
      EXPECT_EQ(planner.plan(overwrites) != nullptr, true) << "it is not forgotten";
      EXPECT_LT(0, timeOf(planner, wanted));
    }
  }
  EXPECT_FALSE(overwriteOnly.empty());
}

}  // namespace
}  // namespace ucudnn::test
