// The doors of backward data: each unpacks its arguments and calls the context.
#include <ucudnn/convolution.h>

#include "api/queries.hpp"

// The native functions are deprecated in cuDNN 9; they are what these doors stand in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace ucudnn;

namespace {

constexpr Operation kOperation = Operation::kBackwardData;
using Performance = cudnnConvolutionBwdDataAlgoPerf_t;

}  // namespace

extern "C" {

cudnnStatus_t ucudnnConvolutionBackwardDataLayer(cudnnHandle_t handle,
                                                 const void* alpha,
                                                 cudnnFilterDescriptor_t wDesc,
                                                 const void* w,
                                                 cudnnTensorDescriptor_t dyDesc,
                                                 const void* dy,
                                                 cudnnConvolutionDescriptor_t convDesc,
                                                 cudnnConvolutionBwdDataAlgo_t algo,
                                                 void* workSpace,
                                                 size_t workSpaceSizeInBytes,
                                                 const void* beta,
                                                 cudnnTensorDescriptor_t dxDesc,
                                                 void* dx,
                                                 ucudnnLayerId_t layer) {
  const ConvolutionCall call{{dxDesc, wDesc, convDesc, dyDesc},
                             {alpha, beta, dx, w, dy, workSpace, workSpaceSizeInBytes},
                             nullptr,
                             algo};
  Context* const context = contextOf(handle);
  return context != nullptr ? context->convolve(kOperation, call, layer)
                            : runNative(handle, kOperation, call);
}

cudnnStatus_t ucudnnGetConvolutionBackwardDataAlgorithm_v7Layer(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t wDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc,
    int requestedAlgoCount,
    int* returnedAlgoCount,
    Performance* perfResults,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardDataAlgorithm_v7",
                    handle,
                    kOperation,
                    {dxDesc, wDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerPerformances(
      query,
      nullptr,
      requestedAlgoCount,
      returnedAlgoCount,
      perfResults,
      [&](int requested, int* returned, Performance* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, wDesc, dyDesc, convDesc, dxDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionBackwardDataAlgorithmLayer(cudnnHandle_t handle,
                                                              cudnnFilterDescriptor_t wDesc,
                                                              cudnnTensorDescriptor_t dyDesc,
                                                              cudnnConvolutionDescriptor_t convDesc,
                                                              cudnnTensorDescriptor_t dxDesc,
                                                              int requestedAlgoCount,
                                                              int* returnedAlgoCount,
                                                              Performance* perfResults,
                                                              ucudnnLayerId_t layer) {
  const Query query{"cudnnFindConvolutionBackwardDataAlgorithm",
                    handle,
                    kOperation,
                    {dxDesc, wDesc, convDesc, dyDesc},
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
        return cudnnFindConvolutionBackwardDataAlgorithm(
            handle, wDesc, dyDesc, convDesc, dxDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionBackwardDataAlgorithmExLayer(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t wDesc,
    const void* w,
    cudnnTensorDescriptor_t dyDesc,
    const void* dy,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc,
    void* dx,
    int requestedAlgoCount,
    int* returnedAlgoCount,
    Performance* perfResults,
    void* workSpace,
    size_t workSpaceSizeInBytes,
    ucudnnLayerId_t layer) {
  const std::size_t bytes = workSpace != nullptr ? workSpaceSizeInBytes : 0;
  const Query query{"cudnnFindConvolutionBackwardDataAlgorithmEx",
                    handle,
                    kOperation,
                    {dxDesc, wDesc, convDesc, dyDesc},
                    bytes,
                    layer,
                    true};
  const TensorBuffers buffers{dx, const_cast<void*>(w), const_cast<void*>(dy), workSpace, bytes};
  return answerPerformances(query,
                            &buffers,
                            requestedAlgoCount,
                            returnedAlgoCount,
                            perfResults,
                            [&](int requested, int* returned, Performance* results) {
                              return cudnnFindConvolutionBackwardDataAlgorithmEx(
                                  handle,
                                  wDesc,
                                  w,
                                  dyDesc,
                                  dy,
                                  convDesc,
                                  dxDesc,
                                  dx,
                                  requested,
                                  returned,
                                  results,
                                  workSpace,
                                  workSpaceSizeInBytes);
                            });
}

cudnnStatus_t ucudnnGetConvolutionBackwardDataWorkspaceSizeLayer(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t wDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo,
    size_t* sizeInBytes,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardDataWorkspaceSize",
                    handle,
                    kOperation,
                    {dxDesc, wDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerWorkspaceSize(query, algo, sizeInBytes, [&] {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, wDesc, dyDesc, convDesc, dxDesc, algo, sizeInBytes);
  });
}

cudnnStatus_t ucudnnGetConvolutionBackwardDataAlgorithmLayer(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t wDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataPreference_t preference,
    size_t memoryLimitInBytes,
    cudnnConvolutionBwdDataAlgo_t* algo,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardDataAlgorithm",
                    handle,
                    kOperation,
                    {dxDesc, wDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerAlgorithm(query, preference, memoryLimitInBytes, algo, [&] {
    return cudnnGetConvolutionBackwardDataAlgorithm(
        handle, wDesc, dyDesc, convDesc, dxDesc, preference, memoryLimitInBytes, algo);
  });
}

}  // extern "C"
