// Plans of engines that compute a convolution in parts: tiles, folds, sums.
#include "planner_engines_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerEnginePartsTest : public PlannerEnginesTest {};

/// ResNet-18's last layers: engines copy their filters, which take 9 MiB.
Problem largeFilters(Operation operation) {
  constexpr int kBatch = 32;
  constexpr int kChannels = 512;
  Problem problem = sampleProblem(operation, kBatch, kChannels);
  problem.mathType = CUDNN_DEFAULT_MATH;
  problem.xSizes = problem.ySizes = {kBatch, kChannels, 7, 7, 0};
  problem.xStrides = problem.yStrides = {kChannels * 49, 49, 7, 1, 0};
  return problem;
}

bool isTiled(const Plan& plan) {
  return toText(plan).find("_tiles=") != std::string::npos;
}

TEST_F(PlannerEnginePartsTest, FiltersThatFillTheLimitAreTiled) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const Kernels kernels : {Kernels::kEngines, Kernels::kAll}) {
      settings_.kernels = kernels;
      const auto planWithin = [&](std::size_t limitBytes, long long* measuredKernels = nullptr) {
        Planner planner;
        const PlanRequest wanted = request(planner, limitBytes, largeFilters(operation));
        const auto plan = planner.plan(wanted);
        if (plan) expectValid(*plan, wanted);
        if (measuredKernels != nullptr) *measuredKernels = measured(planner);
        return plan;
      };
      const auto roomy = planWithin(kUndividedLimit);
      const auto none = planWithin(kMebibyte);
      const auto tight = planWithin(8 * kMebibyte);
      ASSERT_TRUE(roomy && none && tight);
      EXPECT_FALSE(isTiled(*roomy)) << toText(*roomy);
      EXPECT_FALSE(isTiled(*none)) << toText(*none);
      EXPECT_TRUE(isTiled(*tight)) << toText(*tight);
      EXPECT_LT(tight->predictedMs * 2, none->predictedMs);
      EXPECT_NE(tight->runs, CallKind::kOther);
      ASSERT_TRUE(tight->general);
      EXPECT_FALSE(isTiled(*tight->general)) << toText(*tight->general);
      long long again = -1;
      EXPECT_EQ(toText(*planWithin(8 * kMebibyte, &again)), toText(*tight));
      EXPECT_EQ(again, 0);
    }
}

TEST_F(PlannerEnginePartsTest, TilesThatDoNotExistAreNotPlanned) {
  for (const char* const tiles : {"_tiles=3", "_tiles=16", "_tiles=1", "_tiles=-2"}) {
    settings_.databasePath = directory_.file(std::string(tiles) + ".db");
    Planner first;
    ASSERT_TRUE(first.plan(request(first, 8 * kMebibyte, largeFilters(Operation::kForward))));
    lie("UPDATE measurement SET kernel = replace(kernel, '_tiles=4', '" + std::string(tiles) +
        "'), time_ms = 0.1, device_ms = 0.1 WHERE kernel LIKE '%_tiles=4'");
    Planner planner;
    const auto plan =
        planner.plan(request(planner, 8 * kMebibyte, largeFilters(Operation::kForward)));
    ASSERT_TRUE(plan);
    EXPECT_EQ(toText(*plan).find(tiles), std::string::npos) << toText(*plan);
  }
}

/// ResNet's, in bfloat16 with channels last: its engines copy an x of three channels to one of
/// eight, 24.5 MiB for 32 samples.
Problem firstGradient() {
  constexpr int kBatch = 32;
  Problem problem = sampleProblem(Operation::kBackwardFilter, kBatch, 3, CUDNN_DATA_BFLOAT16);
  problem.wFormat = CUDNN_TENSOR_NHWC;
  problem.mathType = CUDNN_TENSOR_OP_MATH;
  problem.xSizes = {kBatch, 3, 224, 224, 0};
  problem.xStrides = {224 * 224 * 3, 1, 224 * 3, 3, 0};
  problem.ySizes = {kBatch, 64, 112, 112, 0};
  problem.yStrides = {112 * 112 * 64, 1, 112 * 64, 64, 0};
  problem.wSizes = {64, 3, 7, 7, 0};
  problem.pads = {3, 3, 0};
  problem.strides = {2, 2, 0};
  return problem;
}

