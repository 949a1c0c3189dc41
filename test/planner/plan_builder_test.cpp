// From a configuration to a plan, and what queries name for it.
#include "planner/plan_builder.hpp"

#include <gtest/gtest.h>

#include "benchmark/timing_limits.hpp"
#include "kernels/engines.hpp"
#include "planner/configuration_times.hpp"
#include "planner/planner_requests.hpp"
#include "support/measured.hpp"

namespace ucudnn {
namespace {

using test::kFft;
using test::kGemm;
using test::kWinograd;
using test::measured;
using test::sampleProblem;
using test::wanted;

std::shared_ptr<const Plan> buildPlan(const PlanRequest& request,
                                      const Configuration& configuration,
                                      Pace pace,
                                      const Measurements& measurements,
                                      std::shared_ptr<const Plan> enqueued = nullptr) {
  PreparedKernels kernels(request.handle, request.problem);
  return ucudnn::buildPlan(
      kernels, request, configuration, pace, measurements, std::move(enqueued));
}

TEST(PlanBuilderTest, APlanHasTheConfigurationsMicroBatches) {
  const Measurements measurements = {
      {2, {{measured(kGemm, 1, 10, true), measured(kFft, 2, 20, true)}}},
      {3, {{measured(kFft, 3, 30, true)}}}};
  const Configuration configuration{{{3, 0, 2}, {2, 1, 1}}, 8.5, 30};
  const auto plan = buildPlan(wanted(64), configuration, Pace::kHost, measurements);
  EXPECT_EQ(plan->problem, sampleProblem());
  EXPECT_EQ(plan->workspaceBytes, 30u);
  EXPECT_EQ(plan->predictedMs, 8.5);
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(plan->steps[0].timeMs, 3);
  EXPECT_EQ(plan->steps[1].workspaceBytes, 20u);
  EXPECT_TRUE(plan->isDivided());
  EXPECT_EQ(toText(*plan), "2 x 3 FFT/fma + 1 x 2 FFT/fma");
  for (const Plan::Step& step : plan->steps) EXPECT_NE(step.built, nullptr);
}

/// No longer than a larger size, and for a sample no longer than a smaller one.
TEST(PlanBuilderTest, PartsTakeWhatNeighbouringSizesDo) {
  Plan parts;
  const auto add = [&](int batch, Kernel kernel, bool deterministic) {
    Plan::Step step{};
    step.batch = batch;
    step.count = 2;
    step.kernel = kernel;
    step.deterministic = deterministic;
    parts.steps.push_back(step);
  };
  Measurements measurements = {{2, {{measured(kFft, 3, 0, true)}}},
                               {5, {{measured(kFft, 10, 0, true)}}},
                               {8, {{measured(kGemm, 1, 0, true)}}}};  // another kernel
  for (const int batch : {4, 7, 1}) add(batch, kFft, true);
  EXPECT_NEAR(partsMs(parts, measurements), 2 * (6 + 10.5 + 3), 0.01);
  measurements[5].kernels.front().timeMs = 5;
  EXPECT_NEAR(partsMs(parts, measurements), 2 * (5 + 7 + 3), 0.01);
  measurements[2].kernels.front().deterministic = false;  // as a check has found
  EXPECT_NEAR(partsMs(parts, measurements), 2 * (5 + 7 + 5), 0.01);
  measurements[5].kernels.front().deterministic = false;
  EXPECT_EQ(partsMs(parts, measurements), 0);
  add(8, kWinograd, false);
  EXPECT_EQ(partsMs(parts, measurements), 0) << "not all are known";
}

TEST(PlanBuilderTest, APlanSaysWhatItWasComparedWith) {
  const Measurements measurements = {{4, {{measured(kGemm, 2, 10, true, true, 1)}}},
                                     {8,
                                      {{measured(kWinograd, 9, 0, true),
                                        measured(kGemm, 5, 90, true, true, 4),
                                        measured(kFft, 1, 200, true)}}}};
  const auto compared = [&](std::size_t limit, Pace pace, bool replays) {
    const auto plan =
        buildPlan(wanted(limit, false, replays), {{{4, 0, 2}}, 4, 10}, pace, measurements);
    return std::make_pair(plan->undividedMs, plan->undividedBytes);
  };
  EXPECT_EQ(std::make_pair(5.0, std::size_t{90}), compared(100, Pace::kHost, false));
  EXPECT_EQ(std::make_pair(4 + kReplayMs, std::size_t{90}), compared(100, Pace::kDevice, true));
  EXPECT_EQ(std::make_pair(9.0, std::size_t{0}), compared(20, Pace::kHost, false));
  EXPECT_EQ(std::make_pair(1.0, std::size_t{200}), compared(200, Pace::kHost, false));
  const auto alone =
      buildPlan(wanted(20), {{{4, 0, 2}}, 4, 10}, Pace::kHost, {{4, measurements.at(4)}});
  EXPECT_EQ(0, alone->undividedMs) << "nothing is known undivided";
}

TEST(PlanBuilderTest, APlanIsReplayedWhereThatPays) {
  const Measurements measurements = {
      {4, {{measured(kGemm, 2, 0, true, true, 1)}}},
      {8, {{measured(kGemm, 3, 0, true, true, 2.9), measured(kFft, 3, 0, true, true, 2.98)}}}};
  const auto predict = [&](const Configuration& configuration, bool replays) {
    const auto plan =
        buildPlan(wanted(100, false, replays), configuration, Pace::kHost, measurements);
    return plan->replayed ? plan->predictedMs : 0;
  };
  EXPECT_EQ(predict({{{4, 0, 2}}, 4, 0}, true), 2 + kReplayMs);
  EXPECT_EQ(predict({{{8, 0, 1}}, 3, 0}, true), 2.9 + kReplayMs);
  EXPECT_EQ(predict({{{8, 1, 1}}, 3, 0}, true), 0) << "wins less than the noise of timings";
  EXPECT_EQ(predict({{{4, 0, 2}}, 4, 0}, false), 0) << "nothing is replayed";
}

TEST(PlanBuilderTest, APlanAsksForTheWorkspaceOfTheOneItRunsUntilACallRepeats) {
  const Measurements measurements = {{4, {{measured(kGemm, 2, 10, true, true, 1)}}},
                                     {8, {{measured(kFft, 3, 50, false)}}}};
  const auto enqueued =
      buildPlan(wanted(100, false, true), {{{8, 0, 1}}, 3, 50}, Pace::kHost, measurements);
  const auto plan = buildPlan(
      wanted(100, false, true), {{{4, 0, 2}}, 2, 10}, Pace::kDevice, measurements, enqueued);
  EXPECT_EQ(plan->enqueued, enqueued);
  EXPECT_EQ(plan->workspaceBytes, 50u);
  EXPECT_FALSE(plan->isDeterministic());
}

TEST(NamedAlgorithmTest, AnUndividedPlanIsNamedByItsKernel) {
  const auto plan = buildPlan(wanted(100),
                              {{{8, 1, 1}}, 2, 20},
                              Pace::kHost,
                              {{8, {{measured(kGemm, 1, 50, true), measured(kFft, 2, 20, true)}}}});
  EXPECT_FALSE(plan->isDivided());
  EXPECT_EQ(plan->algorithm, kFft.id);
  EXPECT_EQ(plan->algorithmBytes, 20u);
}

// A client may run the algorithm that a query names without us, in the workspace that it names.
TEST(NamedAlgorithmTest, ADividedPlanIsNamedByWhatRunsUndividedWithinTheReportedBytes) {
  constexpr std::size_t kLimit = 6000;
  constexpr std::size_t kBytes = 1000;  // reported as 1024
  const struct {
    const char* why;
    bool deterministic;                  ///< the plan's micro-batches
    std::vector<Measurement> undivided;  ///< kernels at the mini-batch
    Kernel named;
    std::size_t algorithmBytes;
  } kCases[] = {
      {"the fastest that fits",
       true,
       {measured(kGemm, 9, 0, true),
        measured(kWinograd, 5, 900, true),
        measured(kFft, 1, 5000, true)},
       kWinograd,
       kBytes},
      {"it fits into what is reported, though not into the plan's own workspace",
       true,
       {measured(kGemm, 9, 0, true), measured(kWinograd, 5, 1024, true)},
       kWinograd,
       1024},
      {"nothing fits: the one that needs the least",
       true,
       {measured(kFft, 1, 5000, true), measured(kWinograd, 5, 3000, true)},
       kWinograd,
       3000},
      {"as deterministic as the plan before all else",
       true,
       {measured(kGemm, 1, 0, false), measured(kFft, 5, 5000, true)},
       kFft,
       5000},
      {"as little deterministic as the plan",
       false,
       {measured(kGemm, 1, 0, true), measured(kFft, 5, 500, false)},
       kFft,
       kBytes},
      {"no other: a deterministic one", false, {measured(kGemm, 1, 0, true)}, kGemm, kBytes},
      {"never more than the limit, where a larger one has been measured",
       true,
       {measured(kGemm, 1, 0, false), measured(kFft, 5, kLimit + 1, true)},
       kGemm,
       kBytes},
      {"nothing undivided within the limit: the plan's own kernel",
       true,
       {measured(kGemm, 1, kLimit + 1, true)},
       kFft,
       kBytes},
      {"nothing undivided was measured: the plan's own kernel", true, {}, kFft, kBytes},
  };
  for (const auto& expected : kCases) {
    const Measurements measurements = {{4, {{measured(kFft, 1, kBytes, expected.deterministic)}}},
                                       {8, {expected.undivided}}};
    const auto plan =
        buildPlan(wanted(kLimit), {{{4, 0, 2}}, 2, kBytes}, Pace::kHost, measurements);
    EXPECT_EQ(plan->isDeterministic(), expected.deterministic) << expected.why;
    EXPECT_EQ(plan->algorithm, expected.named.id) << expected.why;
    EXPECT_EQ(plan->algorithmBytes, expected.algorithmBytes) << expected.why;
    EXPECT_EQ(plan->workspaceBytes, kBytes) << expected.why;
  }
}

// A query promises what calls of both get.
TEST(NamedAlgorithmTest, APlanWithAGeneralOneIsNamedByWhatIsAsDeterministicAsBoth) {
  const Kernel engine{0, CUDNN_FMA_MATH, kEngines};
  Measurement fast = measured(engine, 1, 10);
  fast.anyCall = false;
  Measurements measurements;
  measurements[8].kernels = {fast, measured(kGemm, 5, 20, false), measured(kFft, 9, 5000)};
  Plan plan;
  plan.problem = sampleProblem();
  plan.workspaceBytes = 10;
  plan.steps.push_back({fast, fast, 8, 1, nullptr});
  nameAlgorithm(plan, wanted(6000), measurements);
  EXPECT_EQ(plan.algorithm, kFft.id) << "the engine is deterministic";
  const auto both =
      withGeneral(plan, buildPlan(wanted(6000), {{{8, 1, 1}}, 5, 20}, Pace::kHost, measurements));
  EXPECT_FALSE(both->isDeterministic());
  nameAlgorithm(*both, wanted(6000), measurements);
  EXPECT_EQ(both->algorithm, kGemm.id);
  EXPECT_EQ(both->algorithmBytes, 20U);
}

}  // namespace
}  // namespace ucudnn
