// The objects behind cuDNN's opaque pointers. Only their Set functions change values; distinct
// descriptors may be used on distinct threads, as with cuDNN.
#pragma once

#include <array>

#include "cudnn_names.h"
#include "simulator/cudnn/shape.hpp"
#include "simulator/cudnn/status.hpp"

struct cudnnContext {
  int device = 0;  ///< the device that was current at cudnnCreate
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  ucudnn::simulator::TensorShape shape;
};

struct cudnnFilterStruct {
  ucudnn::simulator::TensorShape shape;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};

struct cudnnConvolutionStruct {
  int spatialRank = 0;  ///< 0: not set yet
  std::array<int, CUDNN_DIM_MAX> pad{};
  std::array<int, CUDNN_DIM_MAX> endPad{};  ///< another than `pad` in the backend API only
  std::array<int, CUDNN_DIM_MAX> stride{};
  std::array<int, CUDNN_DIM_MAX> dilation{};
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  cudnnMathType_t mathType = CUDNN_DEFAULT_MATH;
  int groups = 1;

  bool operator==(const cudnnConvolutionStruct& other) const {
    return spatialRank == other.spatialRank && pad == other.pad && endPad == other.endPad &&
           stride == other.stride && dilation == other.dilation && mode == other.mode &&
           computeType == other.computeType && mathType == other.mathType && groups == other.groups;
  }
};

struct cudnnActivationStruct {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
  cudnnNanPropagation_t nanPropagation = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  double slope = 0;  ///< of a RELU below 0, in the backend API only
};

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nanPropagation = CUDNN_NOT_PROPAGATE_NAN;
  int spatialRank = 0;  ///< 0: not set yet
  std::array<int, CUDNN_DIM_MAX> window{};
  std::array<int, CUDNN_DIM_MAX> pad{};
  std::array<int, CUDNN_DIM_MAX> stride{};
};

struct cudnnOpTensorStruct {
  cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nanPropagation = CUDNN_NOT_PROPAGATE_NAN;
};

namespace ucudnn::simulator {

template <typename Struct>
cudnnStatus_t createDescriptor(const char* function, const char* kind, Struct** descriptor) {
  return guarded(function, [&] {
    require(descriptor != nullptr, "null descriptor pointer");
    *descriptor = new Struct();
    countHandle(kind, 1);
  });
}

/// Destroying null is fine, as in cuDNN.
template <typename Struct>
cudnnStatus_t destroyDescriptor(const char* function, const char* kind, Struct* descriptor) {
  return guardedRelease(function, [&] {
    if (descriptor == nullptr) return;
    delete descriptor;
    countHandle(kind, -1);
  });
}

/// Writes `value` unless the caller does not want it.
template <typename T>
void give(T* where, T value) {
  if (where != nullptr) *where = value;
}

}  // namespace ucudnn::simulator

/// cudnnCreateNAMEDescriptor and cudnnDestroyNAMEDescriptor.
#define UCUDNN_SIMULATED_DESCRIPTOR(NAME)                                       \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnCreate##NAME##Descriptor(           \
      cudnn##NAME##Descriptor_t* descriptor) {                                  \
    return createDescriptor(__func__, "cudnn" #NAME "Descriptor", descriptor);  \
  }                                                                             \
  UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnDestroy##NAME##Descriptor(          \
      cudnn##NAME##Descriptor_t descriptor) {                                   \
    return destroyDescriptor(__func__, "cudnn" #NAME "Descriptor", descriptor); \
  }
