// Errors that outlive a planner.
#include "changed_database.hpp"
#include "errors_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

class ErrorsDatabaseTest : public PlannerErrorsTest {
 protected:
  void SetUp() override {
    PlannerErrorsTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
  }

  TemporaryDirectory directory_;
  Problem problem_ = smallProblem(Operation::kForward);
};

TEST_F(ErrorsDatabaseTest, ASecondStartMeasuresNothingForAnyError) {
  std::string expected;
  {
    Planner planner;
    const auto plan = planWithin(planner, 1e-5, problem_);
    ASSERT_TRUE(plan);
    expected = toText(*plan);
  }
  Planner planner;
  const auto forwards = callCount("cudnnConvolutionForward");
  const auto plan = planWithin(planner, 1e-5, problem_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(expected, toText(*plan));
  EXPECT_LE(errorOf(*plan), 1e-5);
  ASSERT_TRUE(planWithin(planner, 1e-2, problem_));
  EXPECT_FALSE(planWithin(planner, 1e-9, problem_));
  EXPECT_EQ(0, measured(planner));
  EXPECT_EQ(forwards, callCount("cudnnConvolutionForward"));
}

// A database of before, or of a process that stated no error, has times alone.
TEST_F(ErrorsDatabaseTest, WhatHasNoErrorsIsAskedForThem) {
  Planner alone;
  settings_.databasePath.clear();
  const auto expected = planWithin(alone, 1e-5, problem_);
  settings_.databasePath = directory_.file("ucudnn.db");
  {
    Planner planner;
    ASSERT_TRUE(planWithin(planner, 0, problem_));
  }
  {
    Planner planner;
    const auto plan = planWithin(planner, 1e-5, problem_);
    ASSERT_TRUE(plan && expected);
    EXPECT_EQ(toText(*expected), toText(*plan));
    EXPECT_GT(measured(planner), 0);
  }
  Planner planner;
  ASSERT_TRUE(planWithin(planner, 1e-5, problem_));
  ASSERT_TRUE(planWithin(planner, 0, problem_));
  EXPECT_EQ(0, measured(planner));
}

TEST_F(ErrorsDatabaseTest, ErrorsThatCantBeAreMeasuredAgain) {
  std::string expected;
  double error = 0;
  {
    Planner planner;
    const auto plan = planWithin(planner, 1e-5, problem_);
    ASSERT_TRUE(plan);
    expected = toText(*plan);
    error = errorOf(*plan);
  }
  for (const char* const value : {"1e-300", "1e-9", "3", "1e300"}) {
    changeDatabase(settings_.databasePath, std::string("UPDATE error SET value = ") + value);
    Planner planner;
    const auto plan = planWithin(planner, 1e-5, problem_);
    ASSERT_TRUE(plan) << value;
    EXPECT_EQ(expected, toText(*plan)) << value;
    EXPECT_EQ(error, errorOf(*plan)) << value;
    EXPECT_GT(measured(planner), 0) << value;
  }
  changeDatabase(settings_.databasePath, "DELETE FROM error");
  Planner planner;
  const auto plan = planWithin(planner, 1e-5, problem_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(expected, toText(*plan));
}

// A row that makes a kernel less accurate than it is costs only time. A row that makes it more
// accurate goes unnoticed: misc/docs/SECURITY.md says so.
TEST_F(ErrorsDatabaseTest, ALieThatCouldBeIsBelieved) {
  {
    Planner planner;
    ASSERT_TRUE(planWithin(planner, 1e-5, problem_));
  }
  changeDatabase(settings_.databasePath, "UPDATE error SET value = 0.1");
  Planner planner;
  EXPECT_FALSE(planWithin(planner, 1e-5, problem_));
  EXPECT_EQ(0, measured(planner));
  EXPECT_TRUE(planWithin(planner, 0, problem_)) << "no error counts";
}

}  // namespace
}  // namespace ucudnn
