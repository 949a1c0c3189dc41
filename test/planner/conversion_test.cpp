// From measurements to candidates, and from a configuration to a plan.
#include "planner/conversion.hpp"

#include <gtest/gtest.h>

#include "benchmark/timing_limits.hpp"
#include "kernels/engines.hpp"
#include "support/measured.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::measured;
using test::sampleProblem;

constexpr Kernel kGemm{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_FMA_MATH};
constexpr Kernel kFft{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH};
constexpr Kernel kWinograd{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_FMA_MATH};

/// For the sample problem, of 8 samples.
PlanRequest wanted(std::size_t limitBytes, bool deterministic = false, bool replays = false) {
  static const Settings kOn, kOff = [] {
    Settings settings;
    settings.graphMemoryBytes = 0;
    return settings;
  }();
  PlanRequest request;
  request.problem = sampleProblem();
  request.limitBytes = limitBytes;
  request.deterministic = deterministic;
  request.settings = replays ? &kOn : &kOff;
  return request;
}

void expectEqual(const Measurements& a, const Measurements& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [batch, size] : a) {
    ASSERT_EQ(b.count(batch), 1u);
    const SizeMeasurements& other = b.at(batch);
    ASSERT_EQ(size.kernels.size(), other.kernels.size());
    for (std::size_t i = 0; i < size.kernels.size(); ++i) {
      EXPECT_EQ(size.kernels[i].kernel, other.kernels[i].kernel);
      EXPECT_EQ(size.kernels[i].timeMs, other.kernels[i].timeMs);
      EXPECT_EQ(size.kernels[i].workspaceBytes, other.kernels[i].workspaceBytes);
      EXPECT_EQ(size.kernels[i].deterministic, other.kernels[i].deterministic);
      EXPECT_EQ(size.kernels[i].deviceMs, other.kernels[i].deviceMs);
    }
  }
}

TEST(ConversionTest, CandidatesAreNumberedByTheirPlaceInTheSize) {
  const Measurements measurements = {{2,
                                      {{measured(kGemm, 1, 10, true),
                                        measured(kFft, 2, 20, false),
                                        measured(kWinograd, 3, 30, true)}}},
                                     {4, {{measured(kFft, 4, 40, false)}}},
                                     {8, {{}}}};
  const CandidateTable all = candidates(wanted(100), measurements, 0, Pace::kHost);
  ASSERT_EQ(all.at(2).size(), 3u);
  EXPECT_EQ(all.at(2)[1].kernel, 1);
  EXPECT_EQ(all.at(2)[1].timeMs, 2);
  EXPECT_EQ(all.at(2)[1].workspaceBytes, 20u);
  EXPECT_EQ(all.at(4).size(), 1u);
  EXPECT_TRUE(all.at(8).empty());

  const CandidateTable deterministic = candidates(wanted(100, true), measurements, 0, Pace::kHost);
  ASSERT_EQ(deterministic.at(2).size(), 2u);
  EXPECT_EQ(deterministic.at(2)[1].kernel, 2) << "the place in the size, not among the candidates";
  EXPECT_TRUE(deterministic.at(4).empty());
}

TEST(ConversionTest, BelowTheMiniBatchOnlyAccurateKernelsAreCandidates) {
  const Measurements measurements = {
      {2, {{measured(kGemm, 2, 10, true, false), measured(kFft, 1, 20)}}},
      {4, {{measured(kGemm, 4, 40, true, false)}}}};
  const CandidateTable table = candidates(wanted(100), measurements, 4, Pace::kHost);
  ASSERT_EQ(table.at(2).size(), 1u);
  EXPECT_EQ(table.at(2)[0].kernel, 1);
  EXPECT_EQ(table.at(4).size(), 1u) << "undivided it is what cuDNN runs";
  EXPECT_EQ(candidates(wanted(100), measurements, 0, Pace::kHost).at(2).size(), 2u);
}

