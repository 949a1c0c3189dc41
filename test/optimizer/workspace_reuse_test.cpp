// WR and its Pareto front against an enumeration of every multiset of micro-batches.
#include "optimizer/workspace_reuse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

namespace ucudnn {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
constexpr double kStepMs =
    1e-3;  // times of the random cases are whole steps, so the oracle is exact

/// Ordered as the optimizer promises: time, then micro-batches, then workspace.
struct Outcome {
  long steps;
  int microBatches;
  std::size_t workspaceBytes;
};
bool operator<(const Outcome& a, const Outcome& b) {
  return std::tie(a.steps, a.microBatches, a.workspaceBytes) <
         std::tie(b.steps, b.microBatches, b.workspaceBytes);
}

struct Choice {
  int batch;
  int kernel;
  long steps;
  std::size_t workspaceBytes;
};

struct Case {
  int miniBatch;
  long launchSteps;
  std::vector<Choice> choices;

  double launchMs() const { return static_cast<double>(launchSteps) * kStepMs; }
  CandidateTable table() const {
    CandidateTable result;
    for (const Choice& c : choices) {
      result[c.batch].push_back(
          {c.kernel, static_cast<double>(c.steps) * kStepMs, c.workspaceBytes});
    }
    return result;
  }
};

/// Every multiset of choices that sums to the mini-batch.
void enumerate(const Case& c,
               std::size_t first,
               int samples,
               const Outcome& soFar,
               std::vector<Outcome>& all) {
  if (samples == 0) all.push_back(soFar);
  for (std::size_t i = first; i < c.choices.size(); ++i) {
    const Choice& choice = c.choices[i];
    if (choice.batch > samples) continue;
    enumerate(c,
              i,
              samples - choice.batch,
              {soFar.steps + choice.steps + c.launchSteps,
               soFar.microBatches + 1,
               std::max(soFar.workspaceBytes, choice.workspaceBytes)},
              all);
  }
}

Case randomReuse(std::mt19937& random) {
  const auto draw = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  Case c;
  c.miniBatch = draw(1, 12);
  c.launchSteps = draw(0, 1) * draw(1, 20);
  const int timeRange = draw(0, 2) == 0 ? 3 : 100;  // a small range makes ties and zero times usual
  const int workspaceRange = draw(0, 1) == 0 ? 3 : 40;
  const int most = c.miniBatch <= 8 ? 8 : 6;  // keeps the enumeration to thousands of multisets
  for (int kernel = draw(0, 3) == 0 ? most : 0; kernel < most; ++kernel) {
    // Above the mini-batch too: such sizes have to be ignored.
    c.choices.push_back({draw(1, c.miniBatch + 1),
                         kernel,
                         draw(0, timeRange),
                         static_cast<std::size_t>(draw(0, workspaceRange))});
  }
  if (draw(0, 1) == 0) c.choices.push_back({1, most, draw(0, timeRange), 0});
  return c;
}

/// The configuration's totals, from its groups and the case's own numbers.
Outcome outcomeOf(const Case& c, const Configuration& configuration) {
  Outcome outcome{0, 0, 0};
  int samples = 0;
  int lastBatch = std::numeric_limits<int>::max();
  for (const MicroBatches& group : configuration.microBatches) {
    EXPECT_LT(group.batch, lastBatch) << "largest micro-batches first, one group each";
    EXPECT_GE(group.count, 1);
    lastBatch = group.batch;
    samples += group.batch * group.count;
    const auto choice =
        std::find_if(c.choices.begin(), c.choices.end(), [&group](const Choice& candidate) {
          return candidate.kernel == group.kernel && candidate.batch == group.batch;
        });
    if (choice == c.choices.end()) {
      ADD_FAILURE() << "kernel " << group.kernel << " was not measured at " << group.batch;
      continue;
    }
    outcome.steps += group.count * (choice->steps + c.launchSteps);
    outcome.microBatches += group.count;
    outcome.workspaceBytes = std::max(outcome.workspaceBytes, choice->workspaceBytes);
  }
  EXPECT_EQ(samples, c.miniBatch);
  EXPECT_EQ(outcome.workspaceBytes, configuration.workspaceBytes);
  EXPECT_DOUBLE_EQ(static_cast<double>(outcome.steps) * kStepMs, configuration.timeMs);
  return outcome;
}

bool equal(const Outcome& a, const Outcome& b) {
  return !(a < b) && !(b < a);
}

void expectFastest(const Case& c, const std::vector<Outcome>& all, std::size_t limitBytes) {
  const Outcome* best = nullptr;
  for (const Outcome& outcome : all) {
    if (outcome.workspaceBytes > limitBytes) continue;
    if (best == nullptr || outcome < *best) best = &outcome;
  }
  const auto found = fastestConfiguration(c.table(), c.miniBatch, {limitBytes}, c.launchMs());
  ASSERT_EQ(found.has_value(), best != nullptr) << "limit " << limitBytes;
  if (!found) return;
  const Outcome outcome = outcomeOf(c, *found);
  EXPECT_TRUE(equal(outcome, *best))
      << "limit " << limitBytes << ": " << outcome.steps << " steps, " << outcome.microBatches
      << " micro-batches, " << outcome.workspaceBytes << " bytes; expected " << best->steps << ", "
      << best->microBatches << ", " << best->workspaceBytes;
}

void expectFront(const Case& c, const std::vector<Outcome>& all, std::size_t limitBytes) {
  std::vector<Outcome> expected;
  for (const Outcome& outcome : all) {
    if (outcome.workspaceBytes > limitBytes) continue;
    const bool beaten = std::any_of(all.begin(), all.end(), [&outcome](const Outcome& other) {
      if (other.steps > outcome.steps || other.workspaceBytes > outcome.workspaceBytes)
        return false;
      return other.steps < outcome.steps || other.workspaceBytes < outcome.workspaceBytes ||
             other.microBatches < outcome.microBatches;
    });
    if (!beaten) expected.push_back(outcome);
  }
  std::sort(expected.begin(), expected.end(), [](const Outcome& a, const Outcome& b) {
    return a.workspaceBytes < b.workspaceBytes;
  });
  expected.erase(std::unique(expected.begin(), expected.end(), equal), expected.end());

  const auto front = paretoFront(c.table(), c.miniBatch, {limitBytes}, c.launchMs());
  ASSERT_EQ(front.size(), expected.size()) << "limit " << limitBytes;
  for (std::size_t i = 0; i < front.size(); ++i) {
    EXPECT_TRUE(equal(outcomeOf(c, front[i]), expected[i])) << "point " << i;
    const auto fastest =
        fastestConfiguration(c.table(), c.miniBatch, {front[i].workspaceBytes}, c.launchMs());
    ASSERT_TRUE(fastest.has_value());
    EXPECT_EQ(fastest->timeMs, front[i].timeMs);
    EXPECT_EQ(fastest->workspaceBytes, front[i].workspaceBytes);
    EXPECT_TRUE(fastest->microBatches == front[i].microBatches) << "point " << i;
    if (i == 0) continue;
    EXPECT_GT(front[i].workspaceBytes, front[i - 1].workspaceBytes);
    EXPECT_LT(front[i].timeMs, front[i - 1].timeMs);
  }
}

/// The first point of the front that is fast enough.
void expectLean(const Case& c, std::size_t limitBytes, double factor) {
  const auto front = paretoFront(c.table(), c.miniBatch, {limitBytes}, c.launchMs());
  const double mostMs = front.empty() ? 1 : front.back().timeMs * factor;
  const auto lean = leanConfiguration(c.table(), c.miniBatch, {limitBytes}, c.launchMs(), mostMs);
  const auto isFast = [&](const Configuration& point) { return point.timeMs <= mostMs; };
  const auto expected = std::find_if(front.begin(), front.end(), isFast);
  ASSERT_EQ(lean.has_value(), expected != front.end()) << "factor " << factor;
  EXPECT_TRUE(!lean || lean->microBatches == expected->microBatches) << "factor " << factor;
}

TEST(WorkspaceReuseTest, EqualsEnumerationOnRandomTables) {
  std::mt19937 random(20180717);  // any fixed seed
  int notEmpty = 0;
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Case c = randomReuse(random);
    std::vector<Outcome> all;
    enumerate(c, 0, c.miniBatch, {0, 0, 0}, all);
    notEmpty += all.empty() ? 0 : 1;
    for (const std::size_t limit : {std::size_t{0}, std::size_t{2}, std::size_t{17}, kNoLimit}) {
      expectFastest(c, all, limit);
      expectFront(c, all, limit);
      for (const double factor : {0.5, 1.0, 1.3, 4.0}) expectLean(c, limit, factor);
    }
  }
  EXPECT_GT(notEmpty, 2000);  // the cases must not be mostly empty ones
}

