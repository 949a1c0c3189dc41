// Tensors of operations beside the convolutions.
#pragma once

#include <algorithm>
#include <vector>

#include "fixture.hpp"

namespace ucudnn::test {

using Sizes = std::vector<int>;

/// Values and their descriptor.
class SmallTensor {
 public:
  SmallTensor(cudnnDataType_t type, const Sizes& sizes, bool isChannelsLast, int gap, unsigned seed)
      : geometry_{type, sizes, Sizes(sizes.size())} {
    std::vector<std::size_t> order(sizes.size());  // the innermost first
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    if (isChannelsLast) std::rotate(order.begin(), order.end() - 2, order.end() - 1);
    int stride = 1;
    for (const std::size_t i : order) {
      if (i == 0) stride += gap;
      geometry_.strides[i] = stride;
      stride *= sizes[i];
    }
    geometry_.partStride = static_cast<std::size_t>(stride);
    values_ = randomValues(geometry_, seed);
    EXPECT_CUDNN(cudnnCreateTensorDescriptor(&descriptor_));
    EXPECT_CUDNN(cudnnSetTensorNdDescriptor(
        descriptor_, type, static_cast<int>(sizes.size()), sizes.data(), geometry_.strides.data()));
  }
  ~SmallTensor() { EXPECT_CUDNN(cudnnDestroyTensorDescriptor(descriptor_)); }
  SmallTensor(const SmallTensor&) = delete;
  SmallTensor& operator=(const SmallTensor&) = delete;

  cudnnTensorDescriptor_t desc() const { return descriptor_; }
  const Geometry& geometry() const { return geometry_; }
  const std::vector<char>& values() const { return values_; }

 private:
  Geometry geometry_;
  std::vector<char> values_;
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

/// The factors of a call.
struct Factors {
  Factors(cudnnDataType_t type, double alpha, double beta)
      : doubles{alpha, beta},
        floats{static_cast<float>(alpha), static_cast<float>(beta)},
        isDouble(type == CUDNN_DATA_DOUBLE) {}
  const void* alpha() const { return isDouble ? static_cast<const void*>(doubles) : floats; }
  const void* beta() const { return isDouble ? static_cast<const void*>(doubles + 1) : floats + 1; }

  double doubles[2];
  float floats[2];
  bool isDouble;
};

}  // namespace ucudnn::test
