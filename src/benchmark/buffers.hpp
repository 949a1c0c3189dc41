// The memory that kernels are timed on: the caller's (FindEx), or one block of scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/owners.hpp"
#include "problem/problem.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

/// Memory for a problem's tensors, as cudnnFindConvolution*AlgorithmEx hands it over.
struct TensorBuffers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspaceBytes = 0;
};

/// How much scratch memory may be taken.
struct ScratchBound {
  std::size_t mostBytes = SIZE_MAX;
  /// Of what is free on the device, at most one part in so many; 1: all of it.
  std::size_t partsOfFree = 1;

  /// Of the current device, where `heldBytes` are scratch memory already. Throws Error.
  std::size_t bytes(std::size_t heldBytes = 0) const;
};

/// What scratch memory takes for a problem's tensors. `besideY`: z has a place of its own.
std::size_t tensorBytesOf(const Problem& problem, bool besideY = false) noexcept;

/// Where a kernel is timed.
struct Placement {
  TensorBuffers buffers;
  const void* bias = nullptr;  ///< one sample's, for bias_activation_forward
  const void* z = nullptr;     ///< for the same; y itself, or beside it
  int samples = 0;             ///< that the tensors hold: a micro-batch walks over them
};

/// Places kernels at any batch size in memory of the current device. Not thread-safe.
class TimingMemory {
 public:
  /// The caller's: tensors of the whole mini-batch. Allocates nothing: what needs more workspace
  /// than there is borrows of the output (workspace_room.hpp).
  TimingMemory(const Problem& problem,
               const TensorBuffers& buffers,
               std::size_t borrowedSampleBytes);

  /// One block for the tensors of the mini-batch and `workspaceBytes`, freed with the object; a
  /// smaller one where the bound or the device allows no more, none where not even a sample fits.
  /// With `besideY` z has a place of its own there. Throws Error for another failure.
  TimingMemory(const Problem& problem,
               std::size_t workspaceBytes,
               const ScratchBound& bound,
               bool besideY,
               cudaStream_t stream);

  bool fits(int batch, std::size_t workspaceBytes) const;
  /// Of the block.
  std::size_t scratchBytes() const noexcept { return block_.bytes(); }
  /// Empty: the kernel does not fit. In a block too small for everything the tensors take what this
  /// kernel's workspace leaves, and are filled anew where another kernel's has been.
  std::optional<Placement> place(int batch, std::size_t workspaceBytes);

 private:
  std::size_t tensorBytes(int samples) const {
    return tensorBytesOf(problem_.withBatch(samples), besideY_);
  }
  Placement placeInCallers(std::size_t workspaceBytes) const;
  int samplesBeside(std::size_t workspaceBytes) const;
  Placement layOut(int samples, std::size_t workspaceBytes) const;
  void fill(int samples);

  Problem problem_;
  std::optional<TensorBuffers> callers_;
  WorkspaceRoom callersRoom_;
  bool besideY_ = false;
  cudaStream_t stream_ = nullptr;
  DeviceBuffer block_;
  int filledSamples_ = 0;      ///< what the tensors were last filled for
  std::size_t dirtyFrom_ = 0;  ///< beyond this, workspaces have been written since
};

}  // namespace ucudnn