/// Every order of choices that sums to the mini-batch and has room at each place.
void enumerateOrders(const Case& c,
                     const WorkspaceRoom& room,
                     int samples,
                     const Outcome& soFar,
                     std::vector<Outcome>& all) {
  if (samples == 0) all.push_back(soFar);
  for (const Choice& choice : c.choices) {
    if (choice.batch > samples || choice.workspaceBytes > room.at(samples - choice.batch)) continue;
    const bool borrows = choice.workspaceBytes > room.limitBytes;
    enumerateOrders(c,
                    room,
                    samples - choice.batch,
                    {soFar.steps + choice.steps + c.launchSteps,
                     soFar.microBatches + 1,
                     std::max(soFar.workspaceBytes, borrows ? 0 : choice.workspaceBytes)},
                    all);
  }
}

/// The totals, from its groups in their order; each has to have room.
Outcome orderedOutcomeOf(const Case& c, const WorkspaceRoom& room, const Configuration& found) {
  Outcome outcome{0, 0, 0};
  int left = c.miniBatch;
  for (const MicroBatches& group : found.microBatches) {
    const auto choice = std::find_if(c.choices.begin(), c.choices.end(), [&](const Choice& other) {
      return other.kernel == group.kernel && other.batch == group.batch;
    });
    EXPECT_NE(choice, c.choices.end());
    left -= group.batch * group.count;
    EXPECT_EQ(group.borrows, choice->workspaceBytes > room.limitBytes);
    EXPECT_LE(choice->workspaceBytes, group.borrows ? room.borrowed(left) : room.limitBytes);
    outcome.steps += group.count * (choice->steps + c.launchSteps);
    outcome.microBatches += group.count;
    if (!group.borrows)
      outcome.workspaceBytes = std::max(outcome.workspaceBytes, choice->workspaceBytes);
  }
  EXPECT_EQ(left, 0);
  EXPECT_EQ(outcome.workspaceBytes, found.workspaceBytes);
  return outcome;
}

