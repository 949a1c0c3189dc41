// Plans of engines beside those of algorithms, and what a database may say of engines.
#include "changed_database.hpp"
#include "planner/conversion.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

/// Where, on the simulator, an engine is the fastest for each operation.
constexpr std::size_t kEnginesLimit = 16 * kMebibyte;

class PlannerEnginesTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
    settings_.kernels = Kernels::kAll;
  }

  static Problem problemOf(Operation operation) {
    Problem problem = largeProblem(operation);
    problem.mathType = CUDNN_DEFAULT_MATH;
    if (operation == Operation::kBiasActivationForward) {
      problem.activation = CUDNN_ACTIVATION_RELU;
      problem.addsZ = 1;
    }
    return problem;
  }

  std::shared_ptr<const Plan> planBy(Planner& planner,
                                     Operation operation,
                                     std::size_t limitBytes = kEnginesLimit,
                                     bool deterministic = false) {
    PlanRequest wanted = request(planner, limitBytes, problemOf(operation));
    wanted.deterministic = deterministic;
    return planner.plan(wanted);
  }
  /// As another process would.
  std::shared_ptr<const Plan> planAnew(Operation operation,
                                       std::size_t limitBytes = kEnginesLimit,
                                       bool deterministic = false) {
    Planner planner;
    return planBy(planner, operation, limitBytes, deterministic);
  }
  void lie(const std::string& statement) const {
    changeDatabase(settings_.databasePath, statement);
  }
  static bool hasEngine(const Plan& plan) {
    return std::any_of(
        plan.steps.begin(), plan.steps.end(), [](const Plan::Step& step) { return !step.anyCall; });
  }

  TemporaryDirectory directory_;
};

constexpr Operation kOperations[] = {Operation::kForward,
                                     Operation::kBackwardData,
                                     Operation::kBackwardFilter,
                                     Operation::kBiasActivationForward};

TEST_F(PlannerEnginesTest, ASecondStartMeasuresNothing) {
  for (const Operation operation : kOperations) {
    const auto expected = planAnew(operation);
    ASSERT_TRUE(expected);
    EXPECT_TRUE(hasEngine(*expected)) << toText(*expected);
    Planner planner;
    const auto plan = planBy(planner, operation);
    ASSERT_TRUE(plan);
    EXPECT_EQ(toText(*plan), toText(*expected));
    EXPECT_EQ(measured(planner), 0);
  }
}

TEST_F(PlannerEnginesTest, APlanForCallsThatOverwriteAsksCudnnLess) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    const auto expected = planAnew(operation);
    ASSERT_TRUE(expected && expected->isDivided());
    // Micro-batches of a filter gradient add up.
    const bool asksLess = operation != Operation::kBackwardFilter;
    const auto askedBy = [&](Planner& planner, Calls calls) {
      PlanRequest wanted = request(planner, kEnginesLimit, problemOf(operation));
      wanted.calls = calls;
      const auto before = callCount("cudnnBackendFinalize");
      const auto plan = planner.plan(wanted);
      EXPECT_TRUE(plan && plan->isFor(calls));
      EXPECT_EQ(plan ? toText(*plan) : "", toText(*expected));
      return callCount("cudnnBackendFinalize") - before;
    };
    Planner all;
    const auto asked = askedBy(all, Calls::kAll);
    EXPECT_EQ(askedBy(all, Calls::kOverwriting), 0) << "that one is for all";
    Planner some;
    const auto askedFirst = askedBy(some, Calls::kOverwriting);
    EXPECT_TRUE(asksLess ? askedFirst < asked : askedFirst == asked) << askedFirst;
    EXPECT_GT(askedBy(some, Calls::kAll), 0);
    EXPECT_EQ(askedBy(some, Calls::kAll), 0);
    EXPECT_EQ(measured(some), 0);
  }
}

