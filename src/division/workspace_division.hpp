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

/// A convolution. Its options may be in any order, and dominated ones do no harm.
struct DivisionItem {
  std::vector<DivisionOption> options;
};

struct DivisionSettings {
  std::size_t totalBytes = 0;
  /// Each segment is rounded up to this, so that each begins aligned.
  std::size_t alignmentBytes = kMemoryAlignment;
  /// After this time the best division found so far is used. Networks need far less (tens of ms).
  double timeLimitSeconds = 10;
  /// Folder for glpk_prob_, glpk_mip_ and glpk_sol_<stamp>; empty: they are not written. REQUIRES:
  /// it exists.
  std::string diagnosisDirectory;
};

struct Division {
  std::vector<std::size_t> chosen;   ///< for each item the number of its option
  std::vector<std::size_t> offsets;  ///< where each item's segment begins
  double timeMs = 0;                 ///< summed
  std::size_t workspaceBytes = 0;    ///< summed, alignment included
  bool optimal = false;  ///< false: the time limit, or a failure, left the best one found
};

/// The limits within which to measure each of so many convolutions before they divide a total:
/// multiples of half an equal part, up to two parts, and the total. Kernels that take little are
/// seldom near the fastest within much, and each limit has largest batches of its own. Ascending,
/// because a measurement within a limit also answers smaller ones.
std::vector<std::size_t> limitsToMeasure(std::size_t totalBytes, std::size_t convolutions);

/// Whether this build divides (UCUDNN_DIVIDE). If not, the other functions throw std::logic_error.
bool workspaceDivisionAvailable() noexcept;

/// The division with the least summed time whose summed workspace is within the total. Empty if
/// there is none. Uses the build's first solver (division_solver.hpp). Thread-safe. REQUIRES: times
/// are finite, alignmentBytes >= 1.
std::optional<Division> divideWorkspace(const std::vector<DivisionItem>& items,
                                        const DivisionSettings& settings);

/// Writes the program in CPLEX LP format. Returns false if it is infeasible or the file can't be
/// written.
bool writeDivisionProblem(const std::vector<DivisionItem>& items,
                          const DivisionSettings& settings,
                          const std::string& path);

}  // namespace ucudnn