TEST(WorkspaceReuseTest, WhatBorrowsEqualsEnumerationOfAllOrders) {
  std::mt19937 random(20261124);  // any fixed seed
  int borrowing = 0, smaller = 0;
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    Case c = randomReuse(random);
    c.miniBatch = std::min(c.miniBatch, 6);
    if (c.choices.size() > 5) c.choices.erase(c.choices.begin(), c.choices.end() - 5);
    // With 3, 3, 2 and 1 samples the room is less than the largest workspace of the cases.
    for (const std::size_t sampleBytes : {172u, 180u, 260u, 520u})
      for (const std::size_t limitBytes : {0u, 2u, 17u}) {
        const WorkspaceRoom room{limitBytes, sampleBytes};
        std::vector<Outcome> all;
        enumerateOrders(c, room, c.miniBatch, {0, 0, 0}, all);
        const auto found = fastestConfiguration(c.table(), c.miniBatch, room, c.launchMs());
        ASSERT_EQ(found.has_value(), !all.empty());
        if (!found) continue;
        const Outcome best = *std::min_element(all.begin(), all.end());
        const Outcome outcome = orderedOutcomeOf(c, room, *found);
        EXPECT_EQ(outcome.steps, best.steps);
        EXPECT_EQ(outcome.microBatches, best.microBatches);
        const auto front = paretoFront(c.table(), c.miniBatch, room, c.launchMs());
        ASSERT_FALSE(front.empty());
        EXPECT_EQ(front.back().timeMs, found->timeMs);
        if (front.front().workspaceBytes < found->workspaceBytes) ++smaller;
        for (const MicroBatches& group : found->microBatches)
          if (group.borrows) ++borrowing;
      }
  }
  EXPECT_GT(borrowing, 1000);
  EXPECT_GT(smaller, 100);
}

