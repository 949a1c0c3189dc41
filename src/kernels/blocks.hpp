// How a convolution becomes one that cuDNN's engines like better. They read neighbouring channels
// of a pixel at once. An image has three: AlexNet's first convolution takes an H200 1.5 ms, and as
// blocks 0.6.
#pragma once

#include "cuda/block_copy.hpp"
#include "kernels/copying.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// A problem whose pixels are blocks of the caller's pixels, with all their channels (known as
/// space-to-depth). A block of x is at least as high and wide as the filter's step, which becomes
/// 1. If it is just as large, a pixel of y is one of the caller's, and y need not be copied. If it
/// is `times` as high and wide, a pixel of y is a block of times x times of the caller's, and y is
/// copied too. x and w are always copied. Taps that don't fill a block are filled with 0, so there
/// are products with 0 beside the caller's; nothing is rounded in between. In float, half or
/// bfloat16.
///
/// Engines on tensor cores want y channels last, and copy it if it isn't. `copiesY`: we copy it for
/// them (channels_last.hpp). Within 64 MiB a ResNet's first layer forward in 16 bits takes an H200
/// 0.7 to 0.8 of the time so (misc/results/first_layers_h200.json at 1cfc4aab and 743f4563).
class Blocking : public Copying {
 public:
  /// Whether a pixel of x has so few channels that engines are slow on pixels: they read four
  /// floats at once.
  static bool hasFewChannels(const Problem& problem) noexcept { return problem.xSizes[1] <= 4; }

  /// REQUIRES: exists.
  Blocking(const Problem& problem, int pixels, bool copiesY = false) noexcept;

  /// Whether so many pixels of the problem's x are a block. If `copiesY`: and whether the blocks
  /// leave y in place, and engines would copy it, and so can we. Throws Error: that can't be found
  /// out now.
  static bool exists(const Problem& problem, int pixels, bool copiesY = false);
  /// Pixels of the smallest blocks, for few channels. 1: the filter's step is 1. 0: the step is too
  /// large.
  static int pixelsOf(const Problem& problem) noexcept {
    const auto& steps = problem.strides;
    return steps[0] > kMostColumns || steps[1] > kMostColumns ? 0 : steps[0] * steps[1];
  }
};

}  // namespace ucudnn
