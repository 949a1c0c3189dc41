// The kernels that run until a problem is measured, if the call's own kernel lacks workspace.
#include "planner/planner.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "kernels/engines.hpp"
#include "planner_engines_fixture.hpp"
#include "support/simulator.hpp"

namespace ucudnn::test {
namespace {

class PlannerPartsTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
    settings_.benchmarkShare = 0;
  }

  /// A call whose own engine needs a third more than the limit.
  PlanRequest lacking(Planner& planner, Operation operation = Operation::kForward) const {
    const Problem problem = problemOf(operation);
    const OwnKernel own = ownOf(problem);
    PlanRequest wanted = request(planner, own.workspaceBytes / 4 * 3, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = own;
    return wanted;
  }

  OwnKernel ownOf(const Problem& problem) const {
    const ProblemDescriptors descriptors(problem);
    for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true))
      if (isClients(offer.kernel) && offer.workspaceBytes > 4 * kMebibyte && offer.deterministic)
        return {offer.kernel, offer.workspaceBytes};
    throw std::logic_error("no engine needs workspace");
  }
};

TEST_F(PlannerPartsTest, ItIsThatKernelOnPartsOfTheBatch) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    Planner planner;
    const PlanRequest wanted = lacking(planner, operation);
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan) << toText(operation);
    EXPECT_FALSE(found.isFinal);
    EXPECT_FALSE(found.plan->measured);
    EXPECT_LE(found.plan->workspaceBytes, wanted.limitBytes);
    int samples = 0;
    for (const Plan::Step& step : found.plan->steps) {
      EXPECT_EQ(step.kernel, wanted.own->kernel);
      samples += step.batch * step.count;
    }
    EXPECT_EQ(samples, wanted.problem.batch());
    EXPECT_EQ(call(planner, wanted).plan, found.plan) << "it is made once";
    EXPECT_EQ(measured(planner), 0);
  }
}

/// Two samples don't fit: each runs by itself, rather than nothing.
TEST_F(PlannerPartsTest, PartsAreAsSmallAsOneSample) {
  for (const int batch : {6, 8, 9, 12, 16, 24, 32}) {
    Planner planner;
    Problem problem = problemOf(Operation::kForward).withBatch(batch);
    problem.xSizes[2] = problem.xSizes[3] = problem.ySizes[2] = problem.ySizes[3] = 256;
    problem.xStrides = {std::int64_t{problem.xSizes[1]} << 16, 1 << 16, 256, 1, 0};
    problem.yStrides = {std::int64_t{problem.ySizes[1]} << 16, 1 << 16, 256, 1, 0};
    PlanRequest wanted = request(planner, 0, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = ownOf(problem);
    const auto two =
        offeredKernel(handle_.get(), problem.withBatch(2), nullptr, wanted.own->kernel);
    ASSERT_TRUE(two);
    wanted.limitBytes = two->workspaceBytes - 1;
    const auto one =
        offeredKernel(handle_.get(), problem.withBatch(1), nullptr, wanted.own->kernel);
    ASSERT_TRUE(one && one->workspaceBytes <= wanted.limitBytes);
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan) << batch;
    EXPECT_EQ(found.plan->steps.size(), 1U);
    EXPECT_EQ(found.plan->steps.front().batch, 1) << toText(*found.plan);
    EXPECT_EQ(found.plan->steps.front().kernel, wanted.own->kernel);
  }
}

