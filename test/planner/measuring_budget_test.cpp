#include "planner/measuring_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace ucudnn {
namespace {

constexpr double kShare = 0.05;

/// Whatever measuring gains then, the program has lost no more.
TEST(MeasuringBudgetTest, WorthMeasuringIsWhatTakesSoLongThatAGainWouldPay) {
  const MeasuringBudget budget;
  for (const double timeMs : {0.02, 1.0, 30.0})
    for (const double gain : {budget.hopedGain(MeasuringBudget::Hope::kWhole),
                              budget.hopedGain(MeasuringBudget::Hope::kInParts),
                              budget.hopedGain(MeasuringBudget::Hope::kOnCopies),
                              1.0}) {
      const double callsMs = budget.expectedCostMs(timeMs) / gain;
      EXPECT_GT(1, budget.payback(0.99 * callsMs, timeMs, gain));
      EXPECT_LT(1, budget.payback(1.01 * callsMs, timeMs, gain));
    }
}

TEST(MeasuringBudgetTest, MeasuringTakesAShareOfTheTime) {
  MeasuringBudget budget;
  constexpr double kSliceMs = 5;
  double spentMs = 0;
  double timeMs = 0;
  for (int call = 0; call < 20000; ++call) {
    budget.addTime(1);
    timeMs += 1;
    if (!budget.has(kSliceMs, kShare)) continue;
    budget.spend(kSliceMs);
    spentMs += kSliceMs;
    ASSERT_LE(spentMs, kShare * timeMs);
  }
  EXPECT_GT(spentMs, kShare * timeMs * 0.9) << "the share is used";
  EXPECT_FALSE(budget.has(kSliceMs, 0));
}

TEST(MeasuringBudgetTest, TheShareIsOfWhatCallsTakeNotOfEstimates) {
  for (const double ratio : {0.5, 1.7}) {
    MeasuringBudget budget;
    for (int i = 0; i < 20; ++i) budget.learnTime(1, ratio);
    budget.addTime(1000);
    EXPECT_TRUE(budget.has(0.98 * kShare * ratio * 1000, kShare));
    EXPECT_FALSE(budget.has(1.02 * kShare * ratio * 1000, kShare));
  }
  MeasuringBudget budget;  // a kernel that is out of the ordinary decides little
  budget.learnTime(1, 1e6);
  budget.addTime(1000);
  EXPECT_FALSE(budget.has(2 * kShare * 1000, kShare));
}

TEST(MeasuringBudgetTest, WhatWasAskedForLeavesTheRestItsShare) {
  MeasuringBudget budget;
  budget.addTime(1e5);
  budget.learn(1, budget.expectedCostMs(1));  // a query's, however long it took
  EXPECT_TRUE(budget.has(5, kShare));
  budget.spend(kShare * 1e5);
  EXPECT_FALSE(budget.has(5, kShare));
}

/// A problem of a random program, which the rule knows nothing of but a call's time.
struct RandomProblem {
  enum class Kind {
    kOwn,     ///< its calls run by their own kernel
    kSlow,    ///< they lack workspace, and nothing stands in for their kernel
    kInParts  ///< their kernel runs in parts; few kernels are looked at first
  };
  /// One part of measuring it, and the part of the calls' time that is saved behind it.
  struct Stage {
    double costMs, gain;
  };
  Kind kind = Kind::kOwn;
  double timeMs = 0;  ///< of its calls
  std::vector<Stage> stages;
  std::size_t stage = 0;            ///< the next one
  double callsMs = 0, spentMs = 0;  ///< since the last one
  double pays = 0;                  ///< 0: it does not wait
  bool isBegun = false;

