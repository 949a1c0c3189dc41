// WR, workspace reuse: the fastest configuration of one convolution under its own limit, and the
// whole Pareto front of configurations (μ-cuDNN paper, sections III-A and III-B).
//
// Times are compared as whole counts of 0.1 ps (1e-10 ms), a millionth of what a GPU's timer
// resolves, so that sums do not depend on their order and equal times are equal: three
// micro-batches of 0.1 ms tie with one of 0.3 ms. The `timeMs` that is returned is that count, so
// it ranks configurations as the optimizer did. A total above 2^61 counts (2.3e8 ms, 64 hours)
// saturates.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "optimizer/configuration.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

/// The fastest configuration whose micro-batches sum to `miniBatch` and each have room for their
/// workspace. Among equally fast ones, it is the one with the fewest micro-batches, then with the
/// least workspace if none borrows. A micro-batch that needs no more than the limit does not
/// borrow. `launchMs` is added for each micro-batch. Empty if the table cannot make up the
/// mini-batch.
///
/// Exact: dynamic programming over sizes. The state is the number of samples behind a micro-batch.
/// Takes O(candidates + sizes x miniBatch), and O(candidates x miniBatch) if micro-batches borrow.
/// Ignores sizes outside 1..miniBatch and candidates whose time is negative or not finite.
/// REQUIRES: miniBatch >= 1; launchMs is finite and not negative.
std::optional<Configuration> fastestConfiguration(const CandidateTable& table,
                                                  int miniBatch,
                                                  const WorkspaceRoom& room,
                                                  double launchMs);

/// The configuration with the least workspace that takes no longer than `mostMs`, and the fastest
/// within that workspace. Empty if none is so fast. Costs a dynamic program for each point of the
/// Pareto front that it passes.
std::optional<Configuration> leanConfiguration(const CandidateTable& table,
                                               int miniBatch,
                                               const WorkspaceRoom& room,
                                               double launchMs,
                                               double mostMs);

/// Every configuration that no other beats in both time and workspace, by ascending workspace (and
/// so descending time), none above the room's limit. Only dominated configurations are left out. If
/// several have equal time and workspace, it holds the one that fastestConfiguration gives at that
/// workspace. Costs as many dynamic programs as the front is long.
std::vector<Configuration> paretoFront(const CandidateTable& table,
                                       int miniBatch,
                                       const WorkspaceRoom& room,
                                       double launchMs);

}  // namespace ucudnn
