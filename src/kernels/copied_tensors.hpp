// Where the copies of a call's tensors are.
#pragma once

#include <cstddef>

#include "kernels/native.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// x, w and, if it is copied, y, one behind another in a workspace.
class CopiedTensors {
 public:
  /// `copies` is the problem that is computed from the copies.
  explicit CopiedTensors(const Problem& copies, bool hasY = true) noexcept
      : hasY_(hasY),
        x_(copies.xBytes()),
        w_(roundUpToAlignment(x_)),
        y_(w_ + roundUpToAlignment(copies.wBytes())),
        bytes_(y_ + (hasY ? copies.yBytes() : 0)) {}

  bool hasY() const noexcept { return hasY_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Of the copy of x, or of y. So many are not needed in the workspace if it is elsewhere.
  std::size_t bytesOf(const void* ConvolutionPointers::*tensor) const noexcept {
    return tensor == &ConvolutionPointers::x ? x_ : bytes_ - y_;
  }

  /// The call's pointers, with those of the copies that begin at `memory`. `output`: x or y, whose
  /// copy is at the call's outputCopy, if it has one.
  ConvolutionPointers in(const void* memory,
                         const ConvolutionPointers& call,
                         const void* ConvolutionPointers::*output = nullptr) const noexcept {
    const bool isElsewhere = output != nullptr && call.outputCopy != nullptr;
    const std::size_t before = isElsewhere && output == &ConvolutionPointers::x ? w_ : 0;
    ConvolutionPointers copies = call;
    copies.x = memory;
    copies.w = advance(memory, w_ - before);
    if (hasY_) copies.y = advance(memory, y_ - before);
    if (isElsewhere) copies.*output = call.outputCopy;
    return copies;
  }

 private:
  bool hasY_;
  std::size_t x_, w_, y_, bytes_;
};

}  // namespace ucudnn
