// Engines that cuDNN compiles: no call waits for that, unless it has asked.
#include <chrono>
#include <thread>

#include "planner/planner.hpp"
#include "planner_engines_fixture.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

class PlannerCompiledTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
    setMeasuringCost(true);
  }
  void TearDown() override {
    setCompiling(Compiling::kWorks);
    setMeasuringCost(false);
    PlannerEnginesTest::TearDown();
  }

  /// Calls of a program that runs it by a compiled engine. Each test has a batch size of its own:
  /// what was compiled once is kept.
  PlanRequest calls(Planner& planner, int batch) const {
    const Problem problem = problemOf(Operation::kForward).withBatch(batch);
    const Kernel kernel = parseKernel(problem, "eng71").value().kernel;
    const auto own =
        offeredKernel(handle_.get(), problem, nullptr, kernel, nullptr, Calls::kOverwriting);
    EXPECT_EQ(own && own->compiled, offersCompiledEngines());
    const std::size_t ownBytes = own ? own->workspaceBytes : kEnginesLimit;
    PlanRequest wanted = request(planner, ownBytes, problem);
    wanted.suitsEngines = true;
    wanted.calls = CallKind::kOverwriting;
    wanted.own = OwnKernel{kernel, ownBytes};
    wanted.callsSince = 100;
    return wanted;
  }

  struct Answered {
    PlanAnswer last;
    double longestMs = 0;  ///< of the host's, in one call
    int whileHeld = 0;     ///< calls
  };
  /// Calls until the answer is final. The compiler is held until `held` calls have gone by.
  static Answered callUntilFinal(Planner& planner, const PlanRequest& wanted, int held) {
    Answered answered;
    for (int call = 0; !answered.last.isFinal && call < 1000000; ++call) {
      const double beginMs = hostClockMs();
      answered.last = planner.answer(wanted, Measuring::kWhenItPays);
      answered.longestMs = std::max(answered.longestMs, hostClockMs() - beginMs);
      if (heldCompilations() == 0) continue;
      if (++answered.whileHeld == held) setCompiling(Compiling::kWorks);
    }
    return answered;
  }
};

TEST_F(PlannerCompiledTest, NoCallWaitsForTheCompiler) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  constexpr double kDefaultStallMs = 20;
  settings_.benchmarkStallMs = 1e-6;  // a step a call: the simulator's take no time of the host's
  Planner planner, alone;
  const PlanRequest wanted = calls(planner, 24);
  setCompiling(Compiling::kHeld);
  const Answered answered = callUntilFinal(planner, wanted, 50);
  ASSERT_TRUE(answered.last.isFinal);
  EXPECT_LE(50, answered.whileHeld);
  EXPECT_GT(kDefaultStallMs, answered.longestMs);

  const auto timeOf = [&](Planner& asked, const PlanRequest& of) {
    const double beginMs = hostClockMs();
    const auto plan = asked.plan(of);
    EXPECT_TRUE(plan);
    EXPECT_EQ(wanted.own->kernel, plan->steps.front().kernel);
    return hostClockMs() - beginMs;
  };
  PlanRequest others = wanted;
  others.own.reset();
  EXPECT_GT(kDefaultStallMs, timeOf(planner, others)) << "the plan has what was compiled";

  const double beginMs = hostClockMs();
  const PlanAnswer atOnce = alone.answer(calls(alone, 25), Measuring::kNow);
  EXPECT_LT(100, hostClockMs() - beginMs) << "who asks waits";
  EXPECT_EQ(atOnce.ownIsBest, answered.last.ownIsBest);
  EXPECT_EQ(atOnce.plan == nullptr, answered.last.plan == nullptr);
}

TEST_F(PlannerCompiledTest, WhatCannotBeCompiledIsNotAskedForAgain) {
  settings_.benchmarkStallMs = 1e-6;
  Planner planner;
  const PlanRequest wanted = calls(planner, 26);
  setCompiling(Compiling::kFails);
  const Answered answered = callUntilFinal(planner, wanted, 0);
  EXPECT_TRUE(answered.last.isFinal);
  EXPECT_FALSE(answered.last.plan) << "what has no time is never replaced";
  EXPECT_FALSE(answered.last.ownIsBest);
  const auto built = callCount("cudnnBackendFinalize");
  planner.answer(wanted, Measuring::kWhenItPays);
  EXPECT_EQ(built, callCount("cudnnBackendFinalize"));
}

}  // namespace
}  // namespace ucudnn::test
