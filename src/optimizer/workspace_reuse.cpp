#include "optimizer/workspace_reuse.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>

namespace ucudnn {
namespace {

using Ticks = std::int64_t;
constexpr double kTicksPerMs = 1e10;
constexpr Ticks kUnreachable = std::numeric_limits<Ticks>::max();
/// Limit of a whole configuration. The rest of the range is room for its launches.
constexpr Ticks kMostTicks = Ticks{1} << 61;

/// Saturates so that `miniBatch` of them add up to no more than kMostTicks.
Ticks toTicks(double timeMs, int miniBatch) {
  const Ticks most = kMostTicks / miniBatch;
  const double ticks = timeMs * kTicksPerMs;
  // Compared as doubles: a time too long for Ticks must not be converted.
  return ticks >= static_cast<double>(most) ? most : static_cast<Ticks>(std::llround(ticks));
}

/// A candidate for one micro-batch, its launch included.
struct Step {
  int batch;
  int kernel;
  Ticks ticks;
  std::size_t workspaceBytes;
};

/// A size's candidates: the fastest within the limit, and others, ever faster, that would have to
/// borrow.
struct Choice {
  const Step* within;  ///< null: none
  const Step* beyond;
  const Step* end;

  /// The fastest candidate that has room; null: none.
  const Step* fastest(std::size_t borrowedBytes) const {
    const Step* found = within;
    for (const Step* step = beyond; step != end && step->workspaceBytes <= borrowedBytes; ++step)
      found = step;
    return found;
  }
};

/// The best way to run the last `n` samples: totals and the step that comes first.
struct State {
  Ticks ticks = kUnreachable;
  int microBatches = 0;
  std::size_t workspaceBytes = 0;  ///< of the micro-batches that don't borrow
  const Step* first = nullptr;
};

/// The dynamic program for one table, kept so that a front pays for reading the table once.
class Program {
 public:
  Program(const CandidateTable& table, int miniBatch, double launchMs) : miniBatch_(miniBatch) {
    const Ticks launch = toTicks(launchMs, miniBatch);
    for (auto size = table.lower_bound(1); size != table.upper_bound(miniBatch); ++size) {
      addSize(size->first, size->second, launch);
    }
    sizeBegins_.push_back(candidates_.size());
    choices_.reserve(sizeBegins_.size());
  }

  std::optional<Configuration> solve(const WorkspaceRoom& room) {
    room_ = room;
    selectSteps();
    if (choices_.size() == 1 && choices_.front().within != nullptr &&
        choices_.front().within->batch == miniBatch_)
      return undivided(*choices_.front().within);
    fillStates();
    if (states_.back().ticks == kUnreachable) return std::nullopt;
    return trace();
  }

 private:
  /// Keeps the size's Pareto-optimal candidates, by ascending workspace: each is faster than all
  /// that need less.
  void addSize(int batch, const std::vector<Candidate>& candidates, Ticks launch) {
    sizeBegins_.push_back(candidates_.size());
    for (const Candidate& candidate : candidates) {
      if (!std::isfinite(candidate.timeMs) || candidate.timeMs < 0) continue;
      const Ticks ticks = toTicks(candidate.timeMs, miniBatch_) + launch;
      candidates_.push_back({batch, candidate.kernel, ticks, candidate.workspaceBytes});
    }
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sizeBegins_.back());
    std::sort(begin, candidates_.end(), [](const Step& a, const Step& b) {
      return std::tie(a.workspaceBytes, a.ticks, a.kernel) <
             std::tie(b.workspaceBytes, b.ticks, b.kernel);
    });
    Ticks fastest = kUnreachable;
    const auto isNoFaster = [&fastest](const Step& step) {
      if (step.ticks >= fastest) return true;
      fastest = step.ticks;
      return false;
    };
    candidates_.erase(std::remove_if(begin, candidates_.end(), isNoFaster), candidates_.end());
  }

  /// Selects each size's candidates that may be in a best configuration. Slower ones within the
  /// limit can't be, not even as a tie.
  void selectSteps() {
    choices_.clear();
    for (std::size_t size = 0; size + 1 < sizeBegins_.size(); ++size) {
      const Step* const begin = candidates_.data() + sizeBegins_[size];
      const Step* const all = candidates_.data() + sizeBegins_[size + 1];
      const Step* beyond = all;
      while (beyond != begin && beyond[-1].workspaceBytes > room_.limitBytes) --beyond;
      const Step* end = beyond;
      if (begin != all) {
        const std::size_t most = room_.borrowed(miniBatch_ - begin->batch);
        while (end != all && end->workspaceBytes <= most) ++end;
      }
      if (begin != end) choices_.push_back({beyond != begin ? beyond - 1 : nullptr, beyond, end});
    }
  }

  /// Skips steps from states that can't lead to a best configuration: most have used a small step
  /// too often.
  void fillStates() {
    states_.assign(static_cast<std::size_t>(miniBatch_) + 1, State{});
    states_[0].ticks = 0;
    const auto rate = [](const Step& step) { return static_cast<double>(step.ticks) / step.batch; };
    double leastRate = std::numeric_limits<double>::max();
    std::vector<Step> byRate;
    for (const Choice& choice : choices_) {
      leastRate = std::min(leastRate, rate(choice.end[-1]));
      if (choice.within != nullptr) byRate.push_back(*choice.within);
    }
    std::sort(byRate.begin(), byRate.end(), [&](const Step& a, const Step& b) {
      return rate(a) < rate(b);
    });
    // The doubles' rounding errors are smaller.
    const double most = static_cast<double>(greedyTicks(byRate)) * (1 + 1e-9);
    for (int samples = 0; samples < miniBatch_; ++samples) {
      const State& rest = states_[static_cast<std::size_t>(samples)];
      const bool isReached = rest.ticks != kUnreachable;
      if (isReached && static_cast<double>(rest.ticks) + leastRate * (miniBatch_ - samples) <= most)
        stepFrom(samples, rest);
    }
  }

