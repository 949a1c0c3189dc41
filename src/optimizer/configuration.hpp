// The optimizer's input and output: numbers alone.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace ucudnn {

/// One way to run one micro-batch. `kernel` is the caller's own number for it.
struct Candidate {
  int kernel;
  double timeMs;
  std::size_t workspaceBytes;
};

/// Micro-batch size -> the kernels measured at that size, in any order.
using CandidateTable = std::map<int, std::vector<Candidate>>;

/// `count` micro-batches of `batch` samples, each by `kernel`.
struct MicroBatches {
  int batch;
  int kernel;
  int count;
  bool borrows = false;  ///< their workspace is in the output, behind them (workspace_room.hpp)

  bool operator==(const MicroBatches& other) const noexcept {
    return batch == other.batch && kernel == other.kernel && count == other.count &&
           borrows == other.borrows;
  }
};

/// A division of the mini-batch. The micro-batches that borrow come first, in the order in which
/// they may; then the others, the largest first. Time is the sum over the micro-batches, with one
/// launch for each. Workspace is the maximum over those that don't borrow.
struct Configuration {
  std::vector<MicroBatches> microBatches;
  double timeMs = 0;
  std::size_t workspaceBytes = 0;
};

}  // namespace ucudnn
