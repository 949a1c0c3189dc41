// What solves the program of a division: the build's solvers, behind one type.
#pragma once

#include <optional>
#include <vector>

#include "division/division_problem.hpp"

namespace ucudnn {

struct DivisionSolution {
  DivisionCounts counts;
  bool optimal;  ///< proven; else the best that was found when the time was over
};

struct DivisionSolver {
  const char* name;
  /// Solves within each choice's `most`, and the settings' time. Empty: it found nothing (time,
  /// failure). Thread-safe. REQUIRES: boundDivision has been called.
  std::optional<DivisionSolution> (*solve)(const DivisionProblem& problem,
                                           const DivisionSettings& settings);
};

/// That of the GNU Linear Programming Kit, in a build with it.
extern const DivisionSolver kGlpkSolver;

/// Our own, exact: one member after another, it keeps what no other choice of those before beats in
/// both time and workspace, and what by the Lagrangian bound may yet beat the incumbent.
extern const DivisionSolver kBranchAndBound;

/// The first is the default.
const std::vector<DivisionSolver>& divisionSolvers();

/// As divideWorkspace.
std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings,
                                        const DivisionSolver& solver);

}  // namespace ucudnn
