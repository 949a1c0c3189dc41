// The memory that kernels are timed on: the caller's (FindEx), or scratch memory filled with random
// numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Memory for a problem's tensors, as cudnnFindConvolution*AlgorithmEx hands it over.
struct TensorBuffers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspaceBytes = 0;
};

/// Scratch memory for a problem on the current device; freed with the object. Values are random,
/// finite and between 2^-5 and 1 in magnitude: kernels run faster on zeros, and denormals or
/// infinities would mislead too.
class ScratchBuffers {
 public:
  /// Memory for the tensors of `problem`; for fewer samples (a half, a quarter, ...) where memory
  /// is short. Throws OutOfMemory when not even one sample fits.
  ScratchBuffers(const Problem& problem, cudaStream_t stream);

  /// Adds a workspace of the largest of `wantedBytes` for which there is memory; 0 bytes where
  /// there is none.
  void allocateWorkspace(std::vector<std::size_t> wantedBytes);

  TensorBuffers get() const noexcept;
  int batch() const noexcept { return batch_; }  ///< samples for which there is memory

 private:
  int batch_ = 0;
  DeviceBuffer x_, w_, y_, workspace_;
};

}  // namespace ucudnn
