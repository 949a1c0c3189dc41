// The entry points of operations beside the convolutions: on the device they are cuDNN's.
#include <ucudnn/small_layers.h>

#include <tuple>

#include "api/guard.hpp"
#include "context/host_pass.hpp"

// The native functions are deprecated in cuDNN 9, but these entry points stand in for them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace ucudnn;

namespace {

constexpr unsigned kSampleAxis = 1, kChannelAxis = 2;

/// A tensor as a call names it.
SmallCall::Tensor given(cudnnTensorDescriptor_t descriptor,
                        const void* pointer,
                        bool mayRepeat = false) noexcept {
  return {{descriptor, const_cast<void*>(pointer)}, mayRepeat};
}

/// `run(operands, beta)` calls cuDNN with the caller's tensors, or with parts of them.
template <std::size_t count, typename Run>
cudnnStatus_t runSmall(cudnnHandle_t handle,
                       const char* name,
                       unsigned axes,
                       const SmallCall::Tensor (&tensors)[count],
                       std::size_t whole,
                       const void* beta,
                       Run run) noexcept {
  Context* const context = activeContextOf(handle);
  if (context != nullptr && context->hasDeviceMemory())
    if (const auto status = HostPass::run(*context, {name, axes, tensors, count, whole, beta}, run))
      return *status;
  Operand operands[count];
  for (std::size_t i = 0; i < count; ++i) operands[i] = tensors[i].operand;
  return run(operands, beta);
}

template <typename Argument>
std::tuple<Argument> flat(Argument argument) noexcept {
  return {argument};
}
std::tuple<cudnnTensorDescriptor_t, void*> flat(const Operand& operand) noexcept {
  return {operand.descriptor, operand.pointer};
}
/// Calls cuDNN's function with descriptor and pointer in each operand's place.
template <typename Function, typename... Arguments>
cudnnStatus_t call(Function function, const Arguments&... arguments) noexcept {
  return std::apply(function, std::tuple_cat(flat(arguments)...));
}

unsigned axesOf(cudnnSoftmaxMode_t mode) noexcept {
  return mode == CUDNN_SOFTMAX_MODE_CHANNEL ? kAllAxes & ~kChannelAxis : kSampleAxis;
}

}  // namespace

