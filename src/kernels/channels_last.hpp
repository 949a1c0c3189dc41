// How a convolution runs with its channels last, in bands. If channels come first, engines on
// tensor cores copy all of x and y channels last before they multiply, and copy the output back:
// their workspace is for that. We make these copies a band at a time, so that the workspace is one
// band's. Engines are slow with few channels, so then several columns are a pixel of the copy.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/copying.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Equal ranges of the output along one spatial dimension, each with the input that it needs, and 0
/// beyond the tensors. So all bands are one problem, without padding along that dimension. Backward
/// data's problem has the padding of a full correlation there.
struct Bands {
  std::size_t spatial = 0;  ///< 0 for the outermost
  int count = 1;
  BandRows x, y;

  /// Up to `most` bands, along the dimension in which bands share least of the input. A single band
  /// has empty rows. Empty if there are no more than half as many. Folded, several volumes have
  /// bands of their depth only.
  static std::optional<Bands> of(const Problem& problem, int most, bool isFolded = false) noexcept;
};

/// The problem with all its tensors channels last, in bands of the caller's tensors. Zeros fill the
/// channels up to a multiple of those that engines read at once. If the filter has one tap, the
/// pixels that its step leaves out are not copied.
///
/// Folded, a pixel has all channels of `folds` neighbouring columns of y, and one of x those of the
/// columns that they step over. A filter becomes one for each of the columns of y, with zeros where
/// it has no taps: there are products with 0 beside the caller's. A filter gradient of 32 channels
/// (half, 3x3x3, 128x128x128) takes an H200 0.50 ms with two columns as one, and 0.88 without
/// (misc/results/one_sample_layers_{folds,rest}_h200.json).
class ChannelsLast : public Copying {
 public:
  /// REQUIRES: exists.
  ChannelsLast(const Problem& problem, int bands, int folds = 1) noexcept;

  /// Whether there are up to `bands` bands and more than half as many, and so many columns can be a
  /// pixel. Throws Error if that can't be found out now.
  static bool exists(const Problem& problem, int bands, int folds = 1);
  /// Whether folding may be worth it. Looks only at the problem's values.
  static bool mayFold(const Problem& problem) noexcept;
  /// The columns of y that are worth being one pixel; 1: none are. Throws Error.
  static int foldsOf(const Problem& problem);

 private:
  /// `read`: with x as the pixels that are copied.
  ChannelsLast(const Problem& problem, const Problem& read, const Bands& bands, int folds) noexcept;
};

}  // namespace ucudnn
