// The build's solvers for the program of a division, behind one type.
#pragma once

#include <optional>
#include <vector>

#include "division/division_problem.hpp"

namespace ucudnn {

struct DivisionSolution {
  DivisionCounts counts;
  bool optimal;  ///< proven; else the best that was found in time
};

struct DivisionSolver {
  const char* name;
  /// Solves within each choice's `most` and the settings' time. Empty if it found nothing (time,
  /// failure). Thread-safe. REQUIRES: boundDivision has been called.
  std::optional<DivisionSolution> (*solve)(const DivisionProblem& problem,
                                           const DivisionSettings& settings);
};

/// The solver of the GNU Linear Programming Kit, in a build with it.
extern const DivisionSolver kGlpkSolver;

/// Our own exact solver. It takes one member after another. It keeps the states that no other one
/// beats in both time and workspace, and that by the Lagrangian bound may still beat the incumbent.
extern const DivisionSolver kBranchAndBound;

/// The solvers of this build; the first is the default.
const std::vector<DivisionSolver>& divisionSolvers();

/// See divideWorkspace above.
std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings,
                                        const DivisionSolver& solver);

}  // namespace ucudnn
