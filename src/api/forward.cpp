// The doors of forward convolution: each unpacks its arguments and calls the context.
#include <ucudnn/convolution.h>

#include "api/queries.hpp"

// The native functions are deprecated in cuDNN 9; they are what these doors stand in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace ucudnn;

namespace {

constexpr Operation kOperation = Operation::kForward;
using Performance = cudnnConvolutionFwdAlgoPerf_t;

}  // namespace

extern "C" {

cudnnStatus_t ucudnnConvolutionForwardLayer(cudnnHandle_t handle,
                                            const void* alpha,
                                            cudnnTensorDescriptor_t xDesc,
                                            const void* x,
                                            cudnnFilterDescriptor_t wDesc,
                                            const void* w,
                                            cudnnConvolutionDescriptor_t convDesc,
                                            cudnnConvolutionFwdAlgo_t algo,
                                            void* workSpace,
                                            size_t workSpaceSizeInBytes,
                                            const void* beta,
                                            cudnnTensorDescriptor_t yDesc,
                                            void* y,
                                            ucudnnLayerId_t layer) {
  const ConvolutionCall call{{xDesc, wDesc, convDesc, yDesc},
                             {alpha, beta, x, w, y, workSpace, workSpaceSizeInBytes},
                             nullptr,
                             algo};
  Context* const context = contextOf(handle);
  return context != nullptr ? context->convolve(kOperation, call, layer)
                            : runNative(handle, kOperation, call);
}

cudnnStatus_t ucudnnGetConvolutionForwardAlgorithm_v7Layer(cudnnHandle_t handle,
                                                           cudnnTensorDescriptor_t xDesc,
                                                           cudnnFilterDescriptor_t wDesc,
                                                           cudnnConvolutionDescriptor_t convDesc,
                                                           cudnnTensorDescriptor_t yDesc,
                                                           int requestedAlgoCount,
                                                           int* returnedAlgoCount,
                                                           Performance* perfResults,
                                                           ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionForwardAlgorithm_v7",
                    handle,
                    kOperation,
                    {xDesc, wDesc, convDesc, yDesc},
                    std::nullopt,
                    layer};
  return answerPerformances(
      query,
      nullptr,
      requestedAlgoCount,
      returnedAlgoCount,
      perfResults,
      [&](int requested, int* returned, Performance* results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(
            handle, xDesc, wDesc, convDesc, yDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionForwardAlgorithmLayer(cudnnHandle_t handle,
                                                         cudnnTensorDescriptor_t xDesc,
                                                         cudnnFilterDescriptor_t wDesc,
                                                         cudnnConvolutionDescriptor_t convDesc,
                                                         cudnnTensorDescriptor_t yDesc,
                                                         int requestedAlgoCount,
                                                         int* returnedAlgoCount,
                                                         Performance* perfResults,
                                                         ucudnnLayerId_t layer) {
  const Query query{"cudnnFindConvolutionForwardAlgorithm",
                    handle,
                    kOperation,
                    {xDesc, wDesc, convDesc, yDesc},
                    std::nullopt,
                    layer,
                    true};
  return answerPerformances(
      query,
      nullptr,
      requestedAlgoCount,
      returnedAlgoCount,
      perfResults,
      [&](int requested, int* returned, Performance* results) {
        return cudnnFindConvolutionForwardAlgorithm(
            handle, xDesc, wDesc, convDesc, yDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionForwardAlgorithmExLayer(cudnnHandle_t handle,
                                                           cudnnTensorDescriptor_t xDesc,
                                                           const void* x,
                                                           cudnnFilterDescriptor_t wDesc,
                                                           const void* w,
                                                           cudnnConvolutionDescriptor_t convDesc,
                                                           cudnnTensorDescriptor_t yDesc,
                                                           void* y,
                                                           int requestedAlgoCount,
                                                           int* returnedAlgoCount,
                                                           Performance* perfResults,
                                                           void* workSpace,
                                                           size_t workSpaceSizeInBytes,
                                                           ucudnnLayerId_t layer) {
  const std::size_t bytes = workSpace != nullptr ? workSpaceSizeInBytes : 0;
  const Query query{"cudnnFindConvolutionForwardAlgorithmEx",
                    handle,
                    kOperation,
                    {xDesc, wDesc, convDesc, yDesc},
                    bytes,
                    layer,
                    true};
  const TensorBuffers buffers{const_cast<void*>(x), const_cast<void*>(w), y, workSpace, bytes};
  return answerPerformances(query,
                            &buffers,
                            requestedAlgoCount,
                            returnedAlgoCount,
                            perfResults,
                            [&](int requested, int* returned, Performance* results) {
                              return cudnnFindConvolutionForwardAlgorithmEx(handle,
                                                                            xDesc,
                                                                            x,
                                                                            wDesc,
                                                                            w,
                                                                            convDesc,
                                                                            yDesc,
                                                                            y,
                                                                            requested,
                                                                            returned,
                                                                            results,
                                                                            workSpace,
                                                                            workSpaceSizeInBytes);
                            });
}

cudnnStatus_t ucudnnGetConvolutionForwardWorkspaceSizeLayer(cudnnHandle_t handle,
                                                            cudnnTensorDescriptor_t xDesc,
                                                            cudnnFilterDescriptor_t wDesc,
                                                            cudnnConvolutionDescriptor_t convDesc,
                                                            cudnnTensorDescriptor_t yDesc,
                                                            cudnnConvolutionFwdAlgo_t algo,
                                                            size_t* sizeInBytes,
                                                            ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionForwardWorkspaceSize",
                    handle,
                    kOperation,
                    {xDesc, wDesc, convDesc, yDesc},
                    std::nullopt,
                    layer};
  return answerWorkspaceSize(query, algo, sizeInBytes, [&] {
    return cudnnGetConvolutionForwardWorkspaceSize(
        handle, xDesc, wDesc, convDesc, yDesc, algo, sizeInBytes);
  });
}

cudnnStatus_t ucudnnGetConvolutionForwardAlgorithmLayer(cudnnHandle_t handle,
                                                        cudnnTensorDescriptor_t xDesc,
                                                        cudnnFilterDescriptor_t wDesc,
                                                        cudnnConvolutionDescriptor_t convDesc,
                                                        cudnnTensorDescriptor_t yDesc,
                                                        cudnnConvolutionFwdPreference_t preference,
                                                        size_t memoryLimitInBytes,
                                                        cudnnConvolutionFwdAlgo_t* algo,
                                                        ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionForwardAlgorithm",
                    handle,
                    kOperation,
                    {xDesc, wDesc, convDesc, yDesc},
                    std::nullopt,
                    layer};
  return answerAlgorithm(query, preference, memoryLimitInBytes, algo, [&] {
    return cudnnGetConvolutionForwardAlgorithm(
        handle, xDesc, wDesc, convDesc, yDesc, preference, memoryLimitInBytes, algo);
  });
}

}  // extern "C"
