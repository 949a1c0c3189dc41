// Engines that cuDNN compiles: no call waits for that, unless it has asked.
#include <chrono>
#include <thread>
#include <utility>

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

  static constexpr const char* kOthersAsFast = "UPDATE measurement SET time_ms = 1, device_ms = 1";

  /// Such a request, of which an earlier process has measured that the compiled engine takes a
  /// hundredth of its time.
  PlanRequest measuredBefore(int batch) {
    settings_.databasePath = directory_.file("ucudnn.db");
    Planner first;
    const PlanRequest wanted = calls(first, batch);
    static_cast<void>(first.answer(wanted, Measuring::kNow));
    lie("UPDATE measurement SET time_ms = time_ms / 100, device_ms = device_ms / 100 WHERE kernel "
        "LIKE 'eng71%'");
    forgetCompiled();
    return wanted;
  }
  /// One that is not compiled, and runs within the limit.
  std::optional<OwnKernel> anotherKernel(const PlanRequest& wanted) const {
    const ProblemDescriptors descriptors(wanted.problem);
    for (const KernelOffer& offer : offeredKernels(
             handle_.get(), wanted.problem, descriptors.get(), true, nullptr, Calls::kOverwriting))
      if (offer.kernel.source == kEngines && !offer.compiled &&
          offer.workspaceBytes <= wanted.limitBytes)
        return OwnKernel{offer.kernel, offer.workspaceBytes};
    return std::nullopt;
  }
  /// As a new process: only the last few that were compiled are kept.
  void forgetCompiled() const {
    setMeasuringCost(false);
    for (int batch = 100; batch < 120; ++batch) {
      const Problem other = problemOf(Operation::kForward).withBatch(batch);
      buildKernel(handle_.get(),
                  other,
                  nullptr,
                  parseKernel(other, "eng71").value().kernel,
                  Calls::kOverwriting);
    }
    setMeasuringCost(true);
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

/// Another thread compiles what an earlier start has measured.
TEST_F(PlannerCompiledTest, ASecondStartWaitsForNoCompiler) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  constexpr double kDefaultStallMs = 20;
  PlanRequest wanted = measuredBefore(27);
  const Kernel compiled = std::exchange(wanted.own, anotherKernel(wanted))->kernel;
  Planner second;
  wanted.machine = second.machines().ofDevice(0);
  const Answered answered = callUntilFinal(second, wanted, 0);
  ASSERT_TRUE(answered.last.plan);
  EXPECT_EQ(compiled, answered.last.plan->steps.front().kernel);
  EXPECT_GT(kDefaultStallMs, answered.longestMs);
}

/// A second start of a program that runs the fastest kernel, or one that is as fast.
TEST_F(PlannerCompiledTest, NothingIsBuiltThatIsNoFasterThanTheOwnKernel) {
  UCUDNN_SKIP_WITHOUT_COMPILED_ENGINES();
  const PlanRequest ofCompiled = measuredBefore(28);
  for (const bool isOwn : {true, false}) {
    if (!isOwn) lie(kOthersAsFast);
    PlanRequest wanted = ofCompiled;
    if (!isOwn) wanted.own = anotherKernel(wanted);
    Planner second;
    wanted.machine = second.machines().ofDevice(0);
    for (const bool isQuery : {true, false}) {
      wanted.mayTellLess = isQuery;
      const Measuring measuring = isQuery ? Measuring::kIfKnown : Measuring::kNow;
      const auto finalized = callCount("cudnnBackendFinalize");
      const PlanAnswer answer = second.answer(wanted, measuring);
      EXPECT_FALSE(answer.plan);
      EXPECT_TRUE(answer.ownIsBest);
      EXPECT_TRUE(answer.isFinal);
      EXPECT_EQ(finalized, callCount("cudnnBackendFinalize"));
    }
    EXPECT_EQ(second.statistics().plans, 0);
    wanted.own.reset();
    EXPECT_TRUE(second.plan(wanted)) << "for whoever has no kernel of its own";
  }
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