TEST(WorkspaceReuseTest, NothingComesOfATableThatCannotMakeUpTheMiniBatch) {
  const CandidateTable tables[] = {
      {},
      {{4, {}}},
      {{8, {{0, 1.0, 0}}}},                      // larger than the mini-batch
      {{0, {{0, 1.0, 0}}}, {-2, {{0, 1, 0}}}},   // no sizes at all
      {{4, {{0, 1.0, 0}}}, {2, {{0, 1.0, 0}}}},  // 7 is odd
      {{1, {{0, 1.0, 101}}}},                    // above the limit
      {{1, {{0, std::numeric_limits<double>::quiet_NaN(), 0}}}},
      {{1, {{0, std::numeric_limits<double>::infinity(), 0}}}},
      {{1, {{0, -1.0, 0}}}},
  };
  for (const CandidateTable& table : tables) {
    EXPECT_FALSE(fastestConfiguration(table, 7, {100}, 0).has_value());
    EXPECT_TRUE(paretoFront(table, 7, {100}, 0).empty());
  }
}

TEST(WorkspaceReuseTest, ManySmallTimesTieWithTheirSum) {
  // As doubles 0.1 + 0.1 + 0.1 > 0.3; fewer micro-batches win the tie, less workspace stays on the
  // front.
  const CandidateTable table = {{1, {{0, 0.1, 10}}}, {3, {{1, 0.3, 20}}}};
  const auto fastest = fastestConfiguration(table, 3, {kNoLimit}, 0);
  ASSERT_TRUE(fastest.has_value());
  EXPECT_EQ(fastest->microBatches.size(), 1u);
  EXPECT_EQ(fastest->microBatches.front().batch, 3);
  const auto front = paretoFront(table, 3, {kNoLimit}, 0);
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front.front().workspaceBytes, 10u);
  EXPECT_EQ(front.front().timeMs, 0.3);
}

TEST(WorkspaceReuseTest, HugeWorkspacesAndTimesKeepTheirOrder) {
  const CandidateTable table = {{1, {{0, 1e300, 0}, {1, 1.0, kNoLimit}}}, {2, {{2, 1e300, 0}}}};
  const auto front = paretoFront(table, 2, {kNoLimit}, 0.5);
  ASSERT_EQ(front.size(), 2u);
  EXPECT_EQ(front[0].workspaceBytes, 0u);
  EXPECT_EQ(front[1].workspaceBytes, kNoLimit);
  EXPECT_EQ(front[1].timeMs, 3.0);
  EXPECT_FALSE(paretoFront(table, 2, {kNoLimit - 1}, 0.5).empty());
}

TEST(WorkspaceReuseTest, LaunchesDecideBetweenEqualSums) {
  const CandidateTable table = {{1, {{0, 0.9, 0}}}, {4, {{0, 4.0, 8}}}};
  struct LaunchCase {
    double launchMs;
    int batch;
    double timeMs;
  };
  for (const LaunchCase& c : {LaunchCase{0, 1, 3.6}, {0.1, 1, 4.0}, {0.2, 4, 4.2}}) {
    const auto fastest = fastestConfiguration(table, 4, {7}, c.launchMs);
    ASSERT_TRUE(fastest.has_value());
    EXPECT_EQ(fastest->microBatches.front().batch, 1) << "8 bytes are above the limit";
    const auto unlimited = fastestConfiguration(table, 4, {8}, c.launchMs);
    ASSERT_TRUE(unlimited.has_value());
    EXPECT_EQ(unlimited->microBatches.front().batch, c.batch) << "launch " << c.launchMs;
    EXPECT_DOUBLE_EQ(unlimited->timeMs, c.timeMs);
  }
}

}  // namespace
}  // namespace ucudnn
