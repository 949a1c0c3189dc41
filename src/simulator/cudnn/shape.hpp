// The shape of a tensor or filter as cuDNN sees it, and the numbers stored in it.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucudnn::simulator {

constexpr int kMaximumRank = CUDNN_DIM_MAX;

/// Dimensions, strides (in elements) and element type. Vectorized layouts (INT8x4, INT8x32) count
/// the channel dimension in channels and the strides in vectors, as cuDNN does. rank 0: not set
/// yet.
struct TensorShape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int rank = 0;
  std::array<int, kMaximumRank> dims{};
  std::array<std::int64_t, kMaximumRank> strides{};

  bool operator==(const TensorShape& other) const {
    return type == other.type && rank == other.rank && dims == other.dims &&
           strides == other.strides;
  }
  bool sameDims(const TensorShape& other) const;
  bool sameStrides(const TensorShape& other) const;
};

/// False for a value that is no data type the simulator knows.
bool isDataType(cudnnDataType_t type);

/// Channels in one vector element: 4 for INT8x4, 32 for INT8x32, else 1.
int vectorLength(cudnnDataType_t type);

/// Bytes of one element (of one vector in vectorized types).
std::size_t elementBytes(cudnnDataType_t type);

/// Bytes from the first element to the end of the last one: what must be readable.
std::size_t extentBytes(const TensorShape& shape);

/// Elements from the first to the last, gaps included, counted as elementCount.
std::size_t extentCount(const TensorShape& shape);

/// Whether it spans 2^31 elements or more: no legacy descriptor has it, and fast engines don't.
inline bool isLarge(const TensorShape& shape) {
  return extentCount(shape) > INT32_MAX;
}

/// Elements, counted in vectors for vectorized types.
std::size_t elementCount(const TensorShape& shape);

/// Strides without gaps in the given order of dimensions; false, and nothing changed, when one
/// doesn't fit an int.
[[nodiscard]] bool setPackedStrides(TensorShape* shape, cudnnTensorFormat_t format);

/// Whether the samples (all but the batch stride) are packed in NCHW order.
bool isPackedNchwSample(const TensorShape& shape);

/// One number; scalar types only. Stores round to nearest even; integers saturate.
double loadElement(cudnnDataType_t type, const void* address);
void storeElement(cudnnDataType_t type, void* address, double value);

/// Calls f(offset in elements) for each element in row-major order of the dimensions.
template <typename F>
void forEachOffset(const TensorShape& shape, F&& f) {
  std::array<int, kMaximumRank> index{};
  std::int64_t offset = 0;
  while (true) {
    f(offset, index);
    int dim = shape.rank - 1;
    for (; dim >= 0; --dim) {
      const auto d = static_cast<std::size_t>(dim);
      offset += shape.strides[d];
      if (++index[d] < shape.dims[d]) break;
      offset -= shape.strides[d] * shape.dims[d];
      index[d] = 0;
    }
    if (dim < 0) return;
  }
}

/// The offset of an index in a shape that may broadcast: a dimension of 1 stays at 0.
inline std::int64_t broadcastOffset(const TensorShape& shape,
                                    const std::array<int, kMaximumRank>& index) {
  std::int64_t offset = 0;
  for (int dim = 0; dim < shape.rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (shape.dims[d] != 1) offset += shape.strides[d] * index[d];
  }
  return offset;
}

}  // namespace ucudnn::simulator
