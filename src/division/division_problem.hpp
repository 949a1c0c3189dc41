// The multiple-choice knapsack behind WD, with the bounds that shrink it before the solver sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "division/workspace_division.hpp"

namespace ucudnn {

struct DivisionChoice {
  double timeMs;
  std::int64_t units;  ///< multiples of the alignment
  std::size_t option;  ///< the item's own number for it
  int most = 0;        ///< how many members may take it in a division better than the incumbent
};

/// Items with the same choices. They are interchangeable: only how many take which choice matters.
struct DivisionGroup {
  std::vector<DivisionChoice> choices;  ///< ascending units, descending time
  std::vector<std::size_t> members;     ///< items
};

/// For each group, how many members take each choice.
using DivisionCounts = std::vector<std::vector<int>>;

struct DivisionProblem {
  std::vector<DivisionGroup> groups;
  std::int64_t totalUnits = 0;
  DivisionCounts incumbent;  ///< a good division, from boundDivision
  double multiplier = 0;     ///< ms a unit, at which the Lagrangian bound is the highest
};

/// Empty if even the least workspaces are above the total.
std::optional<DivisionProblem> makeDivisionProblem(const std::vector<DivisionItem>& items,
                                                   const DivisionSettings& settings);

double summedTimeMs(const DivisionProblem& problem, const DivisionCounts& counts);
std::int64_t summedUnits(const DivisionProblem& problem, const DivisionCounts& counts);

/// Finds the incumbent by greedy steps along the convex hulls. Sets `most` of every choice by its
/// reduced cost against the Lagrangian bound, which no better division can exceed. The incumbent
/// itself stays allowed.
void boundDivision(DivisionProblem& problem);

}  // namespace ucudnn
