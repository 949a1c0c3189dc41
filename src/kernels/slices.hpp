// How a call's pointers are moved to a part of it.
#pragma once

#include "kernels/factor.hpp"
#include "kernels/native.hpp"
#include "problem/part.hpp"

namespace ucudnn {

/// The output's place among a call's pointers.
const void* ConvolutionPointers::*outputOf(Operation operation) noexcept;

/// A part's pointers. REQUIRES: `call` has the whole's, and `problem` its types.
inline ConvolutionPointers pointersOf(const Offsets& part,
                                      const Problem& problem,
                                      const ConvolutionPointers& call) noexcept {
  ConvolutionPointers pointers = call;
  pointers.x = advance(call.x, part.x);
  pointers.w = advance(call.w, part.w);
  pointers.y = advance(call.y, part.y);
  if (part.adds) pointers.beta = Factor::one(problem).get();
  return pointers;
}

/// Walks a call's pointers over the micro-batches.
class Slices {
 public:
  /// REQUIRES: `problem` outlives it. `fused`: null, or bias_activation_forward's.
  Slices(const Problem& problem,
         const ConvolutionPointers& pointers,
         const BiasActivation* fused) noexcept
      : problem_(problem),
        pointers_(pointers),
        workspace_(pointers.workspace),
        workspaceBytes_(pointers.workspaceBytes),
        isFused_(fused != nullptr) {
    if (isFused_) fused_ = *fused;
  }

  const ConvolutionPointers& pointers() const noexcept { return pointers_; }
  /// The bias stays; z is cut as y is.
  const BiasActivation* fused() const noexcept { return isFused_ ? &fused_ : nullptr; }

  /// Steps over so many samples.
  void next(int samples) noexcept;

  /// From here on the call's workspace lies in the part of the output that is not written yet.
  /// REQUIRES: the remaining samples have so much room (WorkspaceRoom::borrowed).
  void borrow(std::size_t workspaceBytes) noexcept;
  /// From here on the workspace is the call's again.
  void giveBack() noexcept;
  /// From here on kernels have the copy of their output there, too; 0: in their workspace.
  /// REQUIRES: the output is aligned for engines, and the samples have room
  /// (WorkspaceRoom::forCopy).
  void placeOutputCopy(std::size_t bytes) noexcept;

 private:
  /// Where the last `bytes` of the output begin, or aligned memory just before.
  void* behind(std::size_t bytes, std::size_t alignment) const noexcept;

  const Problem& problem_;
  ConvolutionPointers pointers_;
  void* workspace_;  ///< the call's
  std::size_t workspaceBytes_;
  BiasActivation fused_;
  bool isFused_;
  int done_ = 0;  ///< samples
};

}  // namespace ucudnn
