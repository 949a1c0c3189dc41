#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <tuple>

#include "division/division_solver.hpp"

namespace ucudnn {
namespace {

using Clock = std::chrono::steady_clock;

// Hundreds of convolutions need some ten thousand states. A program that would need more than 0.2
// GB keeps its incumbent.
constexpr std::size_t kMostStates = std::size_t{1} << 23;

/// The totals of the members so far.
struct State {
  std::int64_t units;
  double timeMs;
  std::uint32_t former;  ///< state of the members before
  std::uint32_t choice;  ///< the latest member's choice
};

class Search {
 public:
  Search(const DivisionProblem& problem, double timeLimitSeconds)
      : problem_(problem), incumbentMs_(summedTimeMs(problem, problem.incumbent)) {
    const auto mostSeconds = std::min(timeLimitSeconds, 1e6);
    end_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(mostSeconds));
    for (std::size_t g = 0; g < problem.groups.size(); ++g)
      groupOf_.insert(groupOf_.end(), problem.groups[g].members.size(), g);
    // Members with few choices come first, so that the states branch late.
    const auto alive = [&](std::size_t g) {
      const std::vector<DivisionChoice>& choices = problem.groups[g].choices;
      return std::count_if(
          choices.begin(), choices.end(), [](const DivisionChoice& c) { return c.most > 0; });
    };
    std::stable_sort(groupOf_.begin(), groupOf_.end(), [&](std::size_t a, std::size_t b) {
      return alive(a) < alive(b);
    });
    boundRests();
  }

  std::optional<DivisionSolution> solve() {
    std::vector<std::vector<State>> stages{{{0, 0, 0, 0}}};
    std::size_t states = 0;
    for (std::size_t member = 0; member < groupOf_.size(); ++member) {
      const std::size_t most = stages.back().size() * choicesOf(member).size();
      if (Clock::now() >= end_ || states + most > kMostStates) return std::nullopt;
      stages.push_back(branch(stages.back(), member));
      states += stages.back().size();
    }
    if (stages.back().empty()) return DivisionSolution{problem_.incumbent, true};
    DivisionCounts counts;
    for (const DivisionGroup& group : problem_.groups) counts.emplace_back(group.choices.size(), 0);
    State state = stages.back().back();  // the fastest, which takes the most workspace
    for (std::size_t member = groupOf_.size(); member-- > 0;) {
      ++counts[groupOf_[member]][state.choice];
      state = stages[member][state.former];
    }
    return DivisionSolution{std::move(counts), true};
  }

 private:
  /// The least totals of the members from each one on.
  struct Rest {
    std::int64_t units = 0;
    double pricedMs = 0;
  };

  const std::vector<DivisionChoice>& choicesOf(std::size_t member) const {
    return problem_.groups[groupOf_[member]].choices;
  }

  void boundRests() {
    rests_.assign(groupOf_.size() + 1, {});
    for (std::size_t member = groupOf_.size(); member-- > 0;) {
      const std::vector<DivisionChoice>& choices = choicesOf(member);
      double least = std::numeric_limits<double>::infinity();
      for (const DivisionChoice& choice : choices)
        least = std::min(least, priced(choice.timeMs, choice.units));
      rests_[member] = {rests_[member + 1].units + choices.front().units,
                        rests_[member + 1].pricedMs + least};
    }
  }

  double priced(double timeMs, std::int64_t units) const {
    return timeMs + problem_.multiplier * static_cast<double>(units);
  }

  /// Sorted by ascending units and descending time.
  std::vector<State> branch(const std::vector<State>& states, std::size_t member) const {
    const std::vector<DivisionChoice>& choices = choicesOf(member);
    const Rest& rest = rests_[member + 1];
    // A smaller gain would be rounding.
    const double wantedMs =
        incumbentMs_ - 1e-12 * (1 + incumbentMs_) - rest.pricedMs + priced(0, problem_.totalUnits);
    std::vector<State> next;
    for (std::size_t former = 0; former < states.size(); ++former)
      for (std::size_t c = 0; c < choices.size(); ++c) {
        const std::int64_t units = states[former].units + choices[c].units;
        const double timeMs = states[former].timeMs + choices[c].timeMs;
        if (units > problem_.totalUnits - rest.units) break;
        if (choices[c].most > 0 && priced(timeMs, units) < wantedMs)
          next.push_back(
              {units, timeMs, static_cast<std::uint32_t>(former), static_cast<std::uint32_t>(c)});
      }
    std::sort(next.begin(), next.end(), [](const State& a, const State& b) {
      return std::tie(a.units, a.timeMs) < std::tie(b.units, b.timeMs);
    });
    double fastestMs = std::numeric_limits<double>::infinity();
    const auto isBeaten = [&](const State& state) {
      if (state.timeMs >= fastestMs) return true;
      fastestMs = state.timeMs;
      return false;
    };
    next.erase(std::remove_if(next.begin(), next.end(), isBeaten), next.end());
    return next;
  }

  const DivisionProblem& problem_;
  const double incumbentMs_;
  Clock::time_point end_;
  std::vector<std::size_t> groupOf_;  ///< by member, group by group
  std::vector<Rest> rests_;
};

std::optional<DivisionSolution> solve(const DivisionProblem& problem,
                                      const DivisionSettings& settings) {
  return Search(problem, settings.timeLimitSeconds).solve();
}

}  // namespace

const DivisionSolver kBranchAndBound = {"branch and bound", solve};

}  // namespace ucudnn