/// Partial sums of the knobs that cuDNN chose for the whole batch fill the limit, so that the own
/// kernel gets one sample at a time. Another one takes many. The own one still runs if cuDNN fails
/// to say so.
TEST_F(PlannerPartsTest, MuchLargerPartsOfAnotherKernelRunInstead) {
  settings_.checkKernels = false;
  Problem problem = problemOf(Operation::kBackwardFilter).withBatch(64);
  problem.xSizes = {64, 40, 64, 976, 0};
  problem.xStrides = {64 * 976 * 40, 1, 976 * 40, 40, 0};
  problem.wSizes = {40, 40, 64, 1, 0};
  problem.ySizes = {64, 40, 1, 976, 0};
  problem.yStrides = {976 * 40, 1, 976 * 40, 40, 0};
  problem.pads = {0, 0, 0};
  const auto requestWith = [&](Planner& planner, std::int64_t splits) {
    const EngineConfiguration value{34, {{CUDNN_KNOB_TYPE_SPLIT_K, splits}}};
    const Kernel own{idOf(value), 0, kEngines};
    const auto offer = offeredKernel(handle_.get(), problem, nullptr, own);
    if (!offer) throw std::logic_error("no engine has partial sums");
    PlanRequest wanted = request(planner, 64 * kMebibyte, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = OwnKernel{own, offer->workspaceBytes};
    return wanted;
  };
  const auto runsOwn = [](const PlanRequest& wanted, const Plan& plan) {
    EXPECT_LE(plan.workspaceBytes, wanted.limitBytes);
    return plan.steps.front().kernel == wanted.own->kernel;
  };
  const std::int64_t few = 4, many = 130;
  {
    Planner planner;
    const PlanRequest wanted = requestWith(planner, few);
    const auto plan = call(planner, wanted).plan;
    ASSERT_TRUE(plan);
    EXPECT_TRUE(runsOwn(wanted, *plan)) << toText(*plan);
  }
  int ofOwn = 0, ofOther = 0;
  for (int n = 1;; ++n) {
    Planner planner;
    const PlanRequest wanted = requestWith(planner, many);
    const auto before = callCount();
    failCall(n);
    const auto plan = call(planner, wanted).plan;
    failCall(0);
    if (plan && runsOwn(wanted, *plan))
      ++ofOwn;
    else if (plan)
      ++ofOther;
    if (callCount() - before >= n) continue;
    ASSERT_TRUE(plan);  // nothing failed
    EXPECT_FALSE(runsOwn(wanted, *plan)) << toText(*plan);
    EXPECT_LE(4, plan->steps.front().batch);
    break;
  }
  EXPECT_LT(0, ofOwn);
  EXPECT_LT(ofOwn, ofOther);
}

/// A program whose sizes change would wait for a check in each call.
TEST_F(PlannerPartsTest, OneCheckServesSizesOfTheSameFactors) {
  setArithmetic(Arithmetic::kFull);  // without it nothing can be checked
  Planner planner;
  PlanRequest wanted = lacking(planner);
  wanted.problem = wanted.problem.withBatch(18);  // parts of 9 are checked, unlike parts of 8
  wanted.problem.xType = wanted.problem.wType = wanted.problem.yType = CUDNN_DATA_HALF;
  const auto checksOf = [&](int width) {
    wanted.deterministic = true;  // as calls are whose own kernel is
    wanted.problem.xSizes[3] = wanted.problem.ySizes[3] = width;
    for (auto* strides : {&wanted.problem.xStrides, &wanted.problem.yStrides}) {
      const std::int64_t channels = strides == &wanted.problem.xStrides ? 64 : 192;
      *strides = {channels * 27 * width, 27 * width, width, 1, 0};
    }
    wanted.own = ownOf(wanted.problem);
    wanted.limitBytes = wanted.own->workspaceBytes / 4 * 3;
    const long long before = planner.statistics().kernelsChecked;
    EXPECT_TRUE(call(planner, wanted).plan) << width;
    return planner.statistics().kernelsChecked - before;
  };
  EXPECT_GT(checksOf(27), 0);
  EXPECT_EQ(checksOf(29), 0) << "though the heuristics name other choices of that engine";
  EXPECT_GT(checksOf(28), 0) << "even";
  EXPECT_EQ(checksOf(20), 0);
}

TEST_F(PlannerPartsTest, TheProgramsOwnKernelIsTrustedOnPartsLikeTheWhole) {
  setArithmetic(Arithmetic::kFull);
  for (const int batch : {48, 50}) {
    Planner planner;
    PlanRequest wanted = lacking(planner);
    wanted.problem = wanted.problem.withBatch(batch);
    wanted.own = ownOf(wanted.problem);
    wanted.limitBytes = wanted.own->workspaceBytes / 4 * 3;
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan);
    const Plan::Step& part = found.plan->steps.front();
    EXPECT_EQ(part.kernel, wanted.own->kernel);
    EXPECT_EQ(part.batch % 2, batch == 48 ? 0 : 1) << part.batch << " of " << batch;
    EXPECT_EQ(planner.statistics().kernelsChecked > 0, part.batch % 2 == 1);
  }
}

