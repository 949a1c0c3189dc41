// The answers of cuDNN's backend API to calls that need no device. The statuses were seen with
// cuDNN 9.19.0 on a machine without a GPU, 2026-11-22. These tests run on the simulator, and on
// that real library too, with an H200's properties as text. Calls that make the real library crash
// are left out: a null output pointer, a configuration without an engine, a graph of a tensor.
#pragma once

#include "backend_descriptor.hpp"

namespace ucudnn::simulator::test {

using Int64s = std::vector<std::int64_t>;

/// A tensor's attributes; an empty list or 0 is not set.
struct TensorCase {
  Int64s dims{4, 8, 10, 10};
  Int64s strides{800, 100, 10, 1};
  std::int64_t alignment = 16;
  std::int64_t uid = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

/// Finalized, with the status that is expected.
DescriptorPointer tensor(const TensorCase& values, cudnnStatus_t expected = CUDNN_STATUS_SUCCESS);

/// A convolution's attributes; an empty list or 0 is not set.
struct PlainConvolution {
  Int64s pre{1, 1};
  Int64s post{1, 1};
  Int64s strides{1, 1};
  Int64s dilations{1, 1};
  std::int64_t spatialRank = 2;
};

DescriptorPointer convolution(const PlainConvolution& values = {},
                              cudnnStatus_t expected = CUDNN_STATUS_SUCCESS);

inline const TensorCase kX;
inline const TensorCase kW{{6, 8, 3, 3}, {72, 9, 3, 1}, 16, 2};
inline const TensorCase kY{{4, 6, 10, 10}, {600, 100, 10, 1}, 16, 3};

/// A forward convolution; null parts are not set.
DescriptorPointer operation(const Descriptor* x,
                            const Descriptor* w,
                            const Descriptor* y,
                            const Descriptor* convolution,
                            cudnnStatus_t expected = CUDNN_STATUS_SUCCESS);
DescriptorPointer operation(const TensorCase& x,
                            const TensorCase& w,
                            const TensorCase& y,
                            cudnnStatus_t expected = CUDNN_STATUS_SUCCESS);

/// The graph of one operation, finalized.
DescriptorPointer graphOf(const Descriptor& operation);

/// Has the graph of one forward convolution, of a device that need not be there.
class BackendContractTest : public testing::Test {
 protected:
  void SetUp() override;

  DescriptorPointer heuristics(cudnnBackendHeurMode_t mode) const;
  DescriptorPointer engine(std::int64_t index, cudnnStatus_t expected = CUDNN_STATUS_SUCCESS) const;
  DescriptorPointer config(std::int64_t index,
                           const std::map<std::int64_t, std::int64_t>& knobs,
                           cudnnStatus_t expected = CUDNN_STATUS_SUCCESS) const;
  DescriptorPointer plan(const Descriptor& config) const;

  Descriptor device_{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR};
  DescriptorPointer graph_;
};

}  // namespace ucudnn::simulator::test
