// Plans of what leaves out kernels or sizes, beside those of what tries all.
#include "planner_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

/// The largest batches that fit the limit make up for the sizes between powers of two.
TEST_F(PlannerTest, PowersOfTwoAreAsFastAsAllAtAFractionOfTheTimings) {
  long long powers = 0;
  long long every = 0;
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const int batch : {32, 100})
      for (const std::size_t mebibytes : {2, 5, 11, 23, 45, 90}) {
        const Problem problem = largeProblem(operation, batch);
        double ms[2] = {};
        for (const auto policy : {BatchSizePolicy::kPowerOfTwo, BatchSizePolicy::kAll}) {
          settings_.batchSizePolicy = policy;
          Planner planner;
          const PlanRequest wanted = request(planner, mebibytes * kMebibyte, problem);
          const auto plan = planner.plan(wanted);
          ASSERT_TRUE(plan);
          EXPECT_LE(plan->workspaceBytes, wanted.limitBytes);
          const bool isAll = policy == BatchSizePolicy::kAll;
          ms[isAll ? 1 : 0] = plan->predictedMs;
          (isAll ? every : powers) += measured(planner);
        }
        EXPECT_LE(ms[0], ms[1] * 1.01)
            << toText(operation) << ", batch " << batch << ", " << mebibytes << " MiB";
      }
  EXPECT_LE(powers * 10, every * 7);
}

class PlannerTuningTest : public PlannerTest, public ::testing::WithParamInterface<Kernels> {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.kernels = GetParam();
  }
  std::shared_ptr<const Plan> planBy(Planner& planner,
                                     Tuning tuning,
                                     std::size_t limitBytes,
                                     Operation operation = Operation::kForward,
                                     int batch = 96,
                                     Measuring measuring = Measuring::kNow) {
    settings_.tuning = tuning;
    Problem problem = largeProblem(operation, batch);
    problem.mathType = CUDNN_DEFAULT_MATH;
    return planner.answer(request(planner, limitBytes, problem), measuring).plan;
  }
  /// From what is known.
  std::shared_ptr<const Plan> planUnmeasured(Planner& planner, Tuning tuning, std::size_t limit) {
    return planBy(planner, tuning, limit, Operation::kForward, 96, Measuring::kIfKnown);
  }
};

TEST_P(PlannerTuningTest, FastTimesFewerKernelsForPlansAsGood) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const BatchSizePolicy policy : {BatchSizePolicy::kPowerOfTwo, BatchSizePolicy::kAll})
      for (const std::size_t limit : {8 * kMebibyte, kDividedLimit, kUndividedLimit}) {
        settings_.batchSizePolicy = policy;
        Planner one, other;
        const auto fast = planBy(one, Tuning::kFast, limit, operation);
        const auto exhaustive = planBy(other, Tuning::kExhaustive, limit, operation);
        ASSERT_TRUE(fast && exhaustive);
        EXPECT_LT(measured(one), measured(other)) << toText(policy) << " " << limit;
        EXPECT_LE(fast->predictedMs, 1.02 * exhaustive->predictedMs)
            << toText(*fast) << ", not " << toText(*exhaustive);
      }
}

/// Samples that are left over beside powers of two need kernels as well.
TEST_P(PlannerTuningTest, FastIsAsGoodWhereSamplesAreLeftOver) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const int batch : {65, 127, 129})
      for (const std::size_t limit : {8 * kMebibyte, kDividedLimit, kUndividedLimit}) {
        Planner one, other;
        const auto fast = planBy(one, Tuning::kFast, limit, operation, batch);
        const auto exhaustive = planBy(other, Tuning::kExhaustive, limit, operation, batch);
        ASSERT_TRUE(fast && exhaustive);
        EXPECT_LE(fast->predictedMs, 1.02 * exhaustive->predictedMs)
            << toText(*fast) << ", not " << toText(*exhaustive);
      }
}

/// A limit that divides a total asks for the whole front.
TEST_P(PlannerTuningTest, FastIsAsGoodWithinLessThanItWasAskedFor) {
  Planner one, other;
  ASSERT_TRUE(planBy(one, Tuning::kFast, kUndividedLimit));
  ASSERT_TRUE(planBy(other, Tuning::kExhaustive, kUndividedLimit));
  const auto kernels = measured(one);
  for (const std::size_t limit : {kMebibyte, 4 * kMebibyte, 16 * kMebibyte}) {
    const auto fast = planUnmeasured(one, Tuning::kFast, limit);
    EXPECT_EQ(measured(one), kernels);
    const auto exhaustive = planUnmeasured(other, Tuning::kExhaustive, limit);
    ASSERT_TRUE(fast && exhaustive);
    EXPECT_LE(fast->predictedMs, 1.05 * exhaustive->predictedMs)
        << toText(*fast) << ", not " << toText(*exhaustive);
  }
}

