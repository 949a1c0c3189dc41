// WR, workspace reuse: the fastest configuration of one convolution under its own limit, and the whole
// Pareto front of configurations (μ-cuDNN paper, sections III-A and III-B).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "optimizer/configuration.hpp"

namespace ucudnn {

/// The fastest configuration whose micro-batches sum to `miniBatch` and whose workspace is within
/// `limitBytes`; among equally fast ones the one with the fewest micro-batches, then the least workspace.
/// `launchMs` is added for each micro-batch. Empty when the table cannot make up the mini-batch within the
/// limit. Exact: dynamic programming over sizes, O(sizes x miniBatch).
/// REQUIRES: miniBatch >= 1; times are finite and not negative.
std::optional<Configuration> fastestConfiguration(const CandidateTable& table,
                                                  int miniBatch,
                                                  std::size_t limitBytes,
                                                  double launchMs);

/// Every configuration that no other beats in both time and workspace, by ascending workspace (and so
/// descending time), none above `limitBytes`. Only dominated configurations are left out.
std::vector<Configuration> paretoFront(const CandidateTable& table,
                                       int miniBatch,
                                       std::size_t limitBytes,
                                       double launchMs);

}  // namespace ucudnn
