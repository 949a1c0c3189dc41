// Measurements that outlive a planner.
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerDatabaseTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
  }
  TemporaryDirectory directory_;
};

TEST_F(PlannerDatabaseTest, ASecondStartMeasuresNothing) {
  std::string expected;
  long long kernels = 0;
  {
    Planner planner;
    const auto plan = planner.plan(request(planner, kDividedLimit));
    ASSERT_TRUE(plan);
    expected = toText(*plan);
    kernels = measured(planner);
    EXPECT_EQ(planner.statistics().kernelsLoaded, 0);
  }
  Planner planner;
  const auto forwards = callCount("cudnnConvolutionForward");
  const auto plan = planner.plan(request(planner, kDividedLimit));
  ASSERT_TRUE(plan);
  EXPECT_EQ(toText(*plan), expected);
  EXPECT_EQ(measured(planner), 0);
  EXPECT_EQ(planner.statistics().kernelsLoaded, kernels);
  EXPECT_EQ(callCount("cudnnConvolutionForward"), forwards);
}

TEST_F(PlannerDatabaseTest, ALargerLimitAddsToWhatIsStored) {
  {
    Planner planner;
    planner.plan(request(planner, kMebibyte));
  }
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit));
    EXPECT_GT(planner.statistics().kernelsLoaded, 0);
    EXPECT_GT(measured(planner), 0);
  }
  Planner planner;
  planner.plan(request(planner, kMebibyte));
  planner.plan(request(planner, kUndividedLimit));
  EXPECT_EQ(measured(planner), 0);
}

TEST_F(PlannerDatabaseTest, AnotherModelOfDeviceIsMeasuredItself) {
  {
    Planner planner;
    planner.plan(request(planner, kMebibyte));
  }
  const DeviceScope scope(2);
  const CudnnHandle handle = makeOwned<CudnnHandle>(cudnnCreate);
  Planner planner;
  PlanRequest wanted = request(planner, kMebibyte);
  wanted.handle = handle.get();
  wanted.machine = planner.machines().ofDevice(2);
  EXPECT_TRUE(planner.plan(wanted));
  EXPECT_EQ(planner.statistics().kernelsLoaded, 0);
  EXPECT_GT(measured(planner), 0);
}

// Memory that was short once is no property of the machine.
TEST_F(PlannerDatabaseTest, WhatMemoryWasShortForIsTriedAgainByTheNextStart) {
  const Problem problem = largeProblem();
  setMemory(0, problem.xBytes() + problem.yBytes() + problem.wBytes() + 4 * kMebibyte);
  {
    Planner planner;
    EXPECT_FALSE(planner.plan(request(planner, kUndividedLimit)));
  }
  setMemory(0, SIZE_MAX);
  Planner planner;
  const auto plan = planner.plan(request(planner, kUndividedLimit));
  ASSERT_TRUE(plan);
  EXPECT_GT(measured(planner), 0);
  EXPECT_GT(plan->workspaceBytes, kDividedLimit);
}

// The database answers the question that was asked, and no other.
TEST_F(PlannerDatabaseTest, WhatOneQuestionLeftOutIsMeasuredForAnother) {
  const Problem whole = largeProblem(Operation::kForward, 32);
  const Problem last = largeProblem(Operation::kForward, 24);
  Planner alone;
  settings_.databasePath.clear();
  const auto expected = alone.plan(request(alone, kUndividedLimit, last));
  settings_.databasePath = directory_.file("ucudnn.db");
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit, whole));
  }
  for (const bool isStored : {false, true}) {
    Planner planner;
    const auto plan = planner.plan(request(planner, kUndividedLimit, last));
    ASSERT_TRUE(plan && expected);
    EXPECT_LE(plan->predictedMs, expected->predictedMs * 1.05) << toText(*plan);
    EXPECT_EQ(measured(planner) == 0, isStored);
  }
}

TEST_F(PlannerDatabaseTest, AQueryThatNamesNoLimitReadsIt) {
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit));
  }
  Planner planner;
  EXPECT_TRUE(planner.answer(request(planner, kUndividedLimit), Measuring::kIfKnown).plan);
  EXPECT_EQ(measured(planner), 0);
}

}  // namespace
}  // namespace ucudnn
