// Plans of problems whose tensors have 2^31 elements and more. They have all their elements: of the
// simulator's memory only what is touched is there, and without arithmetic nothing is.
#include "planner/planner.hpp"

#include <algorithm>

#include "bands_of.hpp"
#include "kernels/engines.hpp"
#include "planner_fixture.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;

class PlannerLargeTest : public PlannerTest {
 protected:
  void SetUp() override {
    arithmetic_ = Arithmetic::kFull;  // there are copies with it only
    PlannerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(hasBlockCopies(), kHasBlockCopies);
    setArithmetic(Arithmetic::kOff);
    settings_.kernels = Kernels::kAll;
    settings_.tuning = Tuning::kFast;
    settings_.benchmarkMemoryBytes = SIZE_MAX;
  }

  /// So many images of 64 channels: a sixteenth more than 2^31 elements.
  static Problem images(Operation operation, int batch, cudnnDataType_t type) {
    Problem problem = sampleProblem(operation, batch, 64, type);
    const int rows = 4352 / batch;
    problem.mathType = CUDNN_DEFAULT_MATH;
    problem.xSizes = problem.ySizes = {batch, 64, rows, 8192, 0};
    const std::int64_t image = std::int64_t{rows} * 8192;
    problem.xStrides = problem.yStrides = {64 * image, image, 8192, 1, 0};
    return problem;
  }

  /// A call that overwrites its output, of a client whose engine needs no workspace.
  PlanRequest call(Planner& planner, const Problem& problem, std::size_t limitBytes) const {
    PlanRequest wanted = request(planner, limitBytes, problem);
    wanted.calls = CallKind::kOverwriting;
    wanted.suitsEngines = true;
    Problem small = problem.withBatch(1);
    small.xSizes[2] = small.ySizes[2] = 16;
    small.xStrides = small.yStrides = {64 << 17, 1 << 17, 8192, 1, 0};
    const auto offers = offeredKernels(handle_.get(), small, ProblemDescriptors(small).get(), true);
    for (const KernelOffer& offer : offers)
      if (offer.kernel.source == kEngines && offer.workspaceBytes == 0)
        wanted.own = OwnKernel{offer.kernel, 0};
    return wanted;
  }

  /// And there are none. Nothing else divides a sample, or a filter gradient in 16 bits.
  static bool needsBands(Operation operation, int batch) {
    return !kHasBlockCopies && (batch == 1 || operation == Operation::kBackwardFilter);
  }

  static void expectInParts(const Plan& plan) {
    ASSERT_FALSE(plan.steps.empty());
    for (const Plan::Step& step : plan.steps)
      EXPECT_TRUE(mayBePlanned(plan.problem.withBatch(step.batch), step.kernel))
          << plan.problem.text() << " " << toText(plan);
  }
};

/// Though the client's engine has all that it needs: it is slow at so many elements.
TEST_F(PlannerLargeTest, UnmeasuredItRunsInParts) {
  settings_.benchmarkShare = 0;
  for (const Operation operation : kOperations)
    for (const int batch : {1, 16})
      for (const std::size_t limitBytes : {64 * kMebibyte, 1024 * kMebibyte}) {
        if (needsBands(operation, batch)) continue;
        Planner planner;
        const Problem problem = images(operation, batch, CUDNN_DATA_HALF);
        const PlanRequest wanted = call(planner, problem, limitBytes);
        ASSERT_TRUE(wanted.own);
        ASSERT_TRUE(wanted.runsOwn());
        const PlanAnswer found = planner.answer(wanted, Measuring::kWhenItPays);
        ASSERT_TRUE(found.plan) << problem.text();
        EXPECT_FALSE(found.plan->measured);
        expectValid(*found.plan, wanted);
        expectInParts(*found.plan);
      }
}

/// Two images are large. Dividing ends.
TEST_F(PlannerLargeTest, UnmeasuredEachImageRunsByItself) {
  settings_.benchmarkShare = 0;
  for (const int batch : {4, 6, 8, 16}) {
    Planner planner;
    const Problem two = images(Operation::kForward, 2, CUDNN_DATA_HALF);
    ASSERT_TRUE(two.isLarge());
    const Problem problem = two.withBatch(batch);
    const auto plan =
        planner.answer(call(planner, problem, 4096 * kMebibyte), Measuring::kWhenItPays).plan;
    ASSERT_TRUE(plan) << batch;
    expectInParts(*plan);
    for (const Plan::Step& step : plan->steps) EXPECT_EQ(step.batch, 1);
  }
}

/// A part of the batch where there is one that is not large; else bands.
TEST_F(PlannerLargeTest, UnmeasuredItsBatchIsDividedBeforeItsImages) {
  settings_.benchmarkShare = 0;
  Planner planner;
  const auto planOf = [&](int batch) {
    const Problem problem = images(Operation::kForward, batch, CUDNN_DATA_HALF);
    return planner.answer(call(planner, problem, 1024 * kMebibyte), Measuring::kWhenItPays).plan;
  };
  const auto samples = planOf(16), bands = planOf(1);
  ASSERT_TRUE(samples);
  EXPECT_EQ(bandsOf(*samples), 1);
  EXPECT_LE(samples->steps.front().batch, 8);
  ASSERT_EQ(bands != nullptr, kHasBlockCopies);
  if (!bands) return;
  EXPECT_GT(bandsOf(*bands), 1);
}

/// Within a limit, and without: the whole takes the simulator 60 times as long.
TEST_F(PlannerLargeTest, MeasuredItRunsInParts) {
  const auto expectPlan = [&](const Problem& problem, std::size_t limitBytes) {
    Planner planner;
    const PlanRequest wanted = call(planner, problem, limitBytes);
    ASSERT_TRUE(wanted.own);
    const PlanAnswer found = planner.answer(wanted, Measuring::kNow);
    ASSERT_TRUE(found.plan) << problem.text();
    EXPECT_TRUE(found.plan->measured);
    expectInParts(*found.plan);
    EXPECT_LE(found.plan->workspaceBytes, limitBytes);
    double ownMs = 0;
    for (const Measurement& m : planner.undivided(wanted))
      if (m.kernel == wanted.own->kernel) ownMs = m.timeMs;
    EXPECT_LT(found.plan->predictedMs, ownMs / 4) << problem.text();
  };
  for (const Operation operation : kOperations) {
    if (!needsBands(operation, 1))
      expectPlan(images(operation, 1, CUDNN_DATA_HALF), 256 * kMebibyte);
    if (!needsBands(operation, 16)) expectPlan(images(operation, 16, CUDNN_DATA_HALF), kNoLimit);
  }
}

/// As fast for each element as half of it, which isn't large.
TEST_F(PlannerLargeTest, ItIsAsFastForEachElementAsASmallerOne) {
  Planner planner;
  const auto msOf = [&](const Problem& problem) {
    const auto plan = planner.answer(call(planner, problem, kNoLimit), Measuring::kNow).plan;
    return plan ? plan->predictedMs : 0;
  };
  const Problem large = images(Operation::kForward, 16, CUDNN_DATA_FLOAT);
  const Problem small = large.withBatch(8);
  ASSERT_TRUE(large.isLarge());
  ASSERT_FALSE(small.isLarge());
  const double smallMs = msOf(small), largeMs = msOf(large);
  ASSERT_GT(smallMs, 0) << "its own engine is as fast";
  EXPECT_GT(largeMs, 0);
  EXPECT_LE(largeMs, 2 * smallMs * 1.02);
}

}  // namespace
}  // namespace ucudnn::test