TEST_F(PlannerEnginesTest, APlanOfEnginesHoldsOneForAnyCall) {
  for (const Operation operation : kOperations)
    for (const Kernels kernels : {Kernels::kEngines, Kernels::kAll}) {
      settings_.kernels = kernels;
      const auto plan = planAnew(operation);
      ASSERT_TRUE(plan);
      ASSERT_FALSE(plan->anyCall) << toText(*plan);
      ASSERT_TRUE(plan->general);
      EXPECT_TRUE(plan->general->anyCall);
      EXPECT_FALSE(hasEngine(*plan->general)) << toText(*plan->general);
      EXPECT_LE(plan->general->workspaceBytes, plan->workspaceBytes);
      EXPECT_LE(plan->workspaceBytes, kEnginesLimit);
    }
}

/// As good as the plan of a process that may use algorithms only.
TEST_F(PlannerEnginesTest, TheOneForAnyCallIsAsFastAsWithoutEngines) {
  for (const Operation operation : kOperations) {
    settings_.kernels = Kernels::kAll;
    const auto plan = planAnew(operation);
    settings_.kernels = Kernels::kLegacy;
    settings_.databasePath.clear();
    const auto legacy = planAnew(operation);
    settings_.databasePath = directory_.file("ucudnn.db");
    ASSERT_TRUE(plan && plan->general && legacy);
    EXPECT_EQ(toText(*plan->general), toText(*legacy));
    EXPECT_LE(plan->predictedMs, legacy->predictedMs * kSplitGain);
  }
}

TEST_F(PlannerEnginesTest, WithoutOneForAnyCallThereIsNoPlan) {
  // cuDNN has no such algorithm without workspace.
  EXPECT_FALSE(planAnew(Operation::kBackwardFilter, 0, true));
}

TEST_F(PlannerEnginesTest, DeterminismIsAskedOfCudnn) {
  planAnew(Operation::kBackwardFilter);
  lie("UPDATE measurement SET deterministic = 1, device_ms = 0.02, time_ms = CASE WHEN kernel LIKE "
      "'eng20%' THEN 0.02 ELSE 20 END");
  const auto any = planAnew(Operation::kBackwardFilter);
  ASSERT_TRUE(any);
  EXPECT_FALSE(any->isDeterministic()) << toText(*any);
  const auto plan = planAnew(Operation::kBackwardFilter, kEnginesLimit, true);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->isDeterministic()) << toText(*plan);
}

TEST_F(PlannerEnginesTest, AnEngineThatCudnnDoesNotHaveIsNotPlanned) {
  planAnew(Operation::kForward);
  lie("UPDATE measurement SET kernel = replace(kernel, 'eng', 'eng99'), time_ms = 0.02, device_ms "
      "= "
      "0.02 WHERE kernel LIKE 'eng%'");
  const auto plan = planAnew(Operation::kForward);
  ASSERT_TRUE(plan);
  for (const Plan::Step& step : plan->steps)
    EXPECT_EQ(toText(plan->problem.operation, step.kernel).find("eng99"), std::string::npos);
}

TEST_F(PlannerEnginesTest, OnePlannerKeepsKernelsApart) {
  Planner planner;
  settings_.databasePath.clear();
  std::vector<std::string> texts[2];
  for (auto& round : texts)
    for (const Kernels kernels : {Kernels::kAll, Kernels::kLegacy, Kernels::kEngines}) {
      settings_.kernels = kernels;
      const auto plan = planBy(planner, Operation::kForward);
      ASSERT_TRUE(plan);
      round.push_back(toText(*plan));
      EXPECT_EQ(hasEngine(*plan), kernels != Kernels::kLegacy) << toText(*plan);
    }
  EXPECT_EQ(texts[0], texts[1]);
}

