// The program as GLPK sees it; this and glpk_guard alone know GLPK.
#pragma once

#include <optional>
#include <string>

#include "optimizer/division_problem.hpp"

namespace ucudnn {

struct GlpkSolution {
  DivisionCounts counts;
  bool optimal;  ///< GLPK proved it; else the best it had when the time was over
};

/// Solves within each choice's `most`. Empty when GLPK found nothing (time, failure).
std::optional<GlpkSolution> solveWithGlpk(const DivisionProblem& problem,
                                          double timeLimitSeconds,
                                          const std::string& diagnosisDirectory);

/// In CPLEX LP format; false when it can't be written.
bool writeWithGlpk(const DivisionProblem& problem, const std::string& path);

}  // namespace ucudnn
