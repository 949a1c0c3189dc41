// Walking over one output tensor with inputs of the same or broadcast dimensions.
#pragma once

#include "simulator/cudnn/launch.hpp"

namespace ucudnn::simulator {

/// One number of a tensor that may broadcast (its dimensions of 1 stay at 0).
inline double loadAt(const TensorShape& shape,
                     const void* data,
                     const std::array<int, kMaximumRank>& index) {
  const auto bytes = static_cast<std::int64_t>(elementBytes(shape.type));
  return loadElement(shape.type,
                     static_cast<const char*>(data) + broadcastOffset(shape, index) * bytes);
}

/// out = value(index) + beta * out for every element; with beta 0 the old value is not read.
template <typename Value>
void writeElements(const TensorShape& shape, void* data, double beta, Value&& value) {
  const auto bytes = static_cast<std::int64_t>(elementBytes(shape.type));
  forEachOffset(shape, [&](std::int64_t offset, const std::array<int, kMaximumRank>& index) {
    char* address = static_cast<char*>(data) + offset * bytes;
    double result = value(index);
    if (beta != 0) result += beta * loadElement(shape.type, address);
    storeElement(shape.type, address, result);
  });
}

/// The same dimensions without gaps, for numbers of the simulator's own. Throws NOT_SUPPORTED where
/// a stride doesn't fit an int (a tensor whose elements overlap may have any dimensions).
inline TensorShape packedShape(TensorShape shape) {
  requireSupported(setPackedStrides(&shape, CUDNN_TENSOR_NCHW), "too many elements");
  return shape;
}

/// Throws BAD_PARAM unless every dimension of `shape` is 1 or that of `full`.
inline void requireBroadcast(const TensorShape& shape, const TensorShape& full) {
  require(shape.rank == full.rank, "numbers of dimensions do not match");
  for (std::size_t d = 0; d < static_cast<std::size_t>(full.rank); ++d) {
    require(shape.dims[d] == full.dims[d] || shape.dims[d] == 1, "dimensions do not match");
  }
}

/// Throws: BAD_PARAM for null or unset descriptors, NOT_SUPPORTED for types without scalars of
/// their own.
inline const TensorShape& scalarShape(cudnnTensorDescriptor_t descriptor) {
  require(descriptor != nullptr, "null tensor descriptor");
  require(descriptor->shape.rank != 0, "a tensor descriptor has not been set");
  requireSupported(vectorLength(descriptor->shape.type) == 1, "vectorized data type");
  return descriptor->shape;
}

}  // namespace ucudnn::simulator