  /// Time of a greedy division within the limit: as many samples as possible at the best rate, the
  /// rest at the next, and so on. Unreachable if that doesn't come out even.
  Ticks greedyTicks(const std::vector<Step>& byRate) const {
    Ticks ticks = 0;
    int left = miniBatch_;
    for (const Step& step : byRate) {
      ticks += left / step.batch * step.ticks;
      left %= step.batch;
    }
    return left == 0 ? ticks : kUnreachable;
  }

  bool borrows(const Step& step) const { return step.workspaceBytes > room_.limitBytes; }

  /// REQUIRES: `rest` is the state of so many samples.
  void stepFrom(int samples, const State& rest) {
    const std::size_t borrowedBytes = room_.borrowed(samples);
    for (const Choice& choice : choices_) {
      if (choice.end[-1].batch > miniBatch_ - samples) break;
      const Step* const step = choice.fastest(borrowedBytes);
      if (step == nullptr) continue;
      State& next =
          states_[static_cast<std::size_t>(samples) + static_cast<std::size_t>(step->batch)];
      const State reached{rest.ticks + step->ticks,
                          rest.microBatches + 1,
                          borrows(*step) ? rest.workspaceBytes
                                         : std::max(rest.workspaceBytes, step->workspaceBytes),
                          step};
      // Among equal ones the smallest step wins, which comes last.
      if (std::tie(reached.ticks, reached.microBatches, reached.workspaceBytes) <=
          std::tie(next.ticks, next.microBatches, next.workspaceBytes))
        next = reached;
    }
  }

  static Configuration undivided(const Step& step) {
    return {{{step.batch, step.kernel, 1}},
            static_cast<double>(step.ticks) / kTicksPerMs,
            step.workspaceBytes};
  }

  /// Micro-batches that borrow come first: then no fewer samples are behind them.
  Configuration trace() const {
    Configuration configuration;
    configuration.timeMs = static_cast<double>(states_.back().ticks) / kTicksPerMs;
    configuration.workspaceBytes = states_.back().workspaceBytes;
    std::vector<const Step*> path;
    for (int samples = miniBatch_; samples > 0; samples -= path.back()->batch) {
      path.push_back(states_[static_cast<std::size_t>(samples)].first);
    }
    std::stable_sort(path.begin(), path.end(), [&](const Step* a, const Step* b) {
      if (borrows(*a) || borrows(*b)) return borrows(*a) && !borrows(*b);
      return a->batch > b->batch;
    });
    std::vector<MicroBatches>& groups = configuration.microBatches;
    for (const Step* step : path) {
      if (groups.empty() || groups.back().batch != step->batch ||
          groups.back().kernel != step->kernel)
        groups.push_back({step->batch, step->kernel, 0, borrows(*step)});
      ++groups.back().count;
    }
    return configuration;
  }

  int miniBatch_;
  WorkspaceRoom room_;
  std::vector<Step> candidates_;         ///< of all sizes, ascending
  std::vector<std::size_t> sizeBegins_;  ///< index of each size's first in candidates_, and the end
  std::vector<Choice> choices_;          ///< selected for the current room, by ascending size
  std::vector<State> states_;            ///< by number of samples
};

}  // namespace

std::optional<Configuration> fastestConfiguration(const CandidateTable& table,
                                                  int miniBatch,
                                                  const WorkspaceRoom& room,
                                                  double launchMs) {
  assert(miniBatch >= 1);
  return Program(table, miniBatch, launchMs).solve(room);
}

std::optional<Configuration> leanConfiguration(const CandidateTable& table,
                                               int miniBatch,
                                               const WorkspaceRoom& room,
                                               double launchMs,
                                               double mostMs) {
  assert(miniBatch >= 1);
  Program program(table, miniBatch, launchMs);
  std::optional<Configuration> lean;
  std::optional<Configuration> next = program.solve(room);
  while (next && next->timeMs <= mostMs) {
    lean = std::move(next);
    if (lean->workspaceBytes == 0) break;
    next = program.solve({lean->workspaceBytes - 1, room.sampleBytes});
  }
  return lean;
}

std::vector<Configuration> paretoFront(const CandidateTable& table,
                                       int miniBatch,
                                       const WorkspaceRoom& room,
                                       double launchMs) {
  assert(miniBatch >= 1);
  // From the fastest down: each next point is the fastest with less workspace than the last one's.
  Program program(table, miniBatch, launchMs);
  std::vector<Configuration> front;
  std::optional<Configuration> next = program.solve(room);
  while (next) {
    const std::size_t workspaceBytes = next->workspaceBytes;
    // The next point is as fast with less workspace, but more micro-batches: it dominates.
    if (!front.empty() && next->timeMs <= front.back().timeMs) front.pop_back();
    front.push_back(std::move(*next));
    if (workspaceBytes == 0) break;
    next = program.solve({workspaceBytes - 1, room.sampleBytes});
  }
  std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace ucudnn