Measurement withError(Measurement measured, double error) {
  measured.error = error;
  return measured;
}

// A kernel's error is that of its size, else the largest of any: only a filter gradient's differ.
TEST(ConversionTest, OnlyKernelsWithinTheLargestErrorAreCandidates) {
  const Measurements measurements = {
      {1,
       {{withError(measured(kGemm, 1, 0), 1e-7),
         withError(measured(kFft, 1, 0, true, false), 8e-6),
         measured(kWinograd, 1, 0)}}},
      {2, {{measured(kGemm, 2, 0), measured(kFft, 2, 0), measured(kWinograd, 2, 0)}}},
      {4, {{withError(measured(kGemm, 4, 0), 9e-6), measured(kFft, 4, 0)}}}};
  const auto kernelsWithin = [&](double maxError, int batch) {
    Settings settings;
    settings.maxError = maxError;
    PlanRequest request = wanted(100);
    request.settings = &settings;
    const CandidateTable table = candidates(request, measurements, 0, Pace::kHost);
    std::vector<int> kernels;
    for (const Candidate& candidate : table.at(batch)) kernels.push_back(candidate.kernel);
    return kernels;
  };
  using Kernels = std::vector<int>;
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1e-2, 1)) << "what is not known may be any";
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1e-5, 1)) << "whatever its name";
  EXPECT_EQ((Kernels{0}), kernelsWithin(9e-6, 1)) << "a quarter may come to it";
  EXPECT_EQ((Kernels{}), kernelsWithin(1e-7, 1));
  EXPECT_EQ((Kernels{1}), kernelsWithin(1e-5, 2)) << "the largest at any size";
  EXPECT_EQ((Kernels{0, 1}), kernelsWithin(1.2e-5, 4));
  EXPECT_EQ((Kernels{1}), kernelsWithin(1e-5, 4)) << "its own";
  EXPECT_EQ((Kernels{0, 1, 2}), kernelsWithin(0, 2)) << "none is stated";
}

// An engine's call takes the host a third of an algorithm's.
TEST(ConversionTest, OfKernelsAboutAsFastTheEngineIsTheCandidate) {
  const Kernel engine{0, CUDNN_FMA_MATH, kEngines};
  const auto kernelsAt = [&](Measurement algorithm, Measurement other, bool anyCall = false) {
    other.anyCall = false;
    PlanRequest request = wanted(100);
    request.anyCall = anyCall;
    const CandidateTable table = candidates(request, {{8, {{algorithm, other}}}}, 0, Pace::kHost);
    std::vector<Kernel> kernels;
    for (const Candidate& candidate : table.at(8))
      kernels.push_back(candidate.kernel == 0 ? algorithm.kernel : other.kernel);
    return kernels;
  };
  const std::vector<Kernel> both{kFft, engine}, one{engine};
  EXPECT_EQ(one, kernelsAt(measured(kFft, 1, 10), measured(engine, 1.009, 10)));
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1.02, 10)));
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 11))) << "needs more";
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10, false)))
      << "what it adds up comes in any order";
  EXPECT_EQ(both, kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10, true, false)));
  EXPECT_EQ((std::vector<Kernel>{kFft, kGemm}),
            kernelsAt(measured(kFft, 1, 10), measured(kGemm, 1, 10)));
  EXPECT_EQ(std::vector<Kernel>{kFft},
            kernelsAt(measured(kFft, 1, 10), measured(engine, 1, 10), true))
      << "a call that suits no engine";
}

TEST(ConversionTest, AKnownErrorStaysWhereOnlyTimesAreMeasuredAgain) {
  SizeMeasurements to{{withError(measured(kGemm, 1, 10), 1e-7)}};
  addMeasurements(to, {{measured(kGemm, 2, 10)}});
  EXPECT_EQ(2, to.kernels[0].timeMs);
  EXPECT_EQ(1e-7, to.kernels[0].error);
  addMeasurements(to, {{withError(measured(kGemm, 3, 10), 2e-7)}});
  EXPECT_EQ(2e-7, to.kernels[0].error);
}

