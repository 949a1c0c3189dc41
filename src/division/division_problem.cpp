#include "division/division_problem.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace ucudnn {
namespace {

/// Sums of it over 2000 convolutions stay within int64, each single one is exact as a double.
constexpr std::int64_t kMostUnits = std::int64_t{1} << 52;

/// The options that fit and that no other beats, by ascending workspace.
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
  double timeMs;  ///< what it adds
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
  // Stable: the steps of one group stay in their order even where they save the same.
  std::stable_sort(
      steps.begin(), steps.end(), [](const Move& a, const Move& b) { return saved(a) > saved(b); });
  return steps;
}

/// A division that is changed move by move, with what is left of the total.
class Incumbent {
 public:
  explicit Incumbent(const DivisionProblem& problem) : problem_(problem) {
    for (const DivisionGroup& group : problem.groups) {
      counts_.emplace_back(group.choices.size(), 0);
      counts_.back().front() = static_cast<int>(group.members.size());
    }
    left_ = problem.totalUnits - summedUnits(problem, counts_);
  }

  const DivisionCounts& counts() const { return counts_; }

  /// Takes each hull step for as many members as it fits; the first that does not fit for all gives
  /// the multiplier of the Lagrangian bound, in ms a unit.
  double takeHullSteps() {
    double multiplier = 0;
    for (const Move& step : hullSteps(problem_)) {
      const int movable = counts_[step.group][step.from];
      const int moved = static_cast<int>(std::min<std::int64_t>(movable, left_ / step.units));
      if (moved < movable && multiplier == 0) multiplier = saved(step);
      apply(step, moved);
    }
    return multiplier;
  }

  /// Makes the best move, or the best two together, as long as that saves time.
  void exchange() {
    // Each round is a strict improvement; the bound only keeps a freak table from taking long.
    constexpr int kMostRounds = 200;
    for (int round = 0; round < kMostRounds && exchangeOnce(); ++round) {
    }
  }

 private:
  void apply(const Move& move, int members) {
    counts_[move.group][move.from] -= members;
    counts_[move.group][move.to] += members;
    left_ -= members * move.units;
  }

  std::vector<Move> possibleMoves() const {
    std::vector<Move> moves;
    for (std::size_t g = 0; g < counts_.size(); ++g) {
      for (std::size_t from = 0; from < counts_[g].size(); ++from) {
        if (counts_[g][from] == 0) continue;
        for (std::size_t to = 0; to < counts_[g].size(); ++to) {
          if (to != from) moves.push_back(makeMove(problem_, g, from, to));
        }
      }
    }
    std::sort(
        moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.units < b.units; });
    return moves;
  }

  bool exchangeOnce() {
    const std::vector<Move> moves = possibleMoves();
    // Of the first n moves: the best, and the best of another group than that one's.
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<std::pair<std::size_t, std::size_t>> best(moves.size() + 1, {kNone, kNone});
    const auto better = [&moves](std::size_t a, std::size_t b) {
      return b == kNone || moves[a].timeMs < moves[b].timeMs;
    };
    for (std::size_t i = 0; i < moves.size(); ++i) {
      auto [first, second] = best[i];
      const bool sameGroup = first != kNone && moves[first].group == moves[i].group;
      if (better(i, first)) {
        if (!sameGroup) second = first;
        first = i;
      } else if (!sameGroup && better(i, second)) {
        second = i;
      }
      best[i + 1] = {first, second};
    }

    double gain = -1e-12;  // ms: less is rounding, and would let rounds go in circles
    std::size_t one = kNone;
    std::size_t two = kNone;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      if (moves[i].units <= left_ && moves[i].timeMs < gain) {
        std::tie(gain, one, two) = std::make_tuple(moves[i].timeMs, i, kNone);
      }
      const auto fits = std::upper_bound(
          moves.begin(), moves.end(), left_ - moves[i].units, [](std::int64_t left, const Move& m) {
            return left < m.units;
          });
      const auto [first, second] = best[static_cast<std::size_t>(fits - moves.begin())];
      const bool sameGroup = first != kNone && moves[first].group == moves[i].group;
      const std::size_t other = sameGroup ? second : first;
      if (other == kNone || moves[i].timeMs + moves[other].timeMs >= gain) continue;
      std::tie(gain, one, two) = std::make_tuple(moves[i].timeMs + moves[other].timeMs, i, other);
    }
    if (one == kNone) return false;
    apply(moves[one], 1);
    if (two != kNone) apply(moves[two], 1);
    return true;
  }

  const DivisionProblem& problem_;
  DivisionCounts counts_;
  std::int64_t left_ = 0;
};

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
  Incumbent incumbent(problem);
  const double multiplier = incumbent.takeHullSteps();
  incumbent.exchange();
  problem.multiplier = multiplier;
  problem.incumbent = incumbent.counts();

  const auto cheaper = [multiplier](const DivisionChoice& a, const DivisionChoice& b) {
    return priced(a, multiplier) < priced(b, multiplier);
  };
  double bound = -multiplier * static_cast<double>(problem.totalUnits);
  for (const DivisionGroup& group : problem.groups) {
    const auto least = std::min_element(group.choices.begin(), group.choices.end(), cheaper);
    bound += static_cast<double>(group.members.size()) * priced(*least, multiplier);
  }
  const double incumbentMs = summedTimeMs(problem, problem.incumbent);
  // Widened by far more than the sums can have been rounded by.
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
