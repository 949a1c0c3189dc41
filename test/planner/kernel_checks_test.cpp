// The planner has the kernels of a plan checked, and does without those that are wrong.
#include "planner/kernel_checks.hpp"

#include <fstream>

#include "changed_database.hpp"
#include "kernels/engines.hpp"
#include "kernels/errata.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

bool mayLie(Kernel kernel) {
  return kernel.source == kEngines && engineConfigurationOf(kernel.id).engine % 2 == 1;
}

bool hasLiar(const Plan& plan) {
  return std::any_of(plan.steps.begin(),
                     plan.steps.end(),
                     [](const Plan::Step& step) { return mayLie(step.kernel); }) ||
         (plan.enqueued && hasLiar(*plan.enqueued)) || (plan.general && hasLiar(*plan.general));
}

class KernelChecksTest : public PlannerTest {
 protected:
  KernelChecksTest() { arithmetic_ = Arithmetic::kFull; }
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.kernels = Kernels::kEngines;
    settings_.checkKernels = true;
    settings_.databasePath = directory_.file("ucudnn.db");
  }
  void TearDown() override {
    setLie(Lie::kNone);
    useErrata("");
    PlannerTest::TearDown();
  }

  /// One whose plan has an engine that may lie.
  PlanRequest wanted(Planner& planner, Operation operation = Operation::kBackwardFilter) const {
    Problem problem = sampleProblem(operation, 2, 16);
    problem.mathType = CUDNN_DEFAULT_MATH;
    return request(planner, 64 * kMebibyte, problem);
  }
  static long long checked(Planner& planner) { return planner.statistics().kernelsChecked; }
  static long long wrong(Planner& planner) { return planner.statistics().kernelsWrong; }

  TemporaryDirectory directory_;
};

TEST(KinTest, HasSizesOfTheSameFactorsOfTwo) {
  const Problem problem = largeProblem();
  const auto changed = [&](auto change) {
    Problem other = problem;
    change(other);
    return kinOf(other) == kinOf(problem);
  };
  EXPECT_TRUE(changed([](Problem& other) { other.xSizes[2] = other.ySizes[2] = 31; }));
  EXPECT_TRUE(changed([](Problem& other) { other = other.withBatch(6); }));
  EXPECT_FALSE(changed([](Problem& other) { other = other.withBatch(5); }));
  EXPECT_FALSE(changed([](Problem& other) { other = other.withBatch(1); }));
  EXPECT_FALSE(changed([](Problem& other) { other.xSizes[3] = other.ySizes[3] = 28; }));
  EXPECT_FALSE(changed([](Problem& other) { other.xSizes[1] = other.wSizes[1] = 128; }));
  EXPECT_FALSE(changed([](Problem& other) { other.groups = 2; }));
  EXPECT_FALSE(changed([](Problem& other) { other.xStrides = {64 * 729, 1, 27 * 64, 64, 0}; }));
}

TEST_F(KernelChecksTest, WhatAlwaysFailsIsDoneWithout) {
  settings_.checkKernels = false;
  setLie(Lie::kFails);
  Planner planner;
  const auto plan = planner.plan(wanted(planner));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(hasLiar(*plan)) << toText(*plan);
  const long long timed = planner.statistics().kernelsMeasured;
  EXPECT_TRUE(planner.answer(wanted(planner), Measuring::kNow).isFinal);
  EXPECT_EQ(timed, planner.statistics().kernelsMeasured);
}

TEST_F(KernelChecksTest, WhatAPlanRunsIsCheckedOnce) {
  Planner planner;
  const auto plan = planner.plan(wanted(planner));
  ASSERT_TRUE(plan);
  ASSERT_TRUE(hasLiar(*plan)) << toText(*plan) << ": the other tests need such a problem";
  const long long checks = checked(planner);
  EXPECT_GT(checks, 0);
  EXPECT_EQ(wrong(planner), 0);
  planner.plan(wanted(planner));
  EXPECT_EQ(checked(planner), checks);
}

TEST_F(KernelChecksTest, AProcessBelievesTheDatabase) {
  std::string before;
  {
    Planner first;
    before = toText(*first.plan(wanted(first)));
  }
  Planner planner;
  EXPECT_EQ(toText(*planner.plan(wanted(planner))), before);
  EXPECT_EQ(measured(planner), 0);
  EXPECT_EQ(checked(planner), 0);
  changeDatabase(settings_.databasePath, "DELETE FROM problem WHERE text LIKE '% right'");
  Planner other;
  EXPECT_EQ(toText(*other.plan(wanted(other))), before);
  EXPECT_EQ(measured(other), 0);
  EXPECT_GT(checked(other), 0) << "a database from before has not said so";
}

TEST_F(KernelChecksTest, AProcessBelievesTheDatabaseOfDeterminism) {
  for (const Lie lie : {Lie::kNone, Lie::kBits}) {
    settings_.databasePath = directory_.file(lie == Lie::kNone ? "none" : "bits");
    setLie(lie);
    std::string before;
    const auto deterministic = [&](Planner& planner) {
      PlanRequest request = wanted(planner);
      request.deterministic = true;
      return request;
    };
    {
      Planner first;
      before = toText(*first.plan(deterministic(first)));
      EXPECT_GT(checked(first), 0);
    }
    setLie(Lie::kNone);
    Planner planner;
    EXPECT_EQ(toText(*planner.plan(deterministic(planner))), before);
    EXPECT_EQ(checked(planner), 0);
    EXPECT_EQ(measured(planner), 0);
    const auto any = planner.plan(wanted(planner));
    ASSERT_TRUE(any);
    EXPECT_TRUE(hasLiar(*any)) << "it is right";
  }
}

