// When calls are measured that no query asked for, and how far in each.
#include <chrono>

#include "benchmark/kernel_timer.hpp"
#include "planner/planner.hpp"
#include "planner_fixture.hpp"
#include "support/host_clock.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerCallsTest : public PlannerTest {
 protected:
  /// As if a handle's table had answered many others.
  PlanRequest calls(Planner& planner, const Problem& problem = largeProblem()) const {
    PlanRequest wanted = request(planner, kUndividedLimit, problem);
    wanted.callsSince = 100;
    return wanted;
  }

  /// Calls until one has a plan, `most` at most.
  static int untilPlanned(Planner& planner, const PlanRequest& wanted, int most = 100000) {
    int calls = 0;
    while (calls < most && !planner.answer(wanted, Measuring::kWhenItPays).plan) ++calls;
    return calls;
  }
};

TEST_F(PlannerCallsTest, ACallIsMeasuredWhenItPays) {
  Planner planner;
  const PlanRequest wanted = calls(planner);
  EXPECT_FALSE(planner.answer(wanted, Measuring::kWhenItPays).plan) << "first seen";
  EXPECT_EQ(measured(planner), 0);
  PlanAnswer answer;
  // On a fast host there is a plan of the kernels that are timed so far.
  for (int call = 0; (!answer.plan || answer.isOngoing) && call < 100000; ++call)
    answer = planner.answer(wanted, Measuring::kWhenItPays);
  ASSERT_TRUE(answer.plan);
  EXPECT_TRUE(answer.isFinal);
  EXPECT_FALSE(answer.isOngoing);
  Planner alone;
  EXPECT_EQ(toText(*answer.plan), toText(*alone.plan(request(alone, kUndividedLimit))));
}

/// Steps of the simulator take microseconds of the host's: each call is given time for one.
TEST_F(PlannerCallsTest, ACallTakesAMeasurementNoFurtherThanItsSlice) {
  settings_.benchmarkStallMs = 1e-6;
  Planner planner;
  const PlanRequest wanted = calls(planner);
  int ongoing = 0;
  PlanAnswer answer;
  for (int call = 0; !answer.plan && call < 100000; ++call) {
    answer = planner.answer(wanted, Measuring::kWhenItPays);
    ongoing += answer.isOngoing ? 1 : 0;
    if (answer.isOngoing) {
      EXPECT_EQ(0, measured(planner)) << "nothing is known before the end";
    }
  }
  ASSERT_TRUE(answer.plan);
  const Statistics& said = planner.statistics();
  EXPECT_LT(measured(planner), said.slices) << "a kernel a call at most";
  EXPECT_GE(ongoing + 1, said.slices) << "others wait for the share";
  EXPECT_LT(0, said.longestSliceMicroseconds);
  EXPECT_LE(said.longestSliceMicroseconds, said.sliceMicroseconds);
  Planner alone;
  EXPECT_EQ(toText(*answer.plan), toText(*alone.plan(request(alone, kUndividedLimit))));
}

/// The host waits for that, but the program would have waited, too.
TEST_F(PlannerCallsTest, WorkThatTheProgramHasEnqueuedIsNotMeasurings) {
  const Problem work = largeProblem(Operation::kForward, 1024);
  const Kernel kernel{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, work.mathType};
  const auto descriptors = std::make_shared<const ProblemDescriptors>(work);
  TimingMemory memory(work, 0, {}, false, nullptr);
  KernelTimer timer(handle_.get(), work);
  const PlacedCall placed{buildKernel(handle_.get(), work, descriptors, kernel),
                          work.batch(),
                          0,
                          memory.place(work.batch(), 0).value()};
  const double beginMs = clockMs(nullptr);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, timer.run(placed, false));
  const double workMs = clockMs(nullptr) - beginMs;
  hostClock() = hostClockMs;
  const auto spentMs = [&](int times) {
    Planner planner;
    const PlanRequest wanted = calls(planner);
    PlanAnswer answer;
    for (int call = 0; !answer.plan && call < 100000; ++call) {
      for (int i = 0; i < times; ++i) timer.run(placed, false);
      answer = planner.answer(wanted, Measuring::kWhenItPays);
    }
    EXPECT_TRUE(answer.plan);
    return 1e-3 * static_cast<double>(planner.statistics().sliceMicroseconds);
  };
  const double idleMs = spentMs(0);
  const int twice = 1 + static_cast<int>(2 * idleMs / workMs);
  EXPECT_NEAR(idleMs, spentMs(twice), 0.05 * idleMs);
  hostClock() = steadyMs;
}

