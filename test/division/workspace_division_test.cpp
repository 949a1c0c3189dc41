// WD by each solver: against an enumeration of small networks, a dynamic program over quantized
// memory for larger ones, and each other.
#include "division/division_solver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "optimizer/workspace_reuse.hpp"
#include "support/resnet50.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// GLPK's arithmetic is rounded; the times below are whole microseconds or measured to 10 ns.
constexpr double kToleranceMs = 1e-6;

std::size_t roundedUp(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The least summed time, by trying every choice.
double enumerated(const std::vector<DivisionItem>& items,
                  const DivisionSettings& settings,
                  std::size_t item,
                  std::size_t usedBytes) {
  if (usedBytes > settings.totalBytes) return kNever;
  if (item == items.size()) return 0;
  double best = kNever;
  for (const DivisionOption& option : items[item].options) {
    const std::size_t bytes = roundedUp(option.workspaceBytes, settings.alignmentBytes);
    best = std::min(best, option.timeMs + enumerated(items, settings, item + 1, usedBytes + bytes));
  }
  return best;
}

/// The same by dynamic programming: the least time with at most so many units of the alignment.
double byMemory(const std::vector<DivisionItem>& items, const DivisionSettings& settings) {
  const std::size_t units = settings.totalBytes / settings.alignmentBytes;
  std::vector<double> least(units + 1, 0);
  for (const DivisionItem& item : items) {
    std::vector<double> next(units + 1, kNever);
    for (const DivisionOption& option : item.options) {
      const std::size_t need =
          roundedUp(option.workspaceBytes, settings.alignmentBytes) / settings.alignmentBytes;
      for (std::size_t u = need; u <= units; ++u) {
        next[u] = std::min(next[u], least[u - need] + option.timeMs);
      }
    }
    least = std::move(next);
  }
  return least[units];
}

/// The division holds together: offsets, sums, the total.
void expectConsistent(const Division& division,
                      const std::vector<DivisionItem>& items,
                      const DivisionSettings& settings) {
  ASSERT_EQ(division.chosen.size(), items.size());
  ASSERT_EQ(division.offsets.size(), items.size());
  double timeMs = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_LT(division.chosen[i], items[i].options.size());
    const DivisionOption& option = items[i].options[division.chosen[i]];
    EXPECT_EQ(division.offsets[i], bytes);
    timeMs += option.timeMs;
    bytes += roundedUp(option.workspaceBytes, settings.alignmentBytes);
  }
  EXPECT_NEAR(division.timeMs, timeMs, kToleranceMs);
  EXPECT_EQ(division.workspaceBytes, bytes);
  EXPECT_LE(bytes, settings.totalBytes);
}

void expectLeast(const std::vector<DivisionItem>& items,
                 const DivisionSettings& settings,
                 double leastMs) {
  for (const DivisionSolver& solver : divisionSolvers()) {
    SCOPED_TRACE(solver.name);
    const auto division = divideWorkspace(items, settings, solver);
    ASSERT_EQ(division.has_value(), leastMs != kNever);
    if (!division) continue;
    EXPECT_TRUE(division->optimal);
    EXPECT_NEAR(division->timeMs, leastMs, kToleranceMs);
    expectConsistent(*division, items, settings);
  }
}

struct Random {
  std::mt19937 engine;
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(engine); }
};

/// Options in any order, dominated ones and equal items among them.
std::vector<DivisionItem> randomItems(Random& random, int items, int options, int workspaceRange) {
  std::vector<DivisionItem> result;
  for (int i = 0; i < items; ++i) {
    if (i > 0 && random.draw(0, 3) == 0) {
      result.push_back(result[static_cast<std::size_t>(random.draw(0, i - 1))]);
      continue;
    }
    DivisionItem item;
    for (int j = random.draw(1, options); j > 0; --j) {
      const double timeMs = random.draw(0, 2000) * 1e-3;
      item.options.push_back({timeMs, static_cast<std::size_t>(random.draw(0, workspaceRange))});
    }
    if (random.draw(0, 3) != 0) item.options.push_back({random.draw(2000, 3000) * 1e-3, 0});
    result.push_back(std::move(item));
  }
  return result;
}