/// Engines are timed for calls that suit them, so not on a caller's memory that does not.
TEST_F(PlannerEnginesTest, MemoryThatIsNotAlignedSaysNothingAboutEngines) {
  settings_.databasePath.clear();
  settings_.kernels = Kernels::kEngines;
  for (const Operation operation : kOperations) {
    const Problem problem = problemOf(operation);
    constexpr std::size_t kBeside = 256;
    const DeviceBuffer x(problem.xBytes() + kBeside), w(problem.wBytes() + kBeside),
        y(problem.yBytes() + kBeside), workspace(kDividedLimit + kBeside);
    for (const bool tensorsAreOff : {false, true}) {
      Planner planner;
      const auto at = [](const DeviceBuffer& buffer, std::size_t offset) {
        return static_cast<void*>(static_cast<char*>(buffer.get()) + offset);
      };
      const std::size_t offset = tensorsAreOff ? sizeof(float) : 0;
      const TensorBuffers buffers{at(x, offset),
                                  at(w, offset),
                                  at(y, offset),
                                  at(workspace, sizeof(float) - offset),
                                  kDividedLimit};
      PlanRequest wanted = request(planner, kDividedLimit, problem);
      wanted.buffers = &buffers;
      const auto plan = planner.plan(wanted);
      ASSERT_TRUE(plan);
      EXPECT_TRUE(hasEngine(*plan)) << toText(*plan);
    }
  }
}

/// Planes lie in the caller's workspace, and cuDNN's algorithms read them there.
TEST_F(PlannerEnginesTest, MemoryThatIsNotAlignedIsNotForPlanesEither) {
  settings_.databasePath.clear();
  settings_.kernels = Kernels::kLegacy;
  Problem problem = problemOf(Operation::kForward);
  problem.wSizes[2] = problem.wSizes[3] = 5;
  problem.pads = {2, 2};
  problem.strides = {2, 2};
  for (const std::size_t i : {2U, 3U}) problem.ySizes[i] = (problem.xSizes[i] - 1) / 2 + 1;
  problem.yStrides[2] = problem.ySizes[3];
  problem.yStrides[1] = problem.ySizes[2] * problem.yStrides[2];
  problem.yStrides[0] = problem.ySizes[1] * problem.yStrides[1];
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
  const DeviceBuffer workspace(kDividedLimit + sizeof(float));
  for (const std::size_t offset : {std::size_t{0}, sizeof(float)}) {
    Planner planner;
    const TensorBuffers buffers{
        x.get(), w.get(), y.get(), static_cast<char*>(workspace.get()) + offset, kDividedLimit};
    PlanRequest wanted = request(planner, kDividedLimit, problem);
    wanted.buffers = &buffers;
    const auto allocations = callCount("cudaMalloc");
    ASSERT_TRUE(planner.plan(wanted));
    EXPECT_EQ(callCount("cudaMalloc") > allocations, offset != 0) << "memory of its own";
  }
}

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

TEST_F(PlannerEnginesTest, FiltersThatFillTheLimitAreTiled) {
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
      EXPECT_FALSE(tight->anyCall);
      ASSERT_TRUE(tight->general);
      EXPECT_FALSE(isTiled(*tight->general)) << toText(*tight->general);
      long long again = -1;
      EXPECT_EQ(toText(*planWithin(8 * kMebibyte, &again)), toText(*tight));
      EXPECT_EQ(again, 0);
    }
}

TEST_F(PlannerEnginesTest, TilesThatDoNotExistAreNotPlanned) {
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

TEST_F(PlannerEnginesTest, CopiesThatDoNotFitTheLimitAreHalvedByFolding) {
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

TEST_F(PlannerEnginesTest, PartsOfABatchThatDoesNotFitAreSummedInOneStep) {
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
  EXPECT_FALSE(tight->anyCall);
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

/// At sizes between those known, engines would be neighbours.
TEST_F(PlannerEnginesTest, WithoutEnginesNoneIsMeasured) {
  settings_.databasePath.clear();
  Planner planner;
  ASSERT_TRUE(planBy(planner, Operation::kForward));
  const auto engines = [&] {
    const Problem problem = problemOf(Operation::kForward);
    std::size_t count = 0;
    for (const auto& [batch, size] : planner.measurements(request(planner, kEnginesLimit, problem)))
      for (const Measurement& m : size.kernels) count += m.anyCall ? 0 : 1;
    return count;
  };
  const std::size_t before = engines();
  EXPECT_GT(before, 0u);
  settings_.kernels = Kernels::kLegacy;
  settings_.batchSizePolicy = BatchSizePolicy::kAll;
  const auto plan = planBy(planner, Operation::kForward);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(hasEngine(*plan)) << toText(*plan);
  EXPECT_EQ(engines(), before);
}

}  // namespace
}  // namespace ucudnn
