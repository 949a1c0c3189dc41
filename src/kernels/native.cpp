#include "kernels/native.hpp"

// The legacy convolution API is marked deprecated in cuDNN 9; it is what μ-cuDNN stands in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {

bool isRefusal(cudnnStatus_t status) noexcept {
#if CUDNN_VERSION >= 90000
  // cuDNN 9 has sub-codes for each of its statuses (cudnn_graph.h, CUDNN_STATUS_CATEGORY).
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
#else
  return status == CUDNN_STATUS_NOT_SUPPORTED || status == CUDNN_STATUS_ARCH_MISMATCH ||
         status == CUDNN_STATUS_BAD_PARAM || status == CUDNN_STATUS_INVALID_VALUE;
#endif
}

bool isRefusalToBuild(cudnnStatus_t status) noexcept {
#if CUDNN_VERSION >= 90100
  return isRefusal(status) || status == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED ||
         status == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
#else
  return isRefusal(status);
#endif
}

cudnnStatus_t nativeWorkspaceSize(cudnnHandle_t handle,
                                  Operation operation,
                                  const ConvolutionDescriptors& descriptors,
                                  int algorithm,
                                  std::size_t* bytes) noexcept {
  return withNative(operation, [&](auto row) {
    using Row = decltype(row);
    return callNative(row,
                      Row::kWorkspaceSize,
                      handle,
                      descriptors,
                      static_cast<typename Row::Algorithm>(algorithm),
                      bytes);
  });
}

cudnnStatus_t nativeConvolution(cudnnHandle_t handle,
                                Operation operation,
                                const ConvolutionDescriptors& d,
                                int algorithm,
                                const ConvolutionPointers& p,
                                const BiasActivation* fused) noexcept {
  // One of x, w, y is the output, which the caller handed over as a pointer to non-const.
  if (operation == Operation::kBiasActivationForward)
    return cudnn().convolutionBiasActivationForward(
        handle,
        p.alpha,
        d.x,
        p.x,
        d.w,
        p.w,
        d.convolution,
        static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
        p.workspace,
        p.workspaceBytes,
        p.beta,
        fused->zDescriptor,
        fused->z,
        fused->biasDescriptor,
        fused->bias,
        fused->activation,
        d.y,
        const_cast<void*>(p.y));
  return withNative(operation, [&](auto row) {
    using Row = decltype(row);
    return (cudnn().*Row::kConvolve)(handle,
                                     p.alpha,
                                     d.*Row::kFirstDescriptor,
                                     p.*Row::kFirst,
                                     d.*Row::kSecondDescriptor,
                                     p.*Row::kSecond,
                                     d.convolution,
                                     static_cast<typename Row::Algorithm>(algorithm),
                                     p.workspace,
                                     p.workspaceBytes,
                                     p.beta,
                                     d.*Row::kOutputDescriptor,
                                     const_cast<void*>(p.*Row::kOutput));
  });
}

}  // namespace ucudnn
