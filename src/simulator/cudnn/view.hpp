// A tensor or filter of rank 4 or 5 as five dimensions of scalars in memory.
#pragma once

#include <array>

#include "simulator/cudnn/shape.hpp"

namespace ucudnn::simulator {

/// Dimensions (n, c, d, h, w) or, for filters, (k, c, d, h, w); a 4-D tensor has depth 1.
/// Vectorized types become scalars: channel c lies in vector c / vector at place c % vector.
struct View {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t bytes = 0;  ///< of one scalar
  int vector = 1;
  std::array<int, 5> dims{};
  std::array<std::int64_t, 5> strides{};  ///< in scalars

  explicit View(const TensorShape& shape);

  std::int64_t offset(int n, int c, int d, int h, int w) const {
    const std::int64_t channel =
        vector == 1 ? c * strides[1] : (c / vector) * strides[1] + c % vector;
    return n * strides[0] + channel + d * strides[2] + h * strides[3] + w * strides[4];
  }
  const void* at(const void* base, std::int64_t scalarOffset) const {
    return static_cast<const char*>(base) + scalarOffset * bytes;
  }
  void* at(void* base, std::int64_t scalarOffset) const {
    return static_cast<char*>(base) + scalarOffset * bytes;
  }
};

/// Copies channels [first, first + count) of sample n into `to` as doubles, in the order (c, d, h,
/// w).
void readSample(const View& view, const void* base, int n, int first, int count, double* to);

}  // namespace ucudnn::simulator
