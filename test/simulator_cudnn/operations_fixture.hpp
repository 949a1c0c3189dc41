// Tensors small enough to check by eye.
#pragma once

#include <limits>
#include <vector>

#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {

/// A packed float tensor on the device with its descriptor.
class Tensor {
 public:
  Tensor(std::vector<int> dims, const std::vector<float>& values)
      : buffer_(values.size() * sizeof(float)) {
    EXPECT_CUDNN(cudnnCreateTensorDescriptor(&descriptor_));
    EXPECT_CUDNN(cudnnSetTensorNdDescriptorEx(descriptor_,
                                              CUDNN_TENSOR_NCHW,
                                              CUDNN_DATA_FLOAT,
                                              static_cast<int>(dims.size()),
                                              dims.data()));
    const char* bytes = reinterpret_cast<const char*>(values.data());
    buffer_.write(std::vector<char>(bytes, bytes + buffer_.bytes()));
  }
  ~Tensor() { cudnnDestroyTensorDescriptor(descriptor_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  cudnnTensorDescriptor_t desc() const { return descriptor_; }
  void* data() const { return buffer_.get(); }
  std::vector<float> values() const {
    cudaDeviceSynchronize();
    const std::vector<char> bytes = buffer_.read();
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    return {first, first + bytes.size() / sizeof(float)};
  }

 private:
  DeviceBuffer buffer_;
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

using Values = std::vector<float>;

constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr float kTwo = 2;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline void expectNear(const Values& expected, const Values& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-6F) << i;
}

class OperationsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_CUDNN(cudnnCreate(&handle_)); }
  void TearDown() override { EXPECT_CUDNN(cudnnDestroy(handle_)); }
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace ucudnn::simulator::test