TEST_F(PlannerCallsTest, OneProblemIsMeasuredAfterTheOther) {
  settings_.benchmarkStallMs = 1e-6;
  Planner planner;
  const PlanRequest first = calls(planner);
  const PlanRequest second = calls(planner, largeProblem(Operation::kForward, 33));
  PlanAnswer a, b;
  for (int call = 0; !(a.plan && b.plan) && call < 100000; ++call) {
    a = planner.answer(first, Measuring::kWhenItPays);
    b = planner.answer(second, Measuring::kWhenItPays);
    EXPECT_FALSE(a.isOngoing && b.isOngoing);
  }
  EXPECT_TRUE(a.plan && b.plan);
}

TEST_F(PlannerCallsTest, AQueryThatAsksGoesNoFurtherWithASlicedMeasurement) {
  settings_.benchmarkStallMs = 1e-6;
  Planner planner;
  const PlanRequest wanted = calls(planner);
  for (int call = 0; call < 100000; ++call)
    if (planner.answer(wanted, Measuring::kWhenItPays).isOngoing) break;
  const auto plan = planner.plan(wanted);
  ASSERT_TRUE(plan);
  const PlanAnswer again = planner.answer(wanted, Measuring::kWhenItPays);
  EXPECT_EQ(plan, again.plan);
  EXPECT_FALSE(again.isOngoing);
}

TEST_F(PlannerCallsTest, WithoutAShareOrTimeNothingIsMeasuredUnasked) {
  Planner planner;
  const PlanRequest wanted = calls(planner);
  settings_.benchmarkShare = 0;
  EXPECT_EQ(1000, untilPlanned(planner, wanted, 1000));
  settings_.benchmarkShare = 1;
  settings_.benchmarkStallMs = 0;
  EXPECT_EQ(1000, untilPlanned(planner, wanted, 1000));
  EXPECT_TRUE(planner.plan(wanted)) << "a query that asks";
  settings_.benchmarkShare = kMeasureAlways;
  const PlanRequest other = calls(planner, largeProblem(Operation::kForward, 9));
  EXPECT_TRUE(planner.answer(other, Measuring::kWhenItPays).plan) << "always";
}

TEST_F(PlannerCallsTest, WhatWasAskedForDoesNotDelayTheRest) {
  settings_.benchmarkStallMs = 1e-6;
  Planner alone, busy;
  for (int batch = 1000; batch < 1010; ++batch)
    ASSERT_TRUE(
        busy.plan(request(busy, kUndividedLimit, largeProblem(Operation::kForward, batch))));
  const int before = untilPlanned(alone, calls(alone));
  EXPECT_LT(before, 100000);
  EXPECT_LE(untilPlanned(busy, calls(busy)), 2 * before);
}

TEST_F(PlannerCallsTest, WhatLacksWorkspaceIsMeasuredWhateverTheShare) {
  settings_.benchmarkShare = 1e-9;
  Planner planner;
  PlanRequest wanted = calls(planner);
  EXPECT_EQ(1000, untilPlanned(planner, wanted, 1000));
  wanted.lacksWorkspace = true;
  EXPECT_LT(untilPlanned(planner, wanted), 100000) << "its calls have taken as long";
  wanted = calls(planner, largeProblem(Operation::kForward, 33));
  wanted.callsSince = 1;
  wanted.lacksWorkspace = true;
  EXPECT_EQ(10, untilPlanned(planner, wanted, 10)) << "not yet";
}

}  // namespace
}  // namespace ucudnn
