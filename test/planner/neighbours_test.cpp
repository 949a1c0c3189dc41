// Problems of another image size than those that were measured.
#include "planner/neighbours.hpp"

#include "kernels/engines.hpp"
#include "planner/frozen_plans.hpp"
#include "planner/planner.hpp"
#include "planner_engines_fixture.hpp"
#include "support/files.hpp"

namespace ucudnn::test {
namespace {

/// largeProblem on another image.
Problem onImage(int height, int width) {
  Problem problem = largeProblem();
  problem.mathType = CUDNN_DEFAULT_MATH;
  const int pixels = height * width;
  problem.xSizes = {problem.batch(), 64, height, width, 0};
  problem.xStrides = {64 * pixels, pixels, width, 1, 0};
  problem.ySizes = {problem.batch(), 192, height, width, 0};
  problem.yStrides = {192 * pixels, pixels, width, 1, 0};
  return problem;
}

KnownKey keyOf(const Problem& problem) {
  return {0, problem.withBatch(0)};
}

std::vector<Problem> neighboursOf(const Neighbours& all, const Problem& problem) {
  std::vector<Problem> found;
  all.forEach(keyOf(problem), [&](const KnownKey& key) {
    found.push_back(key.problem);
    return false;
  });
  return found;
}

TEST(NeighboursTest, TheNearestImageIsFirst) {
  Neighbours all;
  for (const int height : {8, 32, 27, 100}) all.add(keyOf(onImage(height, 30)));
  all.add(keyOf(onImage(30, 30)));
  const auto found = neighboursOf(all, onImage(30, 30));
  ASSERT_EQ(4U, found.size()) << "but for itself";
  EXPECT_EQ(onImage(32, 30).withBatch(0), found[0]);
  EXPECT_EQ(onImage(27, 30).withBatch(0), found[1]);
  EXPECT_EQ(onImage(100, 30).withBatch(0), found[2]);
}

TEST(NeighboursTest, NothingButTheImageDiffers) {
  Neighbours all;
  all.add(keyOf(onImage(20, 20)));
  const Problem other = onImage(30, 30);
  EXPECT_EQ(1U, neighboursOf(all, other).size());
  Problem changed = other;
  changed.pads = {0, 0, 0};
  EXPECT_TRUE(neighboursOf(all, changed).empty());
  changed = other;
  changed.xType = changed.wType = changed.yType = CUDNN_DATA_HALF;
  EXPECT_TRUE(neighboursOf(all, changed).empty());
  changed = other;  // channels last
  changed.xStrides = {64 * 900, 1, 64 * 30, 64, 0};
  EXPECT_TRUE(neighboursOf(all, changed).empty());
  changed = other;  // with gaps
  changed.xStrides[2] = 31;
  EXPECT_TRUE(neighboursOf(all, changed).empty());
  all.add(keyOf(changed));
  EXPECT_TRUE(neighboursOf(all, changed).empty());
}

class NeighboursPlanTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
    settings_.backgroundPlanning = false;
    // Measuring that is due is done, however slow the machine is.
    settings_.benchmarkShare = 1e6;
  }

  /// The slowest engine that cuDNN offers, or the fastest.
  PlanRequest call(Planner& planner, const Problem& problem, bool bySlowest = true) const {
    PlanRequest wanted = request(planner, kEnginesLimit, problem);
    wanted.suitsEngines = true;
    wanted.calls = CallKind::kOverwriting;
    Planner other;
    const Measurement* own = nullptr;
    const auto measured = other.measurements(wanted);
    for (const Measurement& m : measured.at(problem.batch()).kernels) {
      if (m.kernel.source != kEngines || m.workspaceBytes > kEnginesLimit) continue;
      if (own == nullptr || (bySlowest ? m.timeMs > own->timeMs : m.timeMs < own->timeMs)) own = &m;
    }
    wanted.own = OwnKernel{own->kernel, own->workspaceBytes};
    return wanted;
  }

  /// The answer, once so many of its calls have been made.
  static PlanAnswer after(Planner& planner, PlanRequest wanted, std::uint32_t calls) {
    PlanAnswer found;
    wanted.callsSince = calls;
    do {
      found = planner.answer(wanted, Measuring::kWhenItPays);
      wanted.callsSince = 1;
    } while (found.isOngoing);
    return found;
  }

  static constexpr std::uint32_t kFew = 1500, kMany = 100000000;
};