TEST(ConversionTest, AddedMeasurementsReplaceTheirKernelsOnly) {
  SizeMeasurements to{{measured(kGemm, 1, 10, true), measured(kFft, 2, 20, true)}};
  addMeasurements(to, {{measured(kFft, 3, 25, false), measured(kWinograd, 4, 40, true)}});
  expectEqual({{1, to}},
              {{1,
                {{measured(kGemm, 1, 10, true),
                  measured(kFft, 3, 25, false),
                  measured(kWinograd, 4, 40, true)}}}});
}

TEST(ConversionTest, APlanHasTheConfigurationsMicroBatches) {
  const Measurements measurements = {
      {2, {{measured(kGemm, 1, 10, true), measured(kFft, 2, 20, true)}}},
      {3, {{measured(kFft, 3, 30, true)}}}};
  const Configuration configuration{{{3, 0, 2}, {2, 1, 1}}, 8.5, 30};
  const auto plan = buildPlan(wanted(64), configuration, Pace::kHost, measurements);
  EXPECT_EQ(plan->problem, sampleProblem());
  EXPECT_EQ(plan->limitBytes, 64u);
  EXPECT_EQ(plan->workspaceBytes, 30u);
  EXPECT_EQ(plan->predictedMs, 8.5);
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(plan->steps[0].timeMs, 3);
  EXPECT_EQ(plan->steps[1].workspaceBytes, 20u);
  EXPECT_TRUE(plan->isDivided());
  EXPECT_EQ(toText(*plan), "2 x 3 FFT/fma + 1 x 2 FFT/fma");
  for (const Plan::Step& step : plan->steps) EXPECT_NE(step.built, nullptr);
}

TEST(ConversionTest, AnUndividedPlanIsNamedByItsKernel) {
  const auto plan = buildPlan(wanted(100),
                              {{{8, 1, 1}}, 2, 20},
                              Pace::kHost,
                              {{8, {{measured(kGemm, 1, 50, true), measured(kFft, 2, 20, true)}}}});
  EXPECT_FALSE(plan->isDivided());
  EXPECT_EQ(plan->algorithm, kFft.id);
  EXPECT_EQ(plan->algorithmBytes, 20u);
}

TEST(ConversionTest, APlanSaysWhatItWasComparedWith) {
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

// A client may run the algorithm that a query names without us, in the workspace that it names.
TEST(ConversionTest, ADividedPlanIsNamedByWhatRunsUndividedWithinTheReportedBytes) {
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
TEST(ConversionTest, APlanWithAGeneralOneIsNamedByWhatIsAsDeterministicAsBoth) {
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

TEST(ConversionTest, AtTheDevicesPaceCandidatesTakeWhatTheDeviceNeeds) {
  const Measurements measurements = {
      {4, {{measured(kGemm, 2, 0, true, true, 1)}}},
      {8, {{measured(kGemm, 3, 0, true, true, 2.9), measured(kFft, 3, 0, true, true, 3)}}}};
  const CandidateTable host = candidates(wanted(100), measurements, 0, Pace::kHost);
  EXPECT_EQ(host.at(4)[0].timeMs, 2);
  EXPECT_EQ(host.at(8)[0].timeMs, 3);
  const CandidateTable device = candidates(wanted(100), measurements, 0, Pace::kDevice);
  EXPECT_EQ(device.at(4)[0].timeMs, 1);
  EXPECT_EQ(device.at(8)[0].timeMs, 2.9 + kReplayMs);
  EXPECT_EQ(device.at(8)[1].timeMs, 3) << "a graph gains nothing";
}

TEST(ConversionTest, APlanIsReplayedWhereThatPays) {
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

TEST(ConversionTest, APlanAsksForTheWorkspaceOfTheOneItRunsUntilACallRepeats) {
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

}  // namespace
}  // namespace ucudnn