TEST_F(KernelChecksTest, WhatIsWrongIsInNoPlan) {
  setLie(Lie::kChannel);
  {
    Planner planner;
    const auto plan = planner.plan(wanted(planner));
    EXPECT_TRUE(!plan || !hasLiar(*plan)) << toText(*plan);
    const long long failed = wrong(planner);
    EXPECT_GT(failed, 0);
    EXPECT_EQ(planner.plan(wanted(planner)), plan);
    EXPECT_EQ(wrong(planner), failed);
  }
  setLie(Lie::kNone);  // the machine's database has noted it
  Planner planner;
  const auto plan = planner.plan(wanted(planner));
  EXPECT_TRUE(!plan || !hasLiar(*plan)) << toText(*plan);
  EXPECT_EQ(wrong(planner), 0);
}

/// A kernel that is timed is not checked yet. The simulator counts writes beyond an allocation.
TEST_F(KernelChecksTest, WhatWritesTooMuchIsTimedInMemoryOfItsOwn) {
  const std::int64_t violations = violationCount();
  for (const Lie lie : {Lie::kOutput, Lie::kWorkspace, Lie::kMore}) {
    setLie(lie);
    Planner planner;
    for (const Operation operation :
         {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
      planner.plan(wanted(planner, operation));
    EXPECT_GT(measured(planner), 0);
    settings_.databasePath.clear();
  }
  EXPECT_EQ(violationCount(), violations);
}

TEST_F(KernelChecksTest, WithoutChecksAllAreTaken) {
  setLie(Lie::kChannel);
  settings_.checkKernels = false;
  Planner planner;
  const auto plan = planner.plan(wanted(planner));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(hasLiar(*plan));
  EXPECT_EQ(checked(planner), 0);
}

TEST_F(KernelChecksTest, DeterminismIsCheckedWhereItIsAskedFor) {
  setLie(Lie::kBits);
  Planner planner;
  PlanRequest request = wanted(planner);
  const auto any = planner.plan(request);
  ASSERT_TRUE(any);
  EXPECT_TRUE(hasLiar(*any)) << toText(*any);
  request.deterministic = true;
  const auto plan = planner.plan(request);
  EXPECT_TRUE(!plan || !hasLiar(*plan)) << toText(*plan);
  EXPECT_EQ(wrong(planner), 0) << "who has not asked for it may have it";
}

TEST_F(KernelChecksTest, WithoutMemoryAPlanIsTakenUnchecked) {
  std::string before;
  {
    Planner first;
    before = toText(*first.plan(wanted(first)));
  }
  changeDatabase(settings_.databasePath, "DELETE FROM problem WHERE text LIKE '% right'");
  setMemory(0, 1024);
  Planner planner;
  const auto plan = planner.plan(wanted(planner));
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*plan), before);
  EXPECT_EQ(checked(planner), 0);
}

/// A plan of a capture can't be checked, and is not kept: the next one is.
TEST_F(KernelChecksTest, ACaptureChecksNothing) {
  {
    Planner first;
    first.plan(wanted(first));
  }
  changeDatabase(settings_.databasePath, "DELETE FROM problem WHERE text LIKE '% right'");
  Planner planner;
  const PlanRequest request = wanted(planner);
  planner.answer(request.within(0), Measuring::kIfKnown);  // reads the database
  const long long before = checked(planner);
  const PlanAnswer captured = planner.answer(request, Measuring::kNever);
  ASSERT_TRUE(captured.plan);
  EXPECT_FALSE(captured.isFinal);
  EXPECT_EQ(checked(planner), before);
  const PlanAnswer answer = planner.answer(request, Measuring::kWhenItPays);
  ASSERT_TRUE(answer.plan);
  EXPECT_EQ(toText(*answer.plan), toText(*captured.plan));
  EXPECT_GT(checked(planner), before);
}

TEST_F(KernelChecksTest, WhatIsBarredIsNotEvenTimed) {
  setArithmetic(Arithmetic::kOff);  // here nothing is compared
  const auto hasTimed = [&](Planner& planner) {
    for (const auto& [batch, size] : planner.measurements(wanted(planner)))
      for (const Measurement& m : size.kernels)
        if (mayLie(m.kernel)) return true;
    return false;
  };
  {
    Planner planner;
    ASSERT_TRUE(hasTimed(planner));
  }
  std::string rules;
  for (int engine = 1; engine < 100; engine += 2)
    rules += (rules.empty() ? "" : ",") +
             std::string(R"({"operation": "ConvBwdFilter", "engine": )") + std::to_string(engine) +
             "}";
  const std::string path = directory_.file("errata.json");
  std::ofstream(path) << R"({"version": 1, "rules": [)" << rules << "]}";
  useErrata(path);
  for (const bool hasDatabase : {true, false}) {
    if (!hasDatabase) settings_.databasePath.clear();
    Planner planner;
    const auto plan = planner.plan(wanted(planner));
    EXPECT_TRUE(!plan || !hasLiar(*plan)) << toText(*plan);
    EXPECT_FALSE(hasTimed(planner)) << (hasDatabase ? "of a database" : "anew");
  }
  useErrata("");
  Planner planner;
  EXPECT_TRUE(hasTimed(planner));
}

}  // namespace
}  // namespace ucudnn
