// Memory for tensors, and convolutions without descriptors.
#include <ucudnn/host_memory.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "api/guard.hpp"
#include "context/fused_call.hpp"
#include "context/host_call.hpp"
#include "kernels/factor.hpp"

using namespace ucudnn;

namespace {

bool areAll(const int* numbers, int count, int least) noexcept {
  return std::all_of(numbers, numbers + count, [&](int number) { return number >= least; });
}

Problem::Strides packed(const Problem::Sizes& sizes, int dimensions) noexcept {
  Problem::Strides strides{};
  std::int64_t stride = 1;
  for (auto i = static_cast<std::size_t>(dimensions); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

/// Where a member of ucudnnConvolution_t is, and how many ints it has. An enum counts as one.
struct Member {
  const char* name;
  std::size_t offset;
  int places;
};
template <typename Type>
constexpr Member memberOf(const char* name, std::size_t offset, Type ucudnnConvolution_t::*) {
  static_assert(sizeof(std::remove_extent_t<Type>) == sizeof(int));
  return {name, offset, std::is_array_v<Type> ? static_cast<int>(std::extent_v<Type>) : 1};
}
#define UCUDNN_MEMBER(name) \
  memberOf(#name, offsetof(ucudnnConvolution_t, name), &ucudnnConvolution_t::name)
constexpr Member kMembers[] = {UCUDNN_MEMBER(operation),
                               UCUDNN_MEMBER(type),
                               UCUDNN_MEMBER(math),
                               UCUDNN_MEMBER(dimensions),
                               UCUDNN_MEMBER(x),
                               UCUDNN_MEMBER(w),
                               UCUDNN_MEMBER(padding),
                               UCUDNN_MEMBER(stride),
                               UCUDNN_MEMBER(dilation),
                               UCUDNN_MEMBER(groups),
                               UCUDNN_MEMBER(relu)};
#undef UCUDNN_MEMBER

/// Returns false if there is no such convolution.
bool readProblem(const ucudnnConvolution_t& from, Problem& problem) noexcept {
  const int spatial = from.dimensions - 2;
  if (from.size != sizeof(from) || from.dimensions < 4 ||
      from.dimensions > Problem::kMaxDimensions || from.operation < UCUDNN_FORWARD ||
      from.operation > UCUDNN_BIAS_ACTIVATION_FORWARD || elementBytes(from.type) == 0 ||
      from.groups < 1 || !areAll(from.x, from.dimensions, 1) ||
      !areAll(from.w, from.dimensions, 1) || !areAll(from.padding, spatial, 0) ||
      !areAll(from.stride, spatial, 1) || !areAll(from.dilation, spatial, 1) ||
      std::int64_t{from.w[1]} * from.groups != from.x[1] || from.w[0] % from.groups != 0)
    return false;
  problem = Problem();
  problem.operation = static_cast<Operation>(from.operation);
  problem.dimensions = from.dimensions;
  problem.xType = problem.wType = problem.yType = from.type;
  problem.wFormat = CUDNN_TENSOR_NCHW;
  std::copy_n(from.x, from.dimensions, problem.xSizes.begin());
  std::copy_n(from.w, from.dimensions, problem.wSizes.begin());
  std::copy_n(from.padding, spatial, problem.pads.begin());
  std::copy_n(from.stride, spatial, problem.strides.begin());
  std::copy_n(from.dilation, spatial, problem.dilations.begin());
  problem.ySizes = {from.x[0], from.w[0]};
  for (std::size_t i = 0; i < static_cast<std::size_t>(spatial); ++i) {
    const std::int64_t reach = (std::int64_t{from.w[2 + i]} - 1) * from.dilation[i];
    const std::int64_t rest = from.x[2 + i] + 2 * std::int64_t{from.padding[i]} - reach - 1;
    if (rest < 0) return false;
    problem.ySizes[2 + i] = static_cast<std::int32_t>(rest / from.stride[i] + 1);
  }
  problem.xStrides = packed(problem.xSizes, from.dimensions);
  problem.yStrides = packed(problem.ySizes, from.dimensions);
  problem.mode = CUDNN_CROSS_CORRELATION;
  problem.computeType = from.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  problem.mathType = from.math;
  problem.groups = from.groups;
  if (problem.operation == Operation::kBiasActivationForward)
    problem.activation = static_cast<std::int16_t>(from.relu != 0 ? CUDNN_ACTIVATION_RELU
                                                                  : CUDNN_ACTIVATION_IDENTITY);
  return true;
}

/// Makes `run(call)` a fused call of the layer.
template <typename Run>
cudnnStatus_t runFused(const char* function,
                       cudnnHandle_t handle,
                       const ucudnnFusedLayer_t* layer,
                       Run run) noexcept {
  Context* const context = contextOf(handle);
  if (context == nullptr || layer == nullptr || layer->size != sizeof(*layer))
    return CUDNN_STATUS_BAD_PARAM;
  return guarded(function, [&] {
    try {
      if (!context->hasDeviceMemory())
        throw Error(CUDNN_STATUS_NOT_SUPPORTED, "UCUDNN_DEVICE_MEMORY is not set");
      const DeviceScope scope = context->useDevice();
      FusedCall call(*context,
                     {layer->x,
                      layer->w,
                      layer->convolution,
                      layer->transposed != 0,
                      layer->bias,
                      layer->activation,
                      layer->y,
                      layer->pooling,
                      layer->pooled,
                      layer->xActivation});
      return run(call);
    } catch (const Error& error) {
      logWarn("{} fails: {}", function, error.what());
      return error.status();
    }
  });
}

}  // namespace

extern "C" {

cudnnStatus_t ucudnnMalloc(cudnnHandle_t handle, void** memory, size_t bytes) {
  if (memory == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *memory = nullptr;
  Context* const context = contextOf(handle);
  if (context == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnMalloc", [&] {
    if (bytes > 0) *memory = context->allocate(bytes);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t ucudnnFree(cudnnHandle_t handle, void* memory) {
  Context* const context = contextOf(handle);
  if (context == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return guarded("ucudnnFree", [&] {
    if (memory != nullptr) context->free(memory);
    return CUDNN_STATUS_SUCCESS;
  });
}

size_t ucudnnInitConvolution(ucudnnConvolution_t* convolution, size_t bytes) {
  if (convolution != nullptr && bytes >= sizeof(*convolution)) {
    *convolution = {};
    convolution->size = sizeof(*convolution);
    convolution->groups = 1;
  }
  return sizeof(*convolution);
}

cudnnStatus_t ucudnnSetConvolution(ucudnnConvolution_t* convolution,
                                   const char* name,
                                   int count,
                                   const int* numbers) {
  if (convolution == nullptr || convolution->size != sizeof(*convolution) || name == nullptr ||
      numbers == nullptr || count < 1)
    return CUDNN_STATUS_BAD_PARAM;
  for (const Member& member : kMembers) {
    if (std::strcmp(name, member.name) != 0) continue;
    if (count > member.places) return CUDNN_STATUS_BAD_PARAM;
    std::memcpy(reinterpret_cast<char*>(convolution) + member.offset,
                numbers,
                static_cast<std::size_t>(count) * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t ucudnnGetConvolutionOutput(const ucudnnConvolution_t* convolution, int sizes[5]) {
  Problem problem;
  if (convolution == nullptr || sizes == nullptr || !readProblem(*convolution, problem))
    return CUDNN_STATUS_BAD_PARAM;
  std::copy(problem.ySizes.begin(), problem.ySizes.end(), sizes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ucudnnConvolve(cudnnHandle_t handle,
                             const ucudnnConvolution_t* convolution,
                             double alpha,
                             void* x,
                             void* w,
                             const void* bias,
                             double beta,
                             void* y) {
  Context* const context = contextOf(handle);
  Problem problem;
  if (context == nullptr || convolution == nullptr || x == nullptr || w == nullptr ||
      y == nullptr || !readProblem(*convolution, problem))
    return CUDNN_STATUS_BAD_PARAM;
  const bool isFused = problem.operation == Operation::kBiasActivationForward;
  if (isFused != (bias != nullptr) || (isFused && beta != 0)) return CUDNN_STATUS_BAD_PARAM;
  const Factor factors[] = {{alpha, problem}, {beta, problem}};
  const ConvolutionPointers pointers{factors[0].get(), factors[1].get(), x, w, y};
  return guarded("ucudnnConvolve",
                 [&] { return HostCall::convolve(*context, problem, pointers, bias); });
}

cudnnStatus_t ucudnnFusedForward(cudnnHandle_t handle,
                                 const ucudnnFusedLayer_t* layer,
                                 const void* x,
                                 const void* w,
                                 const void* bias,
                                 void* y,
                                 void* pooled) {
  return runFused("ucudnnFusedForward", handle, layer, [&](FusedCall& call) {
    FusedTensors tensors;
    tensors.x = x;
    tensors.w = w;
    tensors.bias = bias;
    tensors.y = y;
    tensors.pooled = pooled;
    return call.forward(tensors);
  });
}

cudnnStatus_t ucudnnFusedBackward(cudnnHandle_t handle,
                                  const ucudnnFusedLayer_t* layer,
                                  const void* x,
                                  const void* w,
                                  const void* y,
                                  const void* pooled,
                                  const void* dOutput,
                                  void* dx,
                                  void* dw,
                                  void* db) {
  return runFused("ucudnnFusedBackward", handle, layer, [&](FusedCall& call) {
    return call.backward({x, w, nullptr, y, pooled, dOutput, dx, dw, db});
  });
}

}  // extern "C"