/// Within a sixth, for example: eight parts of 4 samples, not seven of 5 and 4; but three of 11, 11
/// and 10, not four of 8.
TEST_F(PlannerPartsTest, PartsAreFewAndEqualWhereThatTakesASixthMoreAtMost) {
  constexpr int kMostParts = 16;  // more are too short
  int planned = 0, equal = 0, unequal = 0, others = 0;
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const int percent : {95, 60, 40, 30, 20}) {
      Planner planner;
      PlanRequest wanted = lacking(planner, operation);
      wanted.limitBytes = wanted.own->workspaceBytes * static_cast<std::size_t>(percent) / 100;
      PreparedKernels prepared(handle_.get(), wanted.problem);
      const int batch = wanted.problem.batch();
      int fewest = 0;
      for (int parts = 2; fewest == 0 && parts <= kMostParts; ++parts) {
        const auto offer =
            prepared.offer((batch + parts - 1) / parts, wanted.own->kernel, Calls::kAll, nullptr);
        if (offer && offer->workspaceBytes <= wanted.limitBytes) fewest = parts;
      }
      const auto plan = call(planner, wanted).plan;
      ASSERT_TRUE(fewest == 0 || plan) << toText(operation) << " " << percent;
      if (plan) expectValid(*plan, wanted);
      if (fewest == 0) {  // another engine may run, but not its own in shorter parts
        EXPECT_TRUE(!plan || !(plan->steps.front().kernel == wanted.own->kernel));
        others += plan ? 1 : 0;
        continue;
      }
      ++planned;
      int parts = fewest;
      while (batch % parts != 0) ++parts;
      if (6 * parts > 7 * fewest) parts = fewest;
      (batch % parts == 0 ? equal : unequal) += 1;
      EXPECT_EQ(parts, plan->microBatches()) << toText(*plan);
      for (const Plan::Step& step : plan->steps) {
        EXPECT_GE(step.batch, batch / parts) << toText(*plan);
        EXPECT_LE(step.batch, (batch + parts - 1) / parts) << toText(*plan);
      }
    }
  EXPECT_LE(12, planned);
  EXPECT_LT(0, others);
  EXPECT_LT(0, equal);
  EXPECT_LT(0, unequal);
}

/// 12, 10 and 10 where 12 fit, which need no check; else 11, 11 and 10.
TEST_F(PlannerPartsTest, UnequalPartsAreEvenIfTheyFit) {
  setArithmetic(Arithmetic::kFull);  // without it nothing can be checked
  for (const int fitting : {11, 12}) {
    Planner planner;
    PlanRequest wanted = lacking(planner);
    ASSERT_EQ(wanted.problem.batch(), 32);
    PreparedKernels prepared(handle_.get(), wanted.problem);
    wanted.limitBytes =
        prepared.offer(fitting, wanted.own->kernel, Calls::kAll, nullptr)->workspaceBytes;
    const auto plan = call(planner, wanted).plan;
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->microBatches(), 3) << toText(*plan);
    EXPECT_EQ(plan->steps.front().batch, fitting) << toText(*plan);
    EXPECT_EQ(plan->steps.back().batch, 10) << toText(*plan);
    EXPECT_EQ(planner.statistics().kernelsChecked, fitting % 2);
  }
}

TEST_F(PlannerPartsTest, ItRunsUntilTheProblemIsMeasured) {
  Planner planner;
  const PlanRequest wanted = lacking(planner);
  EXPECT_FALSE(planner.answer(wanted, Measuring::kNever).plan) << "first seen in a capture";
  const auto parts = call(planner, wanted).plan;
  EXPECT_EQ(planner.answer(wanted, Measuring::kNever).plan, parts);
  PlanRequest query = wanted;
  query.own.reset();
  EXPECT_FALSE(planner.answer(query, Measuring::kIfKnown).plan) << "no answer for queries";
  const auto best = planner.plan(query);
  ASSERT_TRUE(best && best->measured);
  EXPECT_EQ(call(planner, wanted).plan, best);
  Planner alone;
  EXPECT_EQ(toText(*alone.plan(request(alone, wanted.limitBytes, wanted.problem))), toText(*best));
}

/// The parts' kernel and the first that cuDNN names; the others when their gain would pay, too.
TEST_F(PlannerPartsTest, FewKernelsAreTimedSoonAndTheOthersLater) {
  settings_.benchmarkShare = 1e6;  // measuring that is due is done, however slow the machine is
  settings_.backgroundPlanning = false;
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    Planner planner;
    PlanRequest wanted = lacking(planner, operation);
    const auto parts = call(planner, wanted).plan;
    ASSERT_TRUE(parts && !parts->measured);
    PlanAnswer found;
    std::uint64_t calls = 0;
    const auto callUntil = [&](auto isEnough) {
      wanted.callsSince = 100;
      for (int i = 0; i < 100000 && !isEnough(); ++i, calls += wanted.callsSince)
        found = call(planner, wanted);
    };
    callUntil([&] { return found.plan && found.plan->measured; });
    const auto few = measured(planner);
    const auto soon = calls;
    ASSERT_TRUE(found.plan && found.plan->measured) << toText(operation);
    EXPECT_LE(2, few);
    EXPECT_FALSE(found.isFinal);
    const auto first = found.plan;
    callUntil([&] { return found.isFinal; });
    EXPECT_TRUE(found.isFinal) << toText(operation);
    EXPECT_LT(3 * few, measured(planner));
    EXPECT_LT(3 * soon, calls);
    ASSERT_TRUE(found.plan);
    EXPECT_LE(found.plan->predictedMs, 1.01 * first->predictedMs);
    const auto all = measured(planner);
    for (int i = 0; i < 100; ++i) call(planner, wanted);
    EXPECT_EQ(all, measured(planner));
  }
}