TEST_F(NeighboursPlanTest, ItsKernelsAreLookedAtSoonAndAlone) {
  Planner planner;
  const Problem first = onImage(27, 27), next = onImage(30, 31);
  const PlanRequest wanted = call(planner, next);
  EXPECT_FALSE(after(planner, wanted, kFew).plan) << "all kernels would take longer";
  const auto before = measured(planner);
  EXPECT_EQ(0, before);
  ASSERT_TRUE(planner.plan(call(planner, first)));
  const auto ofFirst = measured(planner);
  const PlanAnswer found = after(planner, wanted, 1);
  ASSERT_TRUE(found.plan);
  EXPECT_TRUE(found.isFinal);
  EXPECT_LE(measured(planner) - ofFirst, ofFirst / 4);
  Planner other;
  const auto best = other.plan(call(other, next));
  ASSERT_TRUE(best);
  double ownMs = 0;
  for (const Measurement& m : other.undivided(wanted))
    if (m.kernel == wanted.own->kernel) ownMs = m.timeMs;
  const double gainMs = ownMs - found.plan->predictedMs, mostMs = ownMs - best->predictedMs;
  EXPECT_GE(gainMs, 0.8 * mostMs) << "of " << ownMs << " ms";
}

TEST_F(NeighboursPlanTest, WhoAsksIsToldOfAll) {
  Planner planner;
  ASSERT_TRUE(planner.plan(call(planner, onImage(27, 27))));
  const PlanRequest wanted = call(planner, onImage(30, 31));
  ASSERT_TRUE(after(planner, wanted, kFew).plan);
  const auto kernels = [&](Planner& by, Measuring measuring) {
    return by.measurements(wanted, measuring).at(wanted.problem.batch()).kernels.size();
  };
  const auto few = kernels(planner, Measuring::kNever);
  Planner other;
  EXPECT_LT(few, kernels(other, Measuring::kNow));
  EXPECT_EQ(kernels(other, Measuring::kNow), kernels(planner, Measuring::kNow));
}

TEST_F(NeighboursPlanTest, OneThatRunsTheClientsKernelPromisesLittle) {
  const Problem first = onImage(27, 27), next = onImage(30, 31);
  Planner alone, planner;
  const auto plan = planner.plan(call(planner, first));
  ASSERT_TRUE(plan);
  ASSERT_EQ(1U, plan->steps.size());
  PlanRequest wanted = call(planner, next);
  wanted.own = OwnKernel{plan->steps.front().kernel, 0};
  const auto ofFirst = measured(planner);
  std::uint32_t enough = 1000;
  while (measured(alone) == 0) after(alone, wanted, enough *= 2);
  after(planner, wanted, enough);
  EXPECT_EQ(ofFirst, measured(planner)) << "a stranger is measured by now";
  after(planner, wanted, kMany);
  EXPECT_LT(ofFirst, measured(planner));
}

/// A file of plans that another machine has made for the same problem.
class HintsTest : public NeighboursPlanTest {
 protected:
  FrozenPlans plansOfAnother(Planner& maker, const PlanRequest& wanted) const {
    EXPECT_EQ(wanted.machine, maker.machines().ofDevice(0));
    EXPECT_TRUE(maker.plan(wanted));
    const std::string file = directory_.file("plans");
    maker.savePlans(file);
    auto plans = frozenPlansFromJson(readFile(file, kMostPlansBytes));
    EXPECT_FALSE(plans.empty());
    for (FrozenPlan& plan : plans) plan.device = "GPU 9";
    return {"plans", plans};
  }
};

TEST_F(HintsTest, AnotherMachinesPlansAreLookedAtSoonAndAlone) {
  Planner alone, planner, maker;
  PlanRequest wanted = call(planner, onImage(27, 27));
  FrozenPlans frozen = plansOfAnother(maker, wanted);
  EXPECT_FALSE(after(alone, wanted, kFew).plan) << "all kernels would take longer";
  wanted.frozen = &frozen;
  const PlanAnswer found = after(planner, wanted, kFew);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(toText(*maker.plan(wanted.within(kEnginesLimit))), toText(*found.plan));
  EXPECT_LT(0, measured(planner)) << "they are not believed";
  EXPECT_LE(measured(planner), measured(maker) / 4);
}

TEST_F(HintsTest, TheyRunAsTheyAreWhereNothingMayBeTimed) {
  Planner planner, maker;
  PlanRequest wanted = call(planner, onImage(27, 27));
  FrozenPlans frozen = plansOfAnother(maker, wanted);
  wanted.frozen = &frozen;
  settings_.benchmarkShare = 0;
  const PlanAnswer found = planner.answer(wanted, Measuring::kWhenItPays);
  EXPECT_TRUE(found.plan);
  EXPECT_FALSE(found.isFinal) << "a query may time them";
  EXPECT_EQ(0, measured(planner));
  EXPECT_TRUE(planner.plan(wanted));
  EXPECT_LT(0, measured(planner));
  EXPECT_TRUE(planner.answer(wanted, Measuring::kWhenItPays).isFinal);
  Planner strict;
  EXPECT_EQ(wanted.machine, strict.machines().ofDevice(0));
  settings_.plansStrict = true;
  EXPECT_TRUE(strict.plan(wanted)) << "there are to be no others";
  EXPECT_EQ(0, measured(strict));
}

}  // namespace
}  // namespace ucudnn::test
