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
  /// At most one part in so many of the device's free memory; 1: all of it.
  std::size_t partsOfFree = 1;

  /// The bound on the current device, where `heldBytes` are scratch memory already. Throws Error.
  std::size_t bytes(std::size_t heldBytes = 0) const;
};

/// Bytes of scratch memory for a problem's tensors. `besideY`: z has its own memory.
std::size_t tensorBytesOf(const Problem& problem, bool besideY = false) noexcept;

/// Spare bytes behind all that a kernel is given, as many as a row of a tile has. A kernel is timed
/// before it is checked: if it writes too much, it hits these, and no other memory.
constexpr std::size_t kSpareBytes = 2048;
/// Bytes of scratch memory for the tensors, a workspace, and the spare ones.
std::size_t scratchBytesOf(const Problem& problem, std::size_t workspaceBytes, bool besideY);

/// The memory that a kernel is timed on.
struct Placement {
  TensorBuffers buffers;
  const void* bias = nullptr;  ///< one sample's, for bias_activation_forward
  const void* z = nullptr;     ///< for the same; y itself, or beside it
  int samples = 0;             ///< that the tensors hold: a micro-batch walks over them
};

/// Places kernels at any batch size in memory of the current device. Not thread-safe.
class TimingMemory {
 public:
  /// The caller's memory: tensors of the whole mini-batch. Allocates nothing: a kernel that needs
  /// more workspace than there is borrows some of the output (workspace_room.hpp).
  TimingMemory(const Problem& problem,
               const TensorBuffers& buffers,
               std::size_t borrowedSampleBytes);

  /// One block for the tensors of the mini-batch and `workspaceBytes`, freed with the object. The
  /// block is smaller if the bound or the device allows no more; there is none if not even a sample
  /// fits. With `besideY` it has z's own memory. Throws Error for another failure.
  TimingMemory(const Problem& problem,
               std::size_t workspaceBytes,
               const ScratchBound& bound,
               bool besideY,
               cudaStream_t stream);

  bool fits(int batch, std::size_t workspaceBytes) const;
  /// The size of the block.
  std::size_t scratchBytes() const noexcept { return block_.bytes(); }
  /// Empty: the kernel does not fit. If the block is too small for everything, the tensors get the
  /// memory that this kernel's workspace leaves, and are filled anew if another kernel's workspace
  /// was there.
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
  std::size_t usedBytes_ = 0;  ///< of it
  int filledSamples_ = 0;      ///< the samples that the tensors were last filled for
  std::size_t dirtyFrom_ = 0;  ///< beyond this, workspaces have been written since
};

}  // namespace ucudnn
