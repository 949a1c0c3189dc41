// The workspace limits that the queries of one handle have stated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/knowledge.hpp"
#include "problem/problem.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

struct StatedLimit {
  std::size_t bytes = 0;
  bool isNamed = false;     ///< the client named it; else it is the default, or what Find may use
  bool mayMeasure = false;  ///< the query was one that measures
  int queries = 0;          ///< how many have stated a limit of the problem
  bool operator==(const StatedLimit& other) const noexcept {
    return bytes == other.bytes && isNamed == other.isNamed && mayMeasure == other.mayMeasure;
  }
};

/// Holds as many limits as the planner holds problems. Not thread-safe, like the handle.
class StatedLimits {
 public:
  /// Changes with a limit that calls may have used. Plans looked up before are void then.
  std::uint64_t epoch() const noexcept { return epoch_; }

  /// Null if no query has stated one.
  const StatedLimit* find(const Problem& problem) { return limits_.find(problem); }

  /// The same for a call. Notes that it runs without a limit if there is none.
  const StatedLimit* findForCall(const Problem& problem) {
    const StatedLimit* const stated = find(problem);
    if (stated == nullptr) ranWithoutLimit_ = true;
    return stated;
  }

  void state(const Problem& problem, StatedLimit limit) {
    StatedLimit* const former = limits_.find(problem);
    limit.queries = former == nullptr ? 1 : former->queries + 1;
    if (former != nullptr && *former == limit) {
      former->queries = limit.queries;
      return;
    }
    // Calls of a problem that had no limit yet may be in a table of plans.
    if (former != nullptr || ranWithoutLimit_) {
      ++epoch_;
      ranWithoutLimit_ = false;
    }
    limits_[problem] = limit;
  }

  /// Calls `look(problem, limit)`.
  template <typename Look>
  void forEach(Look look) const {
    limits_.forEach(look);
  }

  void forget(const Problem& problem) {
    if (limits_.erase(problem)) ++epoch_;
  }

 private:
  BoundedMap<Problem, StatedLimit, ProblemHash> limits_{kMostProblems};
  std::uint64_t epoch_ = 1;
  bool ranWithoutLimit_ = false;
};

}  // namespace ucudnn