TEST_F(PlannerEnginePartsTest, CopiesThatDoNotFitTheLimitAreHalvedByFolding) {
  settings_.kernels = Kernels::kEngines;
  const auto textWithin = [&](std::size_t limitBytes, long long* measuredKernels = nullptr) {
    Planner planner;
    const PlanRequest wanted = request(planner, limitBytes, firstGradient());
    const auto plan = planner.plan(wanted);
    if (!plan) return std::string();
    expectValid(*plan, wanted);
    if (measuredKernels != nullptr) *measuredKernels = measured(planner);
    EXPECT_FALSE(plan->isDivided());
    return toText(*plan);
  };
  EXPECT_NE(textWithin(16 * kMebibyte).find("_folds=2"), std::string::npos);
  EXPECT_EQ(textWithin(8 * kMebibyte).find("_folds="), std::string::npos);
  long long again = -1;
  EXPECT_NE(textWithin(16 * kMebibyte, &again).find("_folds=2"), std::string::npos);
  EXPECT_EQ(again, 0);
  for (const char* const folds : {"_folds=3", "_folds=4", "_folds=16", "_folds=1"}) {
    settings_.databasePath = directory_.file(std::string(folds) + ".db");
    EXPECT_NE(textWithin(16 * kMebibyte), std::string());
    lie("UPDATE measurement SET kernel = replace(kernel, '_folds=2', '" + std::string(folds) +
        "'), time_ms = 0.01, device_ms = 0.01 WHERE kernel LIKE '%_folds=2'");
    EXPECT_EQ(textWithin(16 * kMebibyte).find(folds), std::string::npos);
  }
}

/// Its engines copy x and y, 24.5 MiB for 32 samples.
Problem halfGradient() {
  constexpr int kBatch = 32;
  constexpr int kImage = 56 * 56;
  Problem problem = sampleProblem(Operation::kBackwardFilter, kBatch, 64, CUDNN_DATA_HALF);
  problem.mathType = CUDNN_TENSOR_OP_MATH;
  problem.xSizes = problem.ySizes = {kBatch, 64, 56, 56, 0};
  problem.xStrides = problem.yStrides = {64 * kImage, kImage, 56, 1, 0};
  return problem;
}

TEST_F(PlannerEnginePartsTest, PartsOfABatchThatDoesNotFitAreSummedInOneStep) {
  settings_.kernels = Kernels::kEngines;
  const auto planWithin = [&](std::size_t limitBytes) {
    Planner planner;
    const PlanRequest wanted = request(planner, limitBytes, halfGradient());
    auto plan = planner.plan(wanted);
    if (plan) expectValid(*plan, wanted);
    return plan;
  };
  const auto roomy = planWithin(kUndividedLimit);
  const auto none = planWithin(kMebibyte);
  const auto tight = planWithin(16 * kMebibyte);
  ASSERT_TRUE(roomy && none && tight);
  EXPECT_EQ(toText(*roomy).find("_sums="), std::string::npos) << toText(*roomy);
  EXPECT_NE(toText(*tight).find("_sums="), std::string::npos) << toText(*tight);
  EXPECT_FALSE(tight->isDivided());
  EXPECT_NE(tight->runs, CallKind::kOther);
  EXPECT_LT(tight->predictedMs, none->predictedMs);
  for (const char* const sums : {"_sums=5", "_sums=64", "_sums=1"}) {
    settings_.databasePath = directory_.file(std::string(sums) + ".db");
    ASSERT_TRUE(planWithin(16 * kMebibyte));
    lie("UPDATE measurement SET kernel = replace(kernel, '_sums=8', '" + std::string(sums) +
        "'), time_ms = 0.01, device_ms = 0.01 WHERE kernel LIKE '%_sums=8'");
    const auto plan = planWithin(16 * kMebibyte);
    ASSERT_TRUE(plan);
    EXPECT_EQ(toText(*plan).find(sums), std::string::npos) << toText(*plan);
  }
}

}  // namespace
}  // namespace ucudnn
