// The doors of backward filter: each unpacks its arguments and calls the context.
#include <ucudnn/convolution.h>

#include "api/queries.hpp"

// The native functions are deprecated in cuDNN 9; they are what these doors stand in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace ucudnn;

namespace {

constexpr Operation kOperation = Operation::kBackwardFilter;
using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;

}  // namespace

extern "C" {

cudnnStatus_t ucudnnConvolutionBackwardFilterLayer(cudnnHandle_t handle,
                                                   const void* alpha,
                                                   cudnnTensorDescriptor_t xDesc,
                                                   const void* x,
                                                   cudnnTensorDescriptor_t dyDesc,
                                                   const void* dy,
                                                   cudnnConvolutionDescriptor_t convDesc,
                                                   cudnnConvolutionBwdFilterAlgo_t algo,
                                                   void* workSpace,
                                                   size_t workSpaceSizeInBytes,
                                                   const void* beta,
                                                   cudnnFilterDescriptor_t dwDesc,
                                                   void* dw,
                                                   ucudnnLayerId_t layer) {
  const ConvolutionCall call{{xDesc, dwDesc, convDesc, dyDesc},
                             {alpha, beta, x, dw, dy, workSpace, workSpaceSizeInBytes},
                             nullptr,
                             algo};
  Context* const context = contextOf(handle);
  return context != nullptr ? context->convolve(kOperation, call, layer)
                            : runNative(handle, kOperation, call);
}

cudnnStatus_t ucudnnGetConvolutionBackwardFilterAlgorithm_v7Layer(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc,
    int requestedAlgoCount,
    int* returnedAlgoCount,
    Performance* perfResults,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                    handle,
                    kOperation,
                    {xDesc, dwDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerPerformances(
      query,
      nullptr,
      requestedAlgoCount,
      returnedAlgoCount,
      perfResults,
      [&](int requested, int* returned, Performance* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, xDesc, dyDesc, convDesc, dwDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionBackwardFilterAlgorithmLayer(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc,
    int requestedAlgoCount,
    int* returnedAlgoCount,
    Performance* perfResults,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnFindConvolutionBackwardFilterAlgorithm",
                    handle,
                    kOperation,
                    {xDesc, dwDesc, convDesc, dyDesc},
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
        return cudnnFindConvolutionBackwardFilterAlgorithm(
            handle, xDesc, dyDesc, convDesc, dwDesc, requested, returned, results);
      });
}

cudnnStatus_t ucudnnFindConvolutionBackwardFilterAlgorithmExLayer(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t xDesc,
    const void* x,
    cudnnTensorDescriptor_t dyDesc,
    const void* dy,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc,
    void* dw,
    int requestedAlgoCount,
    int* returnedAlgoCount,
    Performance* perfResults,
    void* workSpace,
    size_t workSpaceSizeInBytes,
    ucudnnLayerId_t layer) {
  const std::size_t bytes = workSpace != nullptr ? workSpaceSizeInBytes : 0;
  const Query query{"cudnnFindConvolutionBackwardFilterAlgorithmEx",
                    handle,
                    kOperation,
                    {xDesc, dwDesc, convDesc, dyDesc},
                    bytes,
                    layer,
                    true};
  const TensorBuffers buffers{const_cast<void*>(x), dw, const_cast<void*>(dy), workSpace, bytes};
  return answerPerformances(query,
                            &buffers,
                            requestedAlgoCount,
                            returnedAlgoCount,
                            perfResults,
                            [&](int requested, int* returned, Performance* results) {
                              return cudnnFindConvolutionBackwardFilterAlgorithmEx(
                                  handle,
                                  xDesc,
                                  x,
                                  dyDesc,
                                  dy,
                                  convDesc,
                                  dwDesc,
                                  dw,
                                  requested,
                                  returned,
                                  results,
                                  workSpace,
                                  workSpaceSizeInBytes);
                            });
}

cudnnStatus_t ucudnnGetConvolutionBackwardFilterWorkspaceSizeLayer(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterAlgo_t algo,
    size_t* sizeInBytes,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardFilterWorkspaceSize",
                    handle,
                    kOperation,
                    {xDesc, dwDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerWorkspaceSize(query, algo, sizeInBytes, [&] {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle, xDesc, dyDesc, convDesc, dwDesc, algo, sizeInBytes);
  });
}

cudnnStatus_t ucudnnGetConvolutionBackwardFilterAlgorithmLayer(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t xDesc,
    cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterPreference_t preference,
    size_t memoryLimitInBytes,
    cudnnConvolutionBwdFilterAlgo_t* algo,
    ucudnnLayerId_t layer) {
  const Query query{"cudnnGetConvolutionBackwardFilterAlgorithm",
                    handle,
                    kOperation,
                    {xDesc, dwDesc, convDesc, dyDesc},
                    std::nullopt,
                    layer};
  return answerAlgorithm(query, preference, memoryLimitInBytes, algo, [&] {
    return cudnnGetConvolutionBackwardFilterAlgorithm(
        handle, xDesc, dyDesc, convDesc, dwDesc, preference, memoryLimitInBytes, algo);
  });
}

}  // extern "C"
