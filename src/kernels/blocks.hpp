// How a convolution becomes one that cuDNN's engines like better. They read neighbouring channels
// of a pixel at once. An image has three: AlexNet's first convolution takes an H200 1.5 ms, and as
// blocks 0.6. Where there are many, but channels come first, engines copy the tensors channels last
// before they multiply, which blocks of one pixel do in less time.
#pragma once

#include <cstddef>

#include "cuda/block_copy.hpp"
#include "kernels/copied_tensors.hpp"
#include "kernels/pixel_copies.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// A problem whose pixels are blocks of the caller's pixels, with all their channels; known as
/// space-to-depth. A block of x is at least as high and wide as the filter's step, which becomes 1:
/// then a pixel of y is the caller's, and y is not copied. Where it is `times` as high and wide, a
/// pixel of y is a block of times x times of the caller's. x, w and, if so, y are copied. The
/// products are the caller's and some with 0, where taps don't fill a block; nothing is rounded in
/// between. In float, half or bfloat16.
///
/// A block of one pixel leaves the convolution as it is, with all its tensors channels last. Only
/// of a filter of one tap the pixels that the step leaves out are not copied.
class Blocking {
 public:
  /// Whether a pixel of x has so few channels that engines are slow on pixels: they read four
  /// floats at once.
  static bool hasFewChannels(const Problem& problem) noexcept { return problem.xSizes[1] <= 4; }

  /// REQUIRES: exists.
  Blocking(const Problem& problem, int pixels) noexcept;

  /// Whether so many pixels of the problem's x are a block. Throws Error: that can't be found out
  /// now.
  static bool exists(const Problem& problem, int pixels);
  /// Of the smallest blocks of few channels. 1: the filter has no step. 0: too large a one.
  static int pixelsOf(const Problem& problem) noexcept {
    const auto& steps = problem.strides;
    return steps[0] > kMostColumns || steps[1] > kMostColumns ? 0 : steps[0] * steps[1];
  }

  const Problem& problem() const noexcept { return blocked_; }
  const CopiedTensors& copies() const noexcept { return copies_; }

  /// Copies between a call's tensor and its blocks. `adds`: to the call's, not of half and
  /// bfloat16, where an engine has done that. REQUIRES of y's: it is copied.
  BlockCopy xCopy(const void* tensor, const void* blocks, bool adds = false) const noexcept {
    return adding(between(x_, tensor, blocks), adds);
  }
  FilterCopy wCopy(const void* filters, const void* blocks, bool adds = false) const noexcept;
  BlockCopy yCopy(const void* tensor, const void* blocks, bool adds = false) const noexcept {
    return adding(between(y_, tensor, blocks), adds);
  }
  /// Of the call's x, what is 0 where only some of its pixels are written; 0: nothing.
  std::size_t clearedBytes() const noexcept { return clearedBytes_; }

 private:
  Problem blocked_;
  CopiedTensors copies_;
  BlockCopy x_{}, y_{};
  FilterCopy w_{};
  std::size_t clearedBytes_ = 0;
};

}  // namespace ucudnn