/// A moment without memory does not end it.
TEST_F(PlannerPartsTest, TheOthersFollowWhenThereIsMemoryAgain) {
  settings_.benchmarkShare = 1e6;  // measuring that is due is done, however slow the machine is
  settings_.backgroundPlanning = false;
  Planner planner;
  PlanRequest wanted = lacking(planner);
  PlanAnswer found = call(planner, wanted);
  ASSERT_TRUE(found.plan && !found.plan->measured);
  const auto callUntil = [&](auto isEnough) {
    wanted.callsSince = 100;
    for (int i = 0; i < 100000 && !isEnough(); ++i) found = call(planner, wanted);
  };
  callUntil([&] { return found.plan && found.plan->measured; });
  const auto few = measured(planner);
  const std::size_t memoryBytes = settings_.benchmarkMemoryBytes;
  settings_.benchmarkMemoryBytes = 0;
  for (int i = 0; i < 10000; ++i) found = call(planner, wanted);
  EXPECT_EQ(few, measured(planner));
  EXPECT_FALSE(found.isFinal);
  settings_.benchmarkMemoryBytes = memoryBytes;
  std::this_thread::sleep_for(std::chrono::milliseconds(120));  // until it is tried again
  callUntil([&] { return found.isFinal; });
  EXPECT_TRUE(found.isFinal);
  EXPECT_LT(3 * few, measured(planner));
}

/// What always fails is tried twice, whether all kernels are timed or few, and measuring ends.
TEST_F(PlannerPartsTest, TheOthersFollowWhereSomeKernelsAlwaysFail) {
  settings_.benchmarkShare = 1e6;  // measuring that is due is done, however slow the machine is
  settings_.backgroundPlanning = false;
  settings_.checkKernels = false;
  setLie(Lie::kFails);
  int looks = 0;
  const ProblemDescriptors descriptors(problemOf(Operation::kForward));
  for (const auto& offer :
       offeredKernels(handle_.get(), problemOf(Operation::kForward), descriptors.get(), true)) {
    if (!isClients(offer.kernel) || offer.workspaceBytes < 4 * kMebibyte) continue;
    Planner planner;
    PlanRequest wanted = lacking(planner);
    wanted.own = {offer.kernel, offer.workspaceBytes};
    wanted.limitBytes = offer.workspaceBytes / 4 * 3;
    PlanAnswer found = call(planner, wanted);
    wanted.callsSince = 100;
    long long few = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (!found.isFinal && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
      found = call(planner, wanted);
      if (few == 0) few = measured(planner);
    }
    EXPECT_TRUE(found.isFinal) << toText(Operation::kForward, offer.kernel);
    EXPECT_LT(20, measured(planner)) << toText(Operation::kForward, offer.kernel);
    if (few < 20) ++looks;
  }
  setLie(Lie::kNone);
  EXPECT_LT(0, looks);
}

TEST_F(PlannerPartsTest, AnotherCandidateOfTheProgramRunsBySame) {
  Planner planner;
  PlanRequest wanted = lacking(planner);
  const auto parts = call(planner, wanted).plan;
  ++wanted.own->kernel.id;
  EXPECT_EQ(call(planner, wanted).plan, parts);
  wanted.deterministic = true;
  EXPECT_NE(call(planner, wanted).plan, parts);
}

TEST_F(PlannerPartsTest, ThatOneCandidateDoesNotRunSoSaysNothingOfOthers) {
  Planner planner;
  const PlanRequest wanted = lacking(planner);
  PlanRequest refused = wanted;
  refused.own->kernel.id = *idFromText("eng12345");
  const auto other = call(planner, refused).plan;
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->steps.front().kernel == refused.own->kernel);
  const auto plan = call(planner, wanted).plan;
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->steps.front().kernel == wanted.own->kernel);
}

