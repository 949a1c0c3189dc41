// An attempt that was cut short leaves its findings known, and a later one completes them.
#include "planner/knowledge.hpp"

#include <gtest/gtest.h>

namespace ucudnn {
namespace {

constexpr std::size_t kSmall = 100 << 10;
constexpr std::size_t kLarge = 4 << 20;

BenchmarkResult whole() {
  BenchmarkResult result;
  result.undividedMeasured = true;
  return result;
}

BenchmarkResult shortOf(Untried untried, bool replaysUntried = false) {
  BenchmarkResult result = whole();
  result.untried = untried;
  result.replaysUntried = replaysUntried;
  return result;
}

TEST(KnowledgeTest, AWholeAttemptAnswersItsLimitAndNoLargerOne) {
  KnownQuestion asked;
  EXPECT_FALSE(asked.isComplete(kSmall));
  asked.addAttempt(whole(), kSmall, false);
  EXPECT_TRUE(asked.isComplete(kSmall));
  EXPECT_FALSE(asked.isComplete(kLarge));
}

TEST(KnowledgeTest, OneThatEveryOfferFitsAnswersAll) {
  KnownQuestion asked;
  BenchmarkResult result = whole();
  result.everyOfferFits = true;
  asked.addAttempt(result, kSmall, false);
  EXPECT_TRUE(asked.isComplete(kLarge));
}

TEST(KnowledgeTest, ALookDoesNotMakeUpForWhatIsLeftOutLater) {
  KnownQuestion asked;
  asked.addAttempt(shortOf(Untried::kTime), kLarge, false);
  EXPECT_TRUE(asked.isComplete(kLarge)) << "for now";
  asked.addAttempt(shortOf(Untried::kMemory), kLarge, false);
  EXPECT_FALSE(asked.isComplete(kLarge));
}

class CutShortTest : public ::testing::TestWithParam<BenchmarkResult> {};

TEST_P(CutShortTest, AnAttemptWithinLessDoesNotMakeUpForIt) {
  KnownQuestion asked;
  asked.addAttempt(GetParam(), kLarge, false);
  EXPECT_TRUE(asked.answers(kLarge));
  EXPECT_FALSE(asked.isComplete(kSmall));
  asked.addAttempt(whole(), kSmall, false);
  EXPECT_TRUE(asked.isComplete(kSmall));
  EXPECT_FALSE(asked.isComplete(kLarge));
  asked.addAttempt(whole(), kLarge, false);
  EXPECT_TRUE(asked.isComplete(kLarge));
  EXPECT_FALSE(asked.isIncomplete());
}

TEST_P(CutShortTest, AnotherOneWithinLessLeavesItCutShort) {
  KnownQuestion asked;
  asked.addAttempt(GetParam(), kLarge, false);
  asked.addAttempt(GetParam(), kSmall, false);
  asked.addAttempt(whole(), kSmall, false);
  EXPECT_FALSE(asked.isComplete(kLarge));
}

BenchmarkResult failed() {
  BenchmarkResult result = whole();
  result.failures = 1;
  return result;
}

TEST(KnowledgeTest, WhatFailsTwiceRunningIsAsIfRefused) {
  KnownQuestion asked;
  BenchmarkResult result = failed();
  result.undividedMeasured = false;
  asked.addAttempt(result, kLarge, true);
  EXPECT_FALSE(asked.isAnswered());
  asked.addAttempt(result, kLarge, false);
  EXPECT_FALSE(asked.isAnswered()) << "no kernel is known";
  asked.addAttempt(result, kLarge, true);
  EXPECT_TRUE(asked.isComplete(kLarge));
}

INSTANTIATE_TEST_SUITE_P(Reasons,
                         CutShortTest,
                         ::testing::Values(shortOf(Untried::kMemory),
                                           shortOf(Untried::kNone, true),
                                           failed()));

}  // namespace
}  // namespace ucudnn