/// The same of kernels that take 3 ms and more for a part: one that is far behind what needs much
/// workspace is the best of what needs none.
TEST_F(PlannerTest, FastIsAsGoodWithinLessWhereKernelsAreLong) {
  constexpr int kChannels = 384, kFilters = 192, kImage = 27, kHalf = 14;
  Problem problem = largeProblem(Operation::kForward, 200);
  problem.xSizes[1] = kChannels;
  problem.xStrides[0] = kChannels * kImage * kImage;
  problem.ySizes = {200, kFilters, kHalf, kHalf, 0};
  problem.yStrides = {kFilters * kHalf * kHalf, kHalf * kHalf, kHalf, 1, 0};
  problem.wSizes = {kFilters, kChannels, 7, 7, 0};
  problem.pads = {3, 3, 0};
  problem.strides = {2, 2, 0};
  problem.mathType = CUDNN_DEFAULT_MATH;
  settings_.kernels = Kernels::kAll;
  settings_.tuning = Tuning::kFast;
  Planner one, other;
  ASSERT_TRUE(one.plan(request(one, kUndividedLimit, problem)));
  const auto less = one.plan(request(one, kMebibyte, problem));
  const auto alone = other.plan(request(other, kMebibyte, problem));
  ASSERT_TRUE(less && alone);
  EXPECT_LE(less->predictedMs, 1.05 * alone->predictedMs)
      << toText(*less) << ", not " << toText(*alone);
}

TEST_P(PlannerTuningTest, EachIsAQuestionOfItsOwn) {
  Planner planner, other;
  ASSERT_TRUE(planBy(planner, Tuning::kFast, kDividedLimit));
  const auto atFirst = measured(planner);
  const auto exhaustive = planBy(planner, Tuning::kExhaustive, kDividedLimit);
  EXPECT_GT(measured(planner), atFirst) << "fast tuning has left some out";
  const auto alone = planBy(other, Tuning::kExhaustive, kDividedLimit);
  ASSERT_TRUE(exhaustive && alone);
  EXPECT_EQ(toText(*exhaustive), toText(*alone));
  const auto kernels = measured(planner);
  EXPECT_TRUE(planBy(planner, Tuning::kFast, kDividedLimit));
  EXPECT_EQ(measured(planner), kernels);
}

TEST_P(PlannerTuningTest, FastKnowsEveryAlgorithmOfTheWholeBatch) {
  std::vector<Kernel> known[2];
  for (const Tuning tuning : {Tuning::kFast, Tuning::kExhaustive}) {
    Planner planner;
    ASSERT_TRUE(planBy(planner, tuning, kUndividedLimit));
    Problem problem = largeProblem(Operation::kForward, 96);
    problem.mathType = CUDNN_DEFAULT_MATH;
    for (const Measurement& m : planner.undivided(request(planner, kUndividedLimit, problem)))
      if (m.kernel.source == 0) known[tuning == Tuning::kFast].push_back(m.kernel);
  }
  EXPECT_FALSE(known[0].empty());
  EXPECT_EQ(known[0], known[1]);
}

/// cuDNN's algorithms are faster than all engines here, and make up no plan.
TEST_F(PlannerTest, FastTuningOfEnginesAloneIsNotMisledByAlgorithms) {
  settings_.kernels = Kernels::kEngines;
  constexpr int kBatch = 48, kChannels = 17, kFilters = 64, kImage = 27 * 27;
  Problem problem = largeProblem(Operation::kForward, kBatch);
  problem.xSizes[1] = kChannels;
  problem.xStrides[0] = kChannels * kImage;
  problem.ySizes[1] = kFilters;
  problem.yStrides[0] = kFilters * kImage;
  problem.wSizes = {kFilters, kChannels, 3, 3, 0};
  problem.pads = {1, 1, 0};
  for (const BatchSizePolicy policy : {BatchSizePolicy::kPowerOfTwo, BatchSizePolicy::kAll}) {
    settings_.batchSizePolicy = policy;
    const auto planBy = [&](Tuning tuning) {
      settings_.tuning = tuning;
      Planner planner;
      return planner.plan(request(planner, kUndividedLimit, problem));
    };
    const auto fast = planBy(Tuning::kFast);
    const auto exhaustive = planBy(Tuning::kExhaustive);
    ASSERT_TRUE(fast && exhaustive);
    EXPECT_LE(fast->predictedMs, 1.02 * exhaustive->predictedMs)
        << toText(*fast) << ", not " << toText(*exhaustive);
  }
}

INSTANTIATE_TEST_SUITE_P(OfKernels,
                         PlannerTuningTest,
                         ::testing::Values(Kernels::kLegacy, Kernels::kEngines, Kernels::kAll),
                         [](const auto& instance) { return std::string(toText(instance.param)); });

}  // namespace
}  // namespace ucudnn
