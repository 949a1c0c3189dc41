// How a convolution runs with its channels last, in bands. Where channels come first, engines on
// tensor cores copy all of x and y channels last before they multiply, and the output back: that is
// their workspace. These copies are made by us, a band at a time: the workspace is a band's.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/copying.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Equal ranges of the output along one spatial dimension, each with what it needs of the input,
/// and 0 where the tensors end. So all are one problem, without padding there; backward data's has
/// that of a full correlation.
struct Bands {
  std::size_t spatial = 0;  ///< 0 for the outermost
  int count = 1;
  BandRows x, y;

  /// Up to `most`, along the dimension where bands have least of the input in common. Of one the
  /// rows are empty. Empty: there are not more than half as many.
  static std::optional<Bands> of(const Problem& problem, int most) noexcept;
};

/// The problem with all its tensors channels last, in bands of the caller's. There are as many
/// channels as engines read at once, those beyond the caller's 0. Where the filter has one tap, the
/// pixels that its step leaves out are not copied.
class ChannelsLast : public Copying {
 public:
  /// REQUIRES: exists.
  ChannelsLast(const Problem& problem, int bands) noexcept;

  /// Whether there are up to so many bands, more than half of them. Throws Error: that can't be
  /// found out now.
  static bool exists(const Problem& problem, int bands);

 private:
  /// `read`: with x as the pixels that are copied.
  ChannelsLast(const Problem& problem, const Problem& read, const Bands& bands) noexcept;
};

}  // namespace ucudnn
