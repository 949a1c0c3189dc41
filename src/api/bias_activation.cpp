// The door of the forward convolution that is fused with bias and activation.
#include <ucudnn/convolution.h>

#include "api/guard.hpp"

using namespace ucudnn;

extern "C" {

cudnnStatus_t ucudnnConvolutionBiasActivationForwardLayer(
    cudnnHandle_t handle,
    const void* alpha1,
    cudnnTensorDescriptor_t xDesc,
    const void* x,
    cudnnFilterDescriptor_t wDesc,
    const void* w,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo,
    void* workSpace,
    size_t workSpaceSizeInBytes,
    const void* alpha2,
    cudnnTensorDescriptor_t zDesc,
    const void* z,
    cudnnTensorDescriptor_t biasDesc,
    const void* bias,
    cudnnActivationDescriptor_t activationDesc,
    cudnnTensorDescriptor_t yDesc,
    void* y,
    ucudnnLayerId_t layer) {
  const BiasActivation fused{zDesc, z, biasDesc, bias, activationDesc};
  const ConvolutionCall call{{xDesc, wDesc, convDesc, yDesc},
                             {alpha1, alpha2, x, w, y, workSpace, workSpaceSizeInBytes},
                             &fused,
                             algo};
  Context* const context = contextOf(handle);
  return context != nullptr ? context->convolve(Operation::kBiasActivationForward, call, layer)
                            : runNative(handle, Operation::kBiasActivationForward, call);
}

}  // extern "C"
