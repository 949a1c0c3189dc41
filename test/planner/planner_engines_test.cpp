// Plans of engines beside those of algorithms, and what a database may say of engines.
#include "planner/configuration_times.hpp"
#include "planner_engines_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr Operation kFusedToo[] = {Operation::kForward,
                                   Operation::kBackwardData,
                                   Operation::kBackwardFilter,
                                   Operation::kBiasActivationForward};

TEST_F(PlannerEnginesTest, ASecondStartMeasuresNothing) {
  for (const Operation operation : kFusedToo) {
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
    const auto askedBy = [&](Planner& planner, CallKind calls) {
      PlanRequest wanted = request(planner, kEnginesLimit, problemOf(operation));
      wanted.calls = calls;
      const auto before = callCount("cudnnBackendFinalize");
      const auto plan = planner.plan(wanted);
      EXPECT_TRUE(plan && plan->of(calls));
      EXPECT_EQ(plan ? toText(*plan) : "", toText(*expected));
      return callCount("cudnnBackendFinalize") - before;
    };
    Planner all;
    const auto asked = askedBy(all, CallKind::kAdding);
    // Where outputs are borrowed, calls that overwrite might have another.
    EXPECT_EQ(askedBy(all, CallKind::kOverwriting) > 0, asksLess);
    EXPECT_EQ(askedBy(all, CallKind::kOverwriting), 0);
    Planner some;
    const auto askedFirst = askedBy(some, CallKind::kOverwriting);
    EXPECT_TRUE(asksLess ? askedFirst < asked : askedFirst == asked) << askedFirst;
    EXPECT_GT(askedBy(some, CallKind::kAdding), 0);
    EXPECT_EQ(askedBy(some, CallKind::kAdding), 0);
    EXPECT_EQ(measured(some), 0);
  }
}

TEST_F(PlannerEnginesTest, APlanOfEnginesHoldsOneForAnyCall) {
  for (const Operation operation : kFusedToo)
    for (const Kernels kernels : {Kernels::kEngines, Kernels::kAll}) {
      settings_.kernels = kernels;
      const auto plan = planAnew(operation);
      ASSERT_TRUE(plan);
      ASSERT_NE(plan->runs, CallKind::kOther) << toText(*plan);
      ASSERT_TRUE(plan->general);
      EXPECT_EQ(plan->general->runs, CallKind::kOther);
      EXPECT_FALSE(hasEngine(*plan->general)) << toText(*plan->general);
      EXPECT_LE(plan->general->workspaceBytes, plan->workspaceBytes);
      EXPECT_LE(plan->workspaceBytes, kEnginesLimit);
    }
}

/// As good as the plan of a process that may use algorithms only.
TEST_F(PlannerEnginesTest, TheOneForAnyCallIsAsFastAsWithoutEngines) {
  for (const Operation operation : kFusedToo) {
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

TEST_F(PlannerEnginesTest, CallsThatSuitEnginesNeedNoPlanForOthers) {
  Planner planner;
  PlanRequest wanted = request(planner, 0, problemOf(Operation::kBackwardFilter));
  wanted.deterministic = true;
  for (int round = 0; round < 2; ++round) {
    wanted.suitsEngines = true;
    const auto plan = planner.plan(wanted);
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->isDeterministic());
    EXPECT_FALSE(plan->of(CallKind::kOther));
    wanted.suitsEngines = false;
    EXPECT_FALSE(planner.plan(wanted)) << "such a plan answers no other question";
  }
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
  for (const Operation operation : kFusedToo) {
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
