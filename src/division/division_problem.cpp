#include "division/division_problem.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

namespace ucudnn {
namespace {

/// Sums over 2000 convolutions stay within int64, and each single number is exact as a double.
constexpr std::int64_t kMostUnits = std::int64_t{1} << 52;

/// The options that fit and that no other option beats, by ascending workspace.
std::vector<DivisionChoice> undominated(const DivisionItem& item,
                                        std::size_t alignmentBytes,
                                        std::int64_t totalUnits) {
  std::vector<DivisionChoice> sorted;
  for (std::size_t i = 0; i < item.options.size(); ++i) {
    const std::size_t bytes = item.options[i].workspaceBytes;
    const std::size_t units = bytes / alignmentBytes + (bytes % alignmentBytes != 0 ? 1 : 0);
    if (units > static_cast<std::size_t>(totalUnits)) continue;
    sorted.push_back({item.options[i].timeMs, static_cast<std::int64_t>(units), i});
  }
  std::sort(sorted.begin(), sorted.end(), [](const DivisionChoice& a, const DivisionChoice& b) {
    return std::tie(a.units, a.timeMs, a.option) < std::tie(b.units, b.timeMs, b.option);
  });
  std::vector<DivisionChoice> result;
  for (const DivisionChoice& choice : sorted) {
    if (result.empty() || choice.timeMs < result.back().timeMs) result.push_back(choice);
  }
  return result;
}

/// Moves members of one group from a choice to another.
struct Move {
  std::size_t group;
  std::size_t from;
  std::size_t to;
  double timeMs;  ///< the time that it adds
  std::int64_t units;
};

Move makeMove(const DivisionProblem& problem, std::size_t group, std::size_t from, std::size_t to) {
  const std::vector<DivisionChoice>& choices = problem.groups[group].choices;
  return {group,
          from,
          to,
          choices[to].timeMs - choices[from].timeMs,
          choices[to].units - choices[from].units};
}

double saved(const Move& move) {
  return -move.timeMs / static_cast<double>(move.units);
}

/// The steps along each group's lower convex hull, the most time saved for a unit first.
std::vector<Move> hullSteps(const DivisionProblem& problem) {
  std::vector<Move> steps;
  for (std::size_t g = 0; g < problem.groups.size(); ++g) {
    std::vector<Move> hull;
    for (std::size_t to = 1; to < problem.groups[g].choices.size(); ++to) {
      Move step = makeMove(problem, g, to - 1, to);
      while (!hull.empty() && saved(hull.back()) <= saved(step)) {
        step = makeMove(problem, g, hull.back().from, to);
        hull.pop_back();
      }
      hull.push_back(step);
    }
    steps.insert(steps.end(), hull.begin(), hull.end());
  }
  // Stable, so that the steps of one group stay in their order even if they save the same.
  std::stable_sort(
      steps.begin(), steps.end(), [](const Move& a, const Move& b) { return saved(a) > saved(b); });
  return steps;
}

/// Takes each hull step for as many members as fit. The first step that does not fit for all
/// members gives the multiplier.
void takeHullSteps(DivisionProblem& problem) {
  problem.incumbent.clear();
  problem.multiplier = 0;
  for (const DivisionGroup& group : problem.groups) {
    problem.incumbent.emplace_back(group.choices.size(), 0);
    problem.incumbent.back().front() = static_cast<int>(group.members.size());
  }
  std::int64_t left = problem.totalUnits - summedUnits(problem, problem.incumbent);
  for (const Move& step : hullSteps(problem)) {
    std::vector<int>& counts = problem.incumbent[step.group];
    const int movable = counts[step.from];
    const int moved = static_cast<int>(std::min<std::int64_t>(movable, left / step.units));
    if (moved < movable && problem.multiplier == 0) problem.multiplier = saved(step);
    counts[step.from] -= moved;
    counts[step.to] += moved;
    left -= moved * step.units;
  }
}

double priced(const DivisionChoice& choice, double multiplier) {
  return choice.timeMs + multiplier * static_cast<double>(choice.units);
}

}  // namespace

std::optional<DivisionProblem> makeDivisionProblem(const std::vector<DivisionItem>& items,
                                                   const DivisionSettings& settings) {
  assert(settings.alignmentBytes >= 1);
  DivisionProblem problem;
  problem.totalUnits = static_cast<std::int64_t>(std::min<std::size_t>(
      settings.totalBytes / settings.alignmentBytes, static_cast<std::size_t>(kMostUnits)));
  using Key = std::vector<std::tuple<std::int64_t, double, std::size_t>>;
  std::map<Key, std::size_t> groupOf;
  std::int64_t leastUnits = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::vector<DivisionChoice> choices =
        undominated(items[i], settings.alignmentBytes, problem.totalUnits);
    if (choices.empty()) return std::nullopt;
    leastUnits += choices.front().units;
    if (leastUnits > problem.totalUnits) return std::nullopt;
    Key key;
    for (const DivisionChoice& c : choices) key.emplace_back(c.units, c.timeMs, c.option);
    const auto [found, isNew] = groupOf.emplace(std::move(key), problem.groups.size());
    if (isNew) problem.groups.push_back({std::move(choices), {}});
    problem.groups[found->second].members.push_back(i);
  }
  return problem;
}

double summedTimeMs(const DivisionProblem& problem, const DivisionCounts& counts) {
  double sum = 0;
  for (std::size_t g = 0; g < counts.size(); ++g) {
    for (std::size_t j = 0; j < counts[g].size(); ++j) {
      sum += counts[g][j] * problem.groups[g].choices[j].timeMs;
    }
  }
  return sum;
}

std::int64_t summedUnits(const DivisionProblem& problem, const DivisionCounts& counts) {
  std::int64_t sum = 0;
  for (std::size_t g = 0; g < counts.size(); ++g) {
    for (std::size_t j = 0; j < counts[g].size(); ++j) {
      sum += counts[g][j] * problem.groups[g].choices[j].units;
    }
  }
  return sum;
}

void boundDivision(DivisionProblem& problem) {
  takeHullSteps(problem);
  const double multiplier = problem.multiplier;
  const auto cheaper = [multiplier](const DivisionChoice& a, const DivisionChoice& b) {
    return priced(a, multiplier) < priced(b, multiplier);
  };
  double bound = -multiplier * static_cast<double>(problem.totalUnits);
  for (const DivisionGroup& group : problem.groups) {
    const auto least = std::min_element(group.choices.begin(), group.choices.end(), cheaper);
    bound += static_cast<double>(group.members.size()) * priced(*least, multiplier);
  }
  const double incumbentMs = summedTimeMs(problem, problem.incumbent);
  // Widened by far more than the rounding of the sums.
  const double gap = incumbentMs - bound + 1e-9 * (1 + incumbentMs);
  for (DivisionGroup& group : problem.groups) {
    const auto least = std::min_element(group.choices.begin(), group.choices.end(), cheaper);
    const double leastPriced = priced(*least, multiplier);
    for (DivisionChoice& choice : group.choices) {
      const double reducedMs = priced(choice, multiplier) - leastPriced;
      const auto members = static_cast<double>(group.members.size());
      choice.most = static_cast<int>(reducedMs * members <= gap ? members : gap / reducedMs);
    }
  }
}

}  // namespace ucudnn