  double callMs() const { return timeMs * (stage == 0 ? 1 : 1 - stages[stage - 1].gain); }
  bool isLook() const { return kind == Kind::kInParts && stage == 0; }
  MeasuringBudget::Hope hope() const {
    using Hope = MeasuringBudget::Hope;
    return stage > 0 ? Hope::kAfterALook : kind == Kind::kOwn ? Hope::kWhole : Hope::kInParts;
  }
};

double paybackOf(const RandomProblem& problem, const MeasuringBudget& budget) {
  const double gain = budget.hopedGain(problem.hope());
  if (problem.isLook())
    return MeasuringBudget::paybackOfALook(problem.callsMs, problem.timeMs, gain);
  return budget.payback(problem.callsMs, problem.timeMs, gain);
}

/// Measures in slices as Measurer does, one problem at a time, the one that pays best first. The
/// time of all calls and measurements.
double costOfRule(std::vector<RandomProblem> problems, const std::vector<std::size_t>& calls) {
  constexpr double kSliceMs = 5;
  MeasuringBudget budget;
  double allMs = 0;
  const RandomProblem* ongoing = nullptr;
  for (const std::size_t call : calls) {
    RandomProblem& problem = problems[call];
    const double callMs = problem.callMs();
    allMs += callMs;
    budget.addTime(callMs);
    problem.callsMs += callMs;
    if (problem.stage == problem.stages.size()) continue;
    const bool isSlow = problem.kind == RandomProblem::Kind::kSlow;
    const double mostMs = isSlow ? std::max(kSliceMs, problem.timeMs) : kSliceMs;
    const double lostMs = isSlow             ? problem.callsMs
                          : problem.isLook() ? budget.lossInParts() * problem.callsMs
                                             : 0;
    const bool isPaid = problem.spentMs + mostMs <= lostMs;
    if (!isPaid && !budget.has(kSliceMs, kShare)) continue;
    if (!problem.isBegun && !(isSlow && isPaid)) {
      problem.pays = paybackOf(problem, budget);
      if (problem.pays < 1) continue;
      const auto paysMore = [&](const RandomProblem& other) { return other.pays > problem.pays; };
      if (std::any_of(problems.begin(), problems.end(), paysMore)) continue;
    }
    if (ongoing != nullptr && ongoing != &problem) continue;
    ongoing = &problem;
    problem.isBegun = true;
    problem.pays = 0;
    const double sliceMs = std::min(mostMs, problem.stages[problem.stage].costMs - problem.spentMs);
    problem.spentMs += sliceMs;
    allMs += sliceMs;
    budget.spend(sliceMs);
    if (problem.spentMs < problem.stages[problem.stage].costMs) continue;
    const auto hope = problem.hope();
    const double before = problem.callMs();
    ++problem.stage;
    budget.learnGain(hope, std::max(0.0, 1 - problem.callMs() / before));
    problem.callsMs = problem.spentMs = 0;
    problem.isBegun = false;
    ongoing = nullptr;
  }
  return allMs;
}

/// Whoever knows how often each problem will be called measures it before the first call, as far as
/// that pays, or never.
double costOfOracle(const std::vector<RandomProblem>& problems,
                    const std::vector<std::size_t>& calls) {
  std::vector<double> callsMs(problems.size());
  for (const std::size_t call : calls) callsMs[call] += problems[call].timeMs;
  double allMs = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    double leastMs = callsMs[i];
    for (const RandomProblem::Stage& stage : problems[i].stages)
      leastMs = std::min(leastMs, stage.costMs + (1 - stage.gain) * callsMs[i]);
    allMs += leastMs;
  }
  return allMs;
}

