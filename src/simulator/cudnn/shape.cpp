#include "simulator/cudnn/shape.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ucudnn::simulator {
namespace {

template <typename T>
T read(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <typename T>
void write(void* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

double saturate(double value, double low, double high) {
  return std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), low, high);
}

// A dimension's length; channels are counted in vectors. Rounded up without overflow.
int vectorCount(const TensorShape& shape, std::size_t dim) {
  const int vector = dim == 1 ? vectorLength(shape.type) : 1;
  return (shape.dims[dim] - 1) / vector + 1;
}

}  // namespace

bool TensorShape::sameDims(const TensorShape& other) const {
  return rank == other.rank && std::equal(dims.begin(), dims.begin() + rank, other.dims.begin());
}

bool TensorShape::sameStrides(const TensorShape& other) const {
  return rank == other.rank &&
         std::equal(strides.begin(), strides.begin() + rank, other.strides.begin());
}

bool isDataType(cudnnDataType_t type) {
  return elementBytes(type) != 0;
}

int vectorLength(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4:
      return 4;
    case CUDNN_DATA_INT8x32:
      return 32;
    default:
      return 1;
  }
}

std::size_t elementBytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
      return 1;
    case CUDNN_DATA_INT8x32:
      return 32;
    default:
      return 0;
  }
}

std::size_t extentCount(const TensorShape& shape) {
  std::size_t last = 0;
  for (int dim = 0; dim < shape.rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    last += static_cast<std::size_t>(vectorCount(shape, d) - 1) *
            static_cast<std::size_t>(shape.strides[d]);
  }
  return last + 1;
}

std::size_t extentBytes(const TensorShape& shape) {
  return extentCount(shape) * elementBytes(shape.type);
}

std::size_t elementCount(const TensorShape& shape) {
  std::size_t count = 1;
  for (int dim = 0; dim < shape.rank; ++dim) {
    count *= static_cast<std::size_t>(vectorCount(shape, static_cast<std::size_t>(dim)));
  }
  return count;
}

bool setPackedStrides(TensorShape* shape, cudnnTensorFormat_t format) {
  const auto rank = static_cast<std::size_t>(shape->rank);
  std::array<std::int64_t, kMaximumRank> strides{};
  std::int64_t stride = 1;
  bool fits = true;
  const auto place = [&](std::size_t dim) {
    fits = fits && stride <= INT32_MAX;
    if (!fits) return;
    strides[dim] = stride;
    stride *= vectorCount(*shape, dim);
  };
  // The batch comes last in both orders: its own count is no stride of anything.
  if (format == CUDNN_TENSOR_NHWC) {
    place(1);
    for (std::size_t dim = rank - 1; dim >= 2; --dim) place(dim);
    place(0);
  } else {
    for (std::size_t dim = rank; dim-- > 0;) place(dim);
  }
  if (fits) shape->strides = strides;
  return fits;
}

bool isPackedNchwSample(const TensorShape& shape) {
  std::int64_t stride = 1;
  for (int dim = shape.rank - 1; dim >= 1; --dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (stride > INT32_MAX || (shape.dims[d] != 1 && shape.strides[d] != stride)) return false;
    stride *= shape.dims[d];
  }
  return true;
}

double loadElement(cudnnDataType_t type, const void* address) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return static_cast<double>(read<float>(address));
    case CUDNN_DATA_DOUBLE:
      return read<double>(address);
    case CUDNN_DATA_HALF:
      return static_cast<double>(__half2float(read<__half>(address)));
    case CUDNN_DATA_BFLOAT16:
      return static_cast<double>(__bfloat162float(read<__nv_bfloat16>(address)));
    case CUDNN_DATA_INT32:
      return read<std::int32_t>(address);
    case CUDNN_DATA_INT64:
      return static_cast<double>(read<std::int64_t>(address));
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4:
      return read<std::uint8_t>(address);
    default:
      return read<std::int8_t>(address);
  }
}

void storeElement(cudnnDataType_t type, void* address, double value) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return write(address, static_cast<float>(value));
    case CUDNN_DATA_DOUBLE:
      return write(address, value);
    case CUDNN_DATA_HALF:
      return write(address, __double2half(value));
    case CUDNN_DATA_BFLOAT16:
      return write(address, __double2bfloat16(value));
    case CUDNN_DATA_INT32:
      return write(address, static_cast<std::int32_t>(saturate(value, INT32_MIN, INT32_MAX)));
    case CUDNN_DATA_INT64:
      return write(address, static_cast<std::int64_t>(std::nearbyint(value)));
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4:
      return write(address, static_cast<std::uint8_t>(saturate(value, 0, UINT8_MAX)));
    default:
      return write(address, static_cast<std::int8_t>(saturate(value, INT8_MIN, INT8_MAX)));
  }
}

}  // namespace ucudnn::simulator
