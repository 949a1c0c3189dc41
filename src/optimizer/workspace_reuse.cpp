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
/// What a whole configuration may take, the rest of the range being room for its launches.
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

/// The best way to run the first `n` samples: totals and the step that comes last.
struct State {
  Ticks ticks = kUnreachable;
  int microBatches = 0;
  std::size_t workspaceBytes = 0;
  const Step* last = nullptr;
};

/// The dynamic program for one table, kept so that a front pays for reading the table once.
class Program {
 public:
  Program(const CandidateTable& table, int miniBatch, double launchMs) : miniBatch_(miniBatch) {
    const Ticks launch = toTicks(launchMs, miniBatch);
    for (auto size = table.lower_bound(1); size != table.upper_bound(miniBatch); ++size) {
      addSize(size->first, size->second, launch);
    }
    steps_.reserve(sizeBegins_.size());
  }

  std::optional<Configuration> solve(std::size_t limitBytes) {
    selectSteps(limitBytes);
    if (steps_.size() == 1 && steps_.front().batch == miniBatch_) return undivided(steps_.front());
    fillStates();
    if (states_.back().ticks == kUnreachable) return std::nullopt;
    return trace();
  }

 private:
  /// Keeps of one size what a limit can make the best: each faster than all that need less
  /// workspace, by ascending workspace.
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

  /// The fastest step of each size within the limit; the slower ones of that size can't be in a
  /// best configuration, not even as a tie.
  void selectSteps(std::size_t limitBytes) {
    steps_.clear();
    for (std::size_t size = 0; size < sizeBegins_.size(); ++size) {
      const std::size_t begin = sizeBegins_[size];
      const bool lastSize = size + 1 == sizeBegins_.size();
      std::size_t end = lastSize ? candidates_.size() : sizeBegins_[size + 1];
      while (end > begin && candidates_[end - 1].workspaceBytes > limitBytes) --end;
      if (end > begin) steps_.push_back(candidates_[end - 1]);
    }
  }

  /// From a state that can't lead to a best configuration no step is taken: most states use a small
  /// step too often.
  void fillStates() {
    states_.assign(static_cast<std::size_t>(miniBatch_) + 1, State{});
    states_[0].ticks = 0;
    const auto rate = [](const Step& step) { return static_cast<double>(step.ticks) / step.batch; };
    std::vector<Step> byRate = steps_;
    std::sort(byRate.begin(), byRate.end(), [&](const Step& a, const Step& b) {
      return rate(a) < rate(b);
    });
    const double leastRate = byRate.empty() ? 0 : rate(byRate.front());
    // The doubles are off by less.
    const double most = static_cast<double>(greedyTicks(byRate)) * (1 + 1e-9);
    for (int samples = 0; samples < miniBatch_; ++samples) {
      const State& rest = states_[static_cast<std::size_t>(samples)];
      const bool isReached = rest.ticks != kUnreachable;
      if (isReached && static_cast<double>(rest.ticks) + leastRate * (miniBatch_ - samples) <= most)
        stepFrom(samples, rest);
    }
  }

  /// What running as many samples as possible at the best rate takes, the rest at the next, and so
  /// on. Unreachable: it doesn't come out even.
  Ticks greedyTicks(const std::vector<Step>& byRate) const {
    Ticks ticks = 0;
    int left = miniBatch_;
    for (const Step& step : byRate) {
      ticks += left / step.batch * step.ticks;
      left %= step.batch;
    }
    return left == 0 ? ticks : kUnreachable;
  }

  void stepFrom(int samples, const State& rest) {
    for (const Step& step : steps_) {
      if (step.batch > miniBatch_ - samples) break;
      State& next =
          states_[static_cast<std::size_t>(samples) + static_cast<std::size_t>(step.batch)];
      const State reached{rest.ticks + step.ticks,
                          rest.microBatches + 1,
                          std::max(rest.workspaceBytes, step.workspaceBytes),
                          &step};
      // Of equal ones the smallest step, which comes last.
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

  Configuration trace() const {
    Configuration configuration;
    configuration.timeMs = static_cast<double>(states_.back().ticks) / kTicksPerMs;
    configuration.workspaceBytes = states_.back().workspaceBytes;
    std::vector<MicroBatches>& groups = configuration.microBatches;
    std::vector<const Step*> path;
    for (int samples = miniBatch_; samples > 0; samples -= path.back()->batch) {
      path.push_back(states_[static_cast<std::size_t>(samples)].last);
    }
    std::sort(
        path.begin(), path.end(), [](const Step* a, const Step* b) { return a->batch > b->batch; });
    for (const Step* step : path) {
      if (groups.empty() || groups.back().batch != step->batch) {
        groups.push_back({step->batch, step->kernel, 0});
      }
      ++groups.back().count;
    }
    return configuration;
  }

  int miniBatch_;
  std::vector<Step> candidates_;         ///< of all sizes, ascending
  std::vector<std::size_t> sizeBegins_;  ///< where each size's begin in candidates_
  std::vector<Step> steps_;              ///< what the current limit selects, by ascending size
  std::vector<State> states_;            ///< by number of samples
};

}  // namespace

std::optional<Configuration> fastestConfiguration(const CandidateTable& table,
                                                  int miniBatch,
                                                  std::size_t limitBytes,
                                                  double launchMs) {
  assert(miniBatch >= 1);
  return Program(table, miniBatch, launchMs).solve(limitBytes);
}

std::vector<Configuration> paretoFront(const CandidateTable& table,
                                       int miniBatch,
                                       std::size_t limitBytes,
                                       double launchMs) {
  assert(miniBatch >= 1);
  // From the fastest down: each next point is the fastest with less workspace than the last one's.
  Program program(table, miniBatch, launchMs);
  std::vector<Configuration> front;
  std::optional<Configuration> next = program.solve(limitBytes);
  while (next) {
    const std::size_t workspaceBytes = next->workspaceBytes;
    // As fast with less workspace, but more micro-batches: the earlier one is dominated.
    if (!front.empty() && next->timeMs <= front.back().timeMs) front.pop_back();
    front.push_back(std::move(*next));
    if (workspaceBytes == 0) break;
    next = program.solve(workspaceBytes - 1);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace ucudnn
