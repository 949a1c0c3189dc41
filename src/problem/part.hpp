// Parts of a convolution: the same operation on parts of its tensors. One after another they
// compute the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace ucudnn {

/// Neighbours along one dimension, from `first` on.
struct Range {
  std::int32_t first = 0, count = 0;

  constexpr std::int32_t end() const noexcept { return first + count; }
};

/// Where a part begins in the whole's tensors, in bytes. z is cut like y.
struct Offsets {
  std::size_t x = 0, w = 0, y = 0;
  bool adds = false;  ///< to what earlier parts have written: its beta is 1
};

/// The offsets of the part that begins with this sample.
inline Offsets offsetsOfSample(const Problem& problem, int sample) noexcept {
  const auto count = static_cast<std::size_t>(sample);
  return {count * problem.xBatchStrideBytes(),
          0,
          count * problem.yBatchStrideBytes(),
          sample > 0 && problem.operation == Operation::kBackwardFilter};
}

/// A part can be cut again, in any direction.
struct Part {
  Problem problem;                  ///< its strides are the whole's; its pads are before x
  Problem::FilterStrides wStrides;  ///< the whole's: w of some of the channels has gaps
  Problem::Spatial padsAfter;       ///< after x
  Offsets offsets;

  explicit Part(const Problem& whole) noexcept
      : problem(whole), wStrides(whole.wStrides()), padsAfter(whole.pads) {}
};

enum class Direction {
  kBatch,
  kGroups,
  kFilters,   ///< and the channels of y
  kChannels,  ///< of x and of the filters
};

/// The number of samples, groups, filters or channels.
std::int32_t sizeOf(const Problem& problem, Direction direction) noexcept;

/// The part with these samples, groups, filters or channels. Parts of the same output add up: in
/// backward filter those of samples, in backward data those of filters, in forward those of
/// channels. REQUIRES for filters and channels: one group. REQUIRES for bias_activation_forward:
/// kBatch, because its bias is not cut, and its parts can't add up.
Part cut(const Part& whole, Direction direction, Range range) noexcept;
/// `count` equal parts. REQUIRES: `count` divides the size.
std::vector<Part> cutEqually(const Part& whole, Direction direction, int count);

// Bands: ranges of y and x along a spatial dimension, 0 for the outermost.

/// The range of x that the filter covers for this range of y. Neighbouring bands of y have
/// overlapping ranges of x. Empty if this range of y sees only the padding: cuDNN has no such
/// problem.
Range rangeOfX(const Problem& problem, std::size_t spatial, Range y) noexcept;
/// The range of y whose filters reach this range of x. It is larger if a part's padding would be
/// negative otherwise. Never empty.
Range rangeOfY(const Problem& problem, std::size_t spatial, Range x) noexcept;
/// The part with both ranges. Backward filter's parts add up. Backward data's parts overwrite: if
/// ranges of x overlap, the caller adds them up.
Part cutSpatial(const Part& whole, std::size_t spatial, Range x, Range y) noexcept;
/// The part with this range of the output, and the range of the input that it depends on. For
/// backward filter, `band` is a range of y.
Part cutBand(const Part& whole, std::size_t spatial, Range band) noexcept;

}  // namespace ucudnn