extern "C" {

cudnnStatus_t ucudnnAddTensor(cudnnHandle_t handle,
                              const void* alpha,
                              cudnnTensorDescriptor_t aDesc,
                              const void* A,
                              const void* beta,
                              cudnnTensorDescriptor_t cDesc,
                              void* C) {
  return runSmall(handle,
                  "cudnnAddTensor",
                  kAllAxes,
                  {given(aDesc, A, true), given(cDesc, C)},
                  1,
                  beta,
                  [=](const Operand* t, const void* factor) {
                    return call(cudnn().addTensor, handle, alpha, t[0], factor, t[1]);
                  });
}

cudnnStatus_t ucudnnConvolutionBackwardBias(cudnnHandle_t handle,
                                            const void* alpha,
                                            cudnnTensorDescriptor_t dyDesc,
                                            const void* dy,
                                            const void* beta,
                                            cudnnTensorDescriptor_t dbDesc,
                                            void* db) {
  return runSmall(handle,
                  "cudnnConvolutionBackwardBias",
                  kAllAxes,
                  {given(dyDesc, dy), given(dbDesc, db, true)},
                  0,
                  beta,
                  [=](const Operand* t, const void* factor) {
                    return call(cudnn().convolutionBackwardBias, handle, alpha, t[0], factor, t[1]);
                  });
}

cudnnStatus_t ucudnnActivationForward(cudnnHandle_t handle,
                                      cudnnActivationDescriptor_t activationDesc,
                                      const void* alpha,
                                      cudnnTensorDescriptor_t xDesc,
                                      const void* x,
                                      const void* beta,
                                      cudnnTensorDescriptor_t yDesc,
                                      void* y) {
  return runSmall(
      handle,
      "cudnnActivationForward",
      kAllAxes,
      {given(xDesc, x), given(yDesc, y)},
      1,
      beta,
      [=](const Operand* t, const void* factor) {
        return call(cudnn().activationForward, handle, activationDesc, alpha, t[0], factor, t[1]);
      });
}

cudnnStatus_t ucudnnActivationBackward(cudnnHandle_t handle,
                                       cudnnActivationDescriptor_t activationDesc,
                                       const void* alpha,
                                       cudnnTensorDescriptor_t yDesc,
                                       const void* y,
                                       cudnnTensorDescriptor_t dyDesc,
                                       const void* dy,
                                       cudnnTensorDescriptor_t xDesc,
                                       const void* x,
                                       const void* beta,
                                       cudnnTensorDescriptor_t dxDesc,
                                       void* dx) {
  return runSmall(handle,
                  "cudnnActivationBackward",
                  kAllAxes,
                  {given(yDesc, y), given(dyDesc, dy), given(xDesc, x), given(dxDesc, dx)},
                  3,
                  beta,
                  [=](const Operand* t, const void* factor) {
                    return call(cudnn().activationBackward,
                                handle,
                                activationDesc,
                                alpha,
                                t[0],
                                t[1],
                                t[2],
                                factor,
                                t[3]);
                  });
}

cudnnStatus_t ucudnnPoolingForward(cudnnHandle_t handle,
                                   cudnnPoolingDescriptor_t poolingDesc,
                                   const void* alpha,
                                   cudnnTensorDescriptor_t xDesc,
                                   const void* x,
                                   const void* beta,
                                   cudnnTensorDescriptor_t yDesc,
                                   void* y) {
  return runSmall(handle,
                  "cudnnPoolingForward",
                  kSampleAxis | kChannelAxis,
                  {given(xDesc, x), given(yDesc, y)},
                  1,
                  beta,
                  [=](const Operand* t, const void* factor) {
                    return call(
                        cudnn().poolingForward, handle, poolingDesc, alpha, t[0], factor, t[1]);
                  });
}

cudnnStatus_t ucudnnPoolingBackward(cudnnHandle_t handle,
                                    cudnnPoolingDescriptor_t poolingDesc,
                                    const void* alpha,
                                    cudnnTensorDescriptor_t yDesc,
                                    const void* y,
                                    cudnnTensorDescriptor_t dyDesc,
                                    const void* dy,
                                    cudnnTensorDescriptor_t xDesc,
                                    const void* x,
                                    const void* beta,
                                    cudnnTensorDescriptor_t dxDesc,
                                    void* dx) {
  return runSmall(
      handle,
      "cudnnPoolingBackward",
      kSampleAxis | kChannelAxis,
      {given(yDesc, y), given(dyDesc, dy), given(xDesc, x), given(dxDesc, dx)},
      3,
      beta,
      [=](const Operand* t, const void* factor) {
        return call(
            cudnn().poolingBackward, handle, poolingDesc, alpha, t[0], t[1], t[2], factor, t[3]);
      });
}

cudnnStatus_t ucudnnSoftmaxForward(cudnnHandle_t handle,
                                   cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode,
                                   const void* alpha,
                                   cudnnTensorDescriptor_t xDesc,
                                   const void* x,
                                   const void* beta,
                                   cudnnTensorDescriptor_t yDesc,
                                   void* y) {
  return runSmall(handle,
                  "cudnnSoftmaxForward",
                  axesOf(mode),
                  {given(xDesc, x), given(yDesc, y)},
                  1,
                  beta,
                  [=](const Operand* t, const void* factor) {
                    return call(
                        cudnn().softmaxForward, handle, algo, mode, alpha, t[0], factor, t[1]);
                  });
}

cudnnStatus_t ucudnnSoftmaxBackward(cudnnHandle_t handle,
                                    cudnnSoftmaxAlgorithm_t algo,
                                    cudnnSoftmaxMode_t mode,
                                    const void* alpha,
                                    cudnnTensorDescriptor_t yDesc,
                                    const void* y,
                                    cudnnTensorDescriptor_t dyDesc,
                                    const void* dy,
                                    const void* beta,
                                    cudnnTensorDescriptor_t dxDesc,
                                    void* dx) {
  return runSmall(
      handle,
      "cudnnSoftmaxBackward",
      axesOf(mode),
      {given(yDesc, y), given(dyDesc, dy), given(dxDesc, dx)},
      2,
      beta,
      [=](const Operand* t, const void* factor) {
        return call(cudnn().softmaxBackward, handle, algo, mode, alpha, t[0], t[1], factor, t[2]);
      });
}

}  // extern "C"
