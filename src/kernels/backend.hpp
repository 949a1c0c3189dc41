// Descriptors of cuDNN's backend API, through which its graph engines are chosen and run
// (https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html).
#pragma once

#include "cuda/owners.hpp"

#if UCUDNN_HAS_ENGINES

#include <cstdint>
#include <vector>

namespace ucudnn {

using BackendDescriptor = Owner<cudnnBackendDescriptor_t, &Cudnn::backendDestroyDescriptor>;

/// cuDNN's name of a C++ type. Pointers have two: see the functions below.
template <typename Value>
constexpr cudnnBackendAttributeType_t kAttributeType = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto kAttributeType<double> = CUDNN_TYPE_DOUBLE;
template <>
inline constexpr auto kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnNanPropagation_t> = CUDNN_TYPE_NAN_PROPOGATION;
template <>
inline constexpr auto kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto kAttributeType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr auto kAttributeType<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

/// All of these throw Error.
BackendDescriptor makeBackend(cudnnBackendDescriptorType_t type);
void setAttribute(const BackendDescriptor& descriptor,
                  cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  std::int64_t count,
                  const void* values);
std::int64_t getAttribute(const BackendDescriptor& descriptor,
                          cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type,
                          std::int64_t count,
                          void* values);
void finalize(const BackendDescriptor& descriptor);

template <typename Value>
void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const Value& value) {
  setAttribute(descriptor, name, kAttributeType<Value>, 1, &value);
}
template <typename Value>
void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const std::vector<Value>& values) {
  setAttribute(descriptor,
               name,
               kAttributeType<Value>,
               static_cast<std::int64_t>(values.size()),
               values.data());
}
void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const BackendDescriptor& value);
void set(const BackendDescriptor& descriptor,
         cudnnBackendAttributeName_t name,
         const std::vector<BackendDescriptor>& values);

template <typename Value>
Value get(const BackendDescriptor& descriptor, cudnnBackendAttributeName_t name) {
  Value value{};
  getAttribute(descriptor, name, kAttributeType<Value>, 1, &value);
  return value;
}
/// The attribute's values, at most so many.
template <typename Value>
std::vector<Value> getUpTo(std::int64_t most,
                           const BackendDescriptor& descriptor,
                           cudnnBackendAttributeName_t name) {
  std::vector<Value> values(static_cast<std::size_t>(most));
  values.resize(static_cast<std::size_t>(
      getAttribute(descriptor, name, kAttributeType<Value>, most, values.data())));
  return values;
}
/// The same for descriptors. They are made here: cuDNN only fills them in.
std::vector<BackendDescriptor> getUpTo(std::int64_t most,
                                       const BackendDescriptor& descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendDescriptorType_t type);

}  // namespace ucudnn

#endif
