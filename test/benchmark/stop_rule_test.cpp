#include "benchmark/stop_rule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ucudnn {
namespace {

StopRule::Limits limits() {
  StopRule::Limits limits;
  limits.minimumSamples = 3;
  limits.maximumSamples = 6;
  limits.relativeSpread = 0.01;
  limits.budgetMs = 100;
  return limits;
}

StopRule ruleOf(const std::vector<double>& samples) {
  StopRule rule(limits());
  for (const double sample : samples) rule.add(sample, 1);
  return rule;
}

TEST(StopRuleTest, MedianAndSpreadAreThoseOfTheSamples) {
  const struct {
    std::vector<double> samples;
    double median, spread;
  } kCases[] = {
      {{5}, 5, 0},
      {{4, 6}, 5, 1.0 / 5},
      {{9, 1, 2}, 2, 1.0 / 2},          // deviations 7, 1, 0
      {{1, 2, 3, 10}, 2.5, 1.0 / 2.5},  // deviations 1.5, 0.5, 0.5, 7.5
      {{3, 3, 3, 3, 1000}, 3, 0},
      {{0, 0, 0}, 0, 0},  // a clock too coarse for the kernel
  };
  for (const auto& expected : kCases) {
    const StopRule rule = ruleOf(expected.samples);
    EXPECT_DOUBLE_EQ(rule.median(), expected.median);
    EXPECT_DOUBLE_EQ(rule.relativeSpread(), expected.spread);
    EXPECT_EQ(rule.count(), expected.samples.size());
  }
}

TEST(StopRuleTest, ItIsDoneWhenTheMedianCanBeTrusted) {
  const struct {
    const char* why;
    std::vector<double> samples;
    bool done;
  } kCases[] = {
      {"no sample yet", {}, false},
      {"equal, but too few", {1, 1}, false},
      {"the fewest, equal", {1, 1, 1}, true},
      {"the fewest, an outlier", {1, 1, 9}, true},
      {"the fewest, apart", {1, 2, 3}, false},
      {"within the spread", {100, 101, 99}, true},
      {"above the spread", {100, 102, 98}, false},
      {"more of them, still apart", {1, 2, 3, 4, 5}, false},
      {"as many as a noisy kernel is worth", {1, 2, 3, 4, 5, 6}, true},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(ruleOf(expected.samples).done(), expected.done) << expected.why;
}

TEST(StopRuleTest, TheBudgetEndsItWithOneSample) {
  StopRule rule(limits());
  rule.add(1, 99);
  EXPECT_FALSE(rule.done());
  rule.add(2, 1);
  EXPECT_TRUE(rule.done());
}

TEST(StopRuleTest, ItsDefaultsAskForAMedianThatDropsAnOutlier) {
  StopRule rule;
  ASSERT_EQ(rule.minimumSamples(), 3);
  for (const double sample : {1.0, 50.0, 1.0}) rule.add(sample, 0);
  EXPECT_TRUE(rule.done());
  EXPECT_DOUBLE_EQ(rule.median(), 1);
}

}  // namespace
}  // namespace ucudnn
