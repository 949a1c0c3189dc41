// The memory that kernels are checked in.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "benchmark/buffers.hpp"
#include "benchmark/check_layout.hpp"
#include "benchmark/exact_outputs.hpp"
#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// One block for a problem's tensors and a workspace (check_layout.hpp). Inputs hold random
/// numbers; output, guards and workspace hold NaNs. All that is to be looked at is gathered on the
/// device, and read at once: hundreds of small copies to the host take longer than a kernel.
/// Enqueues on the stream. Throws Error. Not thread-safe.
class CheckMemory {
 public:
  CheckMemory(const ScratchBound& bound, cudaStream_t stream) : bound_(bound), stream_(stream) {}

  /// Makes the first allocation large enough for this, too.
  void reserve(const Problem& problem, std::size_t workspaceBytes, bool repeats);

  /// Makes the memory ready for a kernel. Inputs that it holds already stay. False: there is not
  /// enough memory.
  bool prepare(const Problem& problem,
               std::size_t workspaceBytes,
               const std::vector<Window>& windows,
               bool repeats);
  Placement place() const noexcept;

  enum class Run { kFirst, kSecond };
  void keepOutputs(const OutputsToCheck& checked, Run run);
  /// Another run finds zeros instead of NaNs in output and workspace, and work of another stream
  /// beside it: atomic sums are then added up in another order. REQUIRES: prepared for it.
  void prepareSecondRun();
  /// Reads the outputs that were kept, and what a kernel must leave as it is. Waits for it.
  void read();

  /// Those that were read.
  const char* outputs(Run run) const noexcept;
  /// Empty: nothing was written but output and workspace.
  std::string whyElsewhere();

 private:
  char* at(std::size_t offset) const noexcept { return static_cast<char*>(block_.get()) + offset; }
  bool hold(std::size_t bytes);
  void fill(const std::vector<Window>& windows);
  void fillWithNans(std::size_t begin, std::size_t end);

  const ScratchBound bound_;
  const cudaStream_t stream_;
  std::size_t reservedBytes_ = 0;
  DeviceBuffer block_;
  CheckLayout layout_;
  Problem problem_;
  bool isFilled_ = false;  ///< for problem_
  std::vector<char> read_;
  Stream others_;
};

}  // namespace ucudnn