TEST(LimitsToMeasure, AscendToTheTotal) {
  using Limits = std::vector<std::size_t>;
  EXPECT_EQ(limitsToMeasure(120, 15), (Limits{0, 4, 8, 12, 16, 120}));
  EXPECT_EQ(limitsToMeasure(120, 2), (Limits{0, 30, 60, 90, 120}));
  EXPECT_EQ(limitsToMeasure(120, 1), (Limits{0, 60, 120}));
  EXPECT_EQ(limitsToMeasure(9, 3), (Limits{0, 1, 2, 3, 4, 9}));
  EXPECT_EQ(limitsToMeasure(0, 3), (Limits{0}));
  EXPECT_EQ(limitsToMeasure(120, 0), limitsToMeasure(120, 1));
}

TEST(WorkspaceDivisionTest, EqualsEnumerationOnRandomSmallNetworks) {
  Random random{std::mt19937(3)};
  int feasible = 0;
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    DivisionSettings settings;
    settings.alignmentBytes = random.draw(0, 1) == 0 ? 1 : 16;
    const auto items = randomItems(random, random.draw(1, 6), 4, 100);
    settings.totalBytes = static_cast<std::size_t>(random.draw(0, 400));
    const double leastMs = enumerated(items, settings, 0, 0);
    feasible += leastMs == kNever ? 0 : 1;
    expectLeast(items, settings, leastMs);
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_LT(feasible, 2000);
}

TEST(WorkspaceDivisionTest, EqualsADynamicProgramOverMemoryOnLargerNetworks) {
  Random random{std::mt19937(4)};
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const int count = random.draw(10, 60);
    const auto items = randomItems(random, count, 12, 100000);
    DivisionSettings settings;
    settings.alignmentBytes = 100;
    settings.totalBytes = static_cast<std::size_t>(count * random.draw(5000, 40000));
    expectLeast(items, settings, byMemory(items, settings));
  }
}

TEST(WorkspaceDivisionTest, EdgesAreServed) {
  struct Edge {
    const char* what;
    std::vector<DivisionItem> items;
    std::size_t totalBytes;
    double leastMs;
  };
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  const DivisionItem two = {{{5, 0}, {1, 512}}};
  const Edge edges[] = {
      {"no item", {}, 0, 0},
      {"an item without options", {two, {}}, 4096, kNever},
      {"one item, nothing to give", {two}, 0, 5},
      {"one item, rounding down the total", {two}, 511, 5},
      {"one item, just enough", {two}, 512, 1},
      {"rounding up a byte", {{{{5, 0}, {1, 513}}}}, 1023, 5},
      {"equal items share unequally", {two, two, two}, 1024, 7},
      {"the least workspaces are above the total", {{{{1, 512}}}, {{{1, 1}}}}, 1023, kNever},
      {"the least workspaces fill the total", {{{{1, 512}}}, {{{1, 1}}}}, 1024, 2},
      {"a workspace no machine has", {{{{5, 0}, {1, huge}}}}, huge - 512, 5},
      {"zero times", {{{{0, 0}}}, {{{0, 0}}}}, 512, 0},
  };
  for (const Edge& edge : edges) {
    SCOPED_TRACE(edge.what);
    DivisionSettings settings;
    settings.totalBytes = edge.totalBytes;
    expectLeast(edge.items, settings, edge.leastMs);
  }
}

TEST(WorkspaceDivisionTest, SolversAgree) {
  if (divisionSolvers().size() < 2) GTEST_SKIP() << "built with one";
  Random random{std::mt19937(7)};
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const int count = random.draw(2, 40);
    const auto items = randomItems(random, count, random.draw(2, 12), 100000);
    DivisionSettings settings;
    settings.alignmentBytes = random.draw(0, 1) == 0 ? 1 : 512;
    settings.totalBytes = static_cast<std::size_t>(count * random.draw(1000, 60000));
    const auto one = divideWorkspace(items, settings, divisionSolvers().front());
    expectLeast(items, settings, one ? one->timeMs : kNever);
  }
}

// Many choices are as good for their units as others: bounds tell little apart.
TEST(WorkspaceDivisionTest, TimesInProportionToWorkspaceAreDivided) {
  Random random{std::mt19937(8)};
  std::vector<DivisionItem> items(40);
  for (DivisionItem& item : items)
    for (int j = 0; j < 10; ++j) {
      const int units = random.draw(0, 1000);
      item.options.push_back({(1000 - units) * 1e-3, static_cast<std::size_t>(units) << 9});
    }
  DivisionSettings settings;
  settings.totalBytes = std::size_t{40 * 300} << 9;
  expectLeast(items, settings, byMemory(items, settings));
}

