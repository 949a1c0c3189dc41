// Sizes of a convolution in a plain cuDNN program that uses the graph API.
#pragma once

#include <cfloat>
#include <cstdint>
#include <utility>
#include <vector>

#include "layer.hpp"

namespace plain {

/// The attributes that are set on a RELU, as cudnn-frontend does. `isPlain`: only some, as others
/// do. Or on an ELU.
struct Relu {
  bool isPlain = true;
  double upperClip = double{FLT_MAX};
  double slope = 0;
  bool isElu = false;
};

/// The shape of a convolution that leaves images as large as they are, or grows them by the padding
/// behind beyond that before.
struct Shape {
  std::int64_t batch = kBatch, channels = kChannels, filters = kFilters, groups = 1;
  std::vector<std::int64_t> image = {kSize, kSize};
  std::int64_t filter = kFilter;
  std::int64_t behind = 0;

  using Sizes = std::vector<std::int64_t>;
  Sizes x() const { return joined(batch, channels, image); }
  Sizes w() const { return joined(filters, channels / groups, Sizes(image.size(), filter)); }
  Sizes y() const {
    Sizes sizes = joined(batch, filters, image);
    for (std::size_t i = 2; i < sizes.size(); ++i) sizes[i] += behind;
    return sizes;
  }
  Sizes bias() const { return joined(1, filters, Sizes(image.size(), 1)); }
  Sizes ofEach(std::int64_t value) const { return Sizes(image.size(), value); }

  /// Dense ones, the last dimension innermost.
  static Sizes strides(const Sizes& sizes) {
    Sizes made(sizes.size());
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) made[i] = std::exchange(stride, stride * sizes[i]);
    return made;
  }
  static std::size_t count(const Sizes& sizes) {
    std::size_t product = 1;
    for (const std::int64_t size : sizes) product *= static_cast<std::size_t>(size);
    return product;
  }

 private:
  static Sizes joined(std::int64_t first, std::int64_t second, const Sizes& others) {
    Sizes sizes = {first, second};
    sizes.insert(sizes.end(), others.begin(), others.end());
    return sizes;
  }
};

}  // namespace plain