TEST_F(PlannerPartsTest, WhatFailsOnceRunsAnotherTime) {
  int failed = 0;
  for (int n = 1;; ++n) {
    Planner planner;
    const PlanRequest wanted = lacking(planner);
    const auto before = callCount();
    failCall(n);
    const auto begin = std::chrono::steady_clock::now();
    const bool isPlanned = call(planner, wanted).plan != nullptr;
    failCall(0);
    if (callCount() - before < n) break;
    if (isPlanned) continue;  // by smaller parts
    ++failed;
    const bool isTried = call(planner, wanted).plan != nullptr;
    const auto passed = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(!isTried || passed >= std::chrono::milliseconds(100)) << n << ": at each call";
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    EXPECT_TRUE(call(planner, wanted).plan) << n;
  }
  EXPECT_GT(failed, 0);
}

TEST_F(PlannerPartsTest, WhatFailsEachTimeIsTriedMoreAndMoreSeldom) {
  using Clock = std::chrono::steady_clock;
  const auto isPlanned = [&](Planner& planner, const PlanRequest& wanted, int failing) {
    failCall(failing);
    const bool planned = call(planner, wanted).plan != nullptr;
    failCall(0);
    return planned;
  };
  int failing = 1;  // the first call of cuDNN's without which there are no smaller parts either
  for (bool planned = true; planned && failing < 1000; failing += planned ? 1 : 0) {
    Planner other;
    planned = isPlanned(other, lacking(other), failing);
  }
  Planner planner;
  const PlanRequest wanted = lacking(planner);
  const auto isTried = [&] {
    const auto before = callCount();
    EXPECT_FALSE(isPlanned(planner, wanted, failing));
    return callCount() - before >= failing;
  };
  auto last = Clock::now();
  ASSERT_TRUE(isTried());
  for (const int leastMs : {100, 200, 400}) {  // a busy machine is late, never early
    auto begin = Clock::now();
    for (; !isTried(); begin = Clock::now())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_GE(Clock::now() - last, std::chrono::milliseconds(leastMs));
    last = begin;
  }
}

TEST_F(PlannerPartsTest, CallsOfTwoWorkspacesInTurnsHavePartsOfTheirOwn) {
  Planner planner;
  const PlanRequest large = lacking(planner);
  PlanRequest small = large;
  small.limitBytes = call(planner, large).plan->workspaceBytes - 1;
  const auto smaller = call(planner, small).plan;
  ASSERT_TRUE(smaller);
  EXPECT_LE(smaller->workspaceBytes, small.limitBytes);
  const auto larger = call(planner, large).plan;
  EXPECT_NE(larger, smaller);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(call(planner, small).plan, smaller);
    EXPECT_EQ(call(planner, large).plan, larger);
  }
}

TEST_F(PlannerPartsTest, NotWhereNothingMayBeSplitOrNotByEngines) {
  const auto isPlanned = [&](auto change) {
    Planner planner;
    PlanRequest wanted = lacking(planner);
    Settings settings = settings_;
    wanted.settings = &settings;
    change(wanted, settings);
    return call(planner, wanted).plan != nullptr;
  };
  EXPECT_TRUE(isPlanned([](PlanRequest&, Settings&) {}));
  EXPECT_FALSE(isPlanned([](PlanRequest&, Settings& settings) {
    settings.batchSizePolicy = BatchSizePolicy::kUndivided;
  }));
  EXPECT_FALSE(
      isPlanned([](PlanRequest&, Settings& settings) { settings.kernels = Kernels::kLegacy; }));
  EXPECT_FALSE(isPlanned([](PlanRequest&, Settings& settings) { settings.maxError = 1; }));
  EXPECT_FALSE(isPlanned([](PlanRequest& wanted, Settings&) { wanted.suitsEngines = false; }));
  EXPECT_FALSE(isPlanned([](PlanRequest& wanted, Settings&) { wanted.limitBytes = 1; }));
}

TEST_F(PlannerPartsTest, NotWherePartsAreTooShort) {
  Planner planner;
  PlanRequest wanted = lacking(planner);
  PreparedKernels prepared(handle_.get(), wanted.problem);
  for (const int batch : {2, 1}) {  // 0.009 and 0.005 ms for what they compute
    const auto offer = prepared.offer(batch, wanted.own->kernel, Calls::kAll, nullptr);
    ASSERT_TRUE(offer);
    wanted.limitBytes = offer->workspaceBytes;
    const auto parts = call(planner, wanted).plan;
    EXPECT_EQ(parts != nullptr, batch == 2);
  }
}

}  // namespace
}  // namespace ucudnn::test