TEST(WorkspaceDivisionTest, NoTimeGivesAnIncumbentThatSaysSo) {
  Random random{std::mt19937(5)};
  const auto items = randomItems(random, 60, 12, 100000);
  DivisionSettings settings;
  settings.alignmentBytes = 1;
  settings.totalBytes = 60 * 10000;
  for (const DivisionSolver& solver : divisionSolvers()) {
    SCOPED_TRACE(solver.name);
    settings.timeLimitSeconds = DivisionSettings().timeLimitSeconds;
    const auto exact = divideWorkspace(items, settings, solver);
    settings.timeLimitSeconds = 0;
    const auto division = divideWorkspace(items, settings, solver);
    ASSERT_TRUE(exact && division);
    EXPECT_TRUE(exact->optimal);
    EXPECT_FALSE(division->optimal);
    expectConsistent(*division, items, settings);
    EXPECT_GE(division->timeMs, exact->timeMs - kToleranceMs);
    EXPECT_LE(division->timeMs, 1.05 * exact->timeMs) << "the greedy incumbent is near the best";
  }
}

TEST(WorkspaceDivisionTest, ASolverThatFailsLeavesTheIncumbent) {
  const std::vector<DivisionItem> items = {{{{5, 0}, {1, 512}}}, {{{3, 0}, {2, 1024}}}};
  DivisionSettings settings;
  settings.totalBytes = 1024;
  const DivisionSolver solvers[] = {
      {"finds nothing", [](const auto&, const auto&) { return std::optional<DivisionSolution>(); }},
      {"takes more than there is",
       [](const auto&, const auto&) {
         return std::optional(DivisionSolution{{{0, 1}, {0, 1}}, true});
       }},
      {"leaves one out",
       [](const auto&, const auto&) {
         return std::optional(DivisionSolution{{{0, 1}, {0, 0}}, true});
       }},
  };
  for (const DivisionSolver& solver : solvers) {
    SCOPED_TRACE(solver.name);
    const auto division = divideWorkspace(items, settings, solver);
    ASSERT_TRUE(division);
    EXPECT_FALSE(division->optimal);
    expectConsistent(*division, items, settings);
    EXPECT_NEAR(division->timeMs, 4, kToleranceMs);
  }
}

TEST(WorkspaceDivisionTest, ThreadsGetTheSameDivision) {
  Random random{std::mt19937(6)};
  const auto items = randomItems(random, 30, 8, 100000);
  DivisionSettings settings;
  settings.totalBytes = 30 * 10000;
  const auto expected = divideWorkspace(items, settings);
  std::optional<Division> found[4];
  std::vector<std::thread> threads;
  for (auto& division : found) {
    threads.emplace_back([&] { division = divideWorkspace(items, settings); });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(expected.has_value());
  for (const auto& division : found) {
    ASSERT_TRUE(division.has_value());
    EXPECT_EQ(division->chosen, expected->chosen);
  }
}

TEST(WorkspaceDivisionTest, TheProgramIsWritten) {
  const test::TemporaryDirectory folder;
  const std::vector<DivisionItem> items = {{{{5, 0}, {1, 512}}}, {{{3, 0}, {2.5, 1024}}}};
  DivisionSettings settings;
  settings.totalBytes = 1024;
  const std::string path = folder.file("division.lp");
  ASSERT_TRUE(writeDivisionProblem(items, settings, path));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  for (const char* const part : {"Minimize",
                                 "+ 2.5 x_1_1",
                                 "workspace_units",
                                 "+ 2 x_1_1",
                                 "<= 2",
                                 "= 1",
                                 "Generals",
                                 "End"})
    EXPECT_NE(text.str().find(part), std::string::npos) << part;
  EXPECT_FALSE(writeDivisionProblem(items, settings, folder.file("none/x")));
}

TEST(WorkspaceDivisionTest, EqualsADynamicProgramOverMemoryOnResNet50) {
  for (const char* math : {"fma", "tf32"}) {
    const auto items = test::divisionItems(test::resnet50Tables(math));  // powerOfTwo
    ASSERT_EQ(items.size(), 159u);
    for (const std::size_t mebibytesEach : {1, 8, 64}) {
      SCOPED_TRACE(std::string(math) + ", MiB each: " + std::to_string(mebibytesEach));
      DivisionSettings settings;
      settings.totalBytes = (mebibytesEach << 20) * items.size();
      // At 512 bytes the oracle would take seconds; it is as exact with larger units.
      settings.alignmentBytes = mebibytesEach << 12;
      expectLeast(items, settings, byMemory(items, settings));
    }
  }
}

}  // namespace
}  // namespace ucudnn
