// WD, workspace division: one total for all convolutions of a network, each with a segment of its
// own (μ-cuDNN paper, section III-C). A 0-1 integer linear program, solved exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/alignment.hpp"

namespace ucudnn {

/// A point of a convolution's Pareto front.
struct DivisionOption {
  double timeMs;
  std::size_t workspaceBytes;
};

/// A convolution; its options in any order, dominated ones do no harm.
struct DivisionItem {
  std::vector<DivisionOption> options;
};

struct DivisionSettings {
  std::size_t totalBytes = 0;
  /// Each segment is rounded up to it, so that each begins aligned.
  std::size_t alignmentBytes = kMemoryAlignment;
  /// After it the best division found so far is used. Far above what a network needs (tens of ms).
  double timeLimitSeconds = 10;
  /// Where glpk_prob_, glpk_mip_ and glpk_sol_<stamp> are written; empty: nowhere. REQUIRES: it
  /// exists.
  std::string diagnosisDirectory;
};

struct Division {
  std::vector<std::size_t> chosen;   ///< for each item the number of its option
  std::vector<std::size_t> offsets;  ///< where each item's segment begins
  double timeMs = 0;                 ///< summed
  std::size_t workspaceBytes = 0;    ///< summed, alignment included
  bool optimal = false;  ///< false: the time limit, or a failure, left the best one found
};

/// Within which limits to measure each of so many convolutions before they divide a total: up to
/// two equal parts by halves of one, and the total. What takes little is seldom near the fastest
/// within much, and each limit has largest batches of its own. Ascending: what is measured within a
/// limit answers smaller ones.
std::vector<std::size_t> limitsToMeasure(std::size_t totalBytes, std::size_t convolutions);

/// Whether this build divides (UCUDNN_DIVIDE); the other functions throw std::logic_error when it
/// does not.
bool workspaceDivisionAvailable() noexcept;

/// The least summed time whose summed workspace is within the total; empty when there is none.
/// By the build's first solver (division_solver.hpp). Thread-safe. REQUIRES: times finite,
/// alignmentBytes >= 1.
std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings);

/// Writes the program in CPLEX LP format. False when it is infeasible or the file can't be written.
bool writeDivisionProblem(const std::vector<DivisionItem>& items,
                          const DivisionSettings& settings,
                          const std::string& path);

}  // namespace ucudnn