TEST(MeasuringBudgetTest, RandomProgramsTakeAtMostTwiceWhatTheyWouldHadTheyKnownTheFuture) {
  std::mt19937_64 random(1);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  double worst = 0, sum = 0;
  constexpr int kPrograms = 2000;
  for (int program = 0; program < kPrograms; ++program) {
    std::vector<RandomProblem> problems(1 + random() % 30);
    std::vector<double> weights;
    const MeasuringBudget thumb;
    for (RandomProblem& problem : problems) {
      using Kind = RandomProblem::Kind;
      problem.timeMs = std::exp(uniform(std::log(0.01), std::log(20)));
      const auto dice = random() % 4;
      problem.kind = dice == 0 ? Kind::kSlow : dice == 1 ? Kind::kInParts : Kind::kOwn;
      const double gain = uniform(0, dice == 0 ? 0.98 : 0.5);
      const double costMs = thumb.expectedCostMs(problem.timeMs) * uniform(0.3, 1);
      if (problem.isLook())
        problem.stages.push_back({costMs * uniform(0.1, 0.3), gain * uniform(0, 1)});
      problem.stages.push_back({costMs, gain});
      weights.push_back(std::exp(uniform(0, 5)));
    }
    std::discrete_distribution<std::size_t> next(weights.begin(), weights.end());
    std::vector<std::size_t> calls(static_cast<std::size_t>(std::exp(uniform(3, 10))));
    for (std::size_t& call : calls) call = next(random);
    const double ratio = costOfRule(problems, calls) / costOfOracle(problems, calls);
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  EXPECT_LE(worst, 2);
  EXPECT_LE(sum / kPrograms, 1.2);
}

TEST(MeasuringBudgetTest, ASliceIsFollowedByARest) {
  MeasuringBudget budget;
  budget.addTime(1e6);  // has saved up for thousands of slices
  constexpr double kSliceMs = 20;
  for (int slice = 0; slice < 5; ++slice) {
    EXPECT_TRUE(budget.has(kSliceMs, kShare));
    budget.spend(kSliceMs);
    double restMs = 0;
    while (!budget.has(kSliceMs, kShare)) {
      budget.addTime(1);
      restMs += 1;
    }
    EXPECT_NEAR(2 * kSliceMs, restMs, 1);
  }
  budget.spend(kSliceMs);
  EXPECT_TRUE(budget.has(kSliceMs, 0.5)) << "whoever grants half of the time wants no rests";
}

TEST(MeasuringBudgetTest, GainsAreLearnedForEachKindOfProblem) {
  using Hope = MeasuringBudget::Hope;
  MeasuringBudget budget;
  const double before = budget.hopedGain(Hope::kWhole);
  const double ofLooks = budget.hopedGain(Hope::kInParts);
  for (int i = 0; i < 50; ++i) budget.learnGain(Hope::kWhole, 2 * before);
  EXPECT_NEAR(2 * before, budget.hopedGain(Hope::kWhole), 0.01 * before);
  for (int i = 0; i < 50; ++i) budget.learnGain(Hope::kWhole, 0);
  EXPECT_EQ(MeasuringBudget::kLeastGain, budget.hopedGain(Hope::kWhole))
      << "a long program measures all";
  EXPECT_EQ(ofLooks, budget.hopedGain(Hope::kInParts));
  EXPECT_GT(ofLooks, budget.hopedGain(Hope::kOnCopies));
  const double loss = budget.lossInParts(), ofCopies = budget.hopedGain(Hope::kOnCopies);
  budget.learnGain(Hope::kOnCopies, 0);
  EXPECT_EQ(ofCopies, budget.hopedGain(Hope::kOnCopies)) << "nothing gained raises no hope";
  budget.learnGain(Hope::kOnCopies, 0.5);
  EXPECT_LT(ofCopies, budget.hopedGain(Hope::kOnCopies));
  EXPECT_EQ(ofLooks, budget.hopedGain(Hope::kInParts));
  EXPECT_EQ(loss, budget.lossInParts());
}

TEST(MeasuringBudgetTest, ALookMayTakeWhatLooksHaveGained) {
  using Hope = MeasuringBudget::Hope;
  MeasuringBudget budget;
  const double least = budget.lossInParts();
  budget.learnGain(Hope::kWhole, 0.5);
  EXPECT_EQ(least, budget.lossInParts());
  for (int i = 0; i < 3; ++i) budget.learnGain(Hope::kInParts, 0.3);
  EXPECT_LT(1.5 * least, budget.lossInParts());
  for (int i = 0; i < 50; ++i) budget.learnGain(Hope::kInParts, 0);
  EXPECT_EQ(least, budget.lossInParts());
}

TEST(MeasuringBudgetTest, CostsAreLearned) {
  MeasuringBudget budget;
  const double before = budget.expectedCostMs(1);
  for (int i = 0; i < 50; ++i) budget.learn(1, 3 * before);
  EXPECT_NEAR(budget.expectedCostMs(1), 3 * before, 0.1 * before);
  EXPECT_GT(budget.expectedCostMs(10), budget.expectedCostMs(1));
}

}  // namespace
}  // namespace ucudnn
