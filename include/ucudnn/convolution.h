/* The convolutions, as the C ABI has them: each is cuDNN's function of the same name. */
#ifndef UCUDNN_CONVOLUTION_H_
#define UCUDNN_CONVOLUTION_H_

#include <ucudnn/functions.h>
#include <ucudnn/layer.h>
#include <ucudnn/preamble.h>

UCUDNN_QUIET_BEGIN

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = alpha * convolution(x, w) + beta * y, and likewise dx and dw: the caller's tensors, algorithm
 * and workspace.
 *
 * Runs as planned for `workSpaceSizeInBytes` on the handle's stream, without synchronization or
 * allocation. `algo` is accepted whether or not a query returned it, and does not bind the plan.
 * `workSpace` may be NULL with 0 bytes. alpha and beta are `float`, for double tensors `double`. dw
 * is summed over the micro-batches. Whatever can't be planned or split runs through cuDNN with
 * these very arguments. Returns what cuDNN returns.
 *
 * Any workspace runs. Where there is no plan and `algo` does not fit it, the best algorithm by
 * cuDNN's heuristics that fits stands in; if `algo` is deterministic, a deterministic one where one
 * fits, else another with one warning. With UCUDNN_DETERMINISTIC only deterministic ones stand in;
 * where none fits, the call gets cuDNN's own error. A plan is checked before its first use on a
 * handle; a micro-batch that cuDNN refuses all the same is made up for where the output still
 * allows it, warned of once, and its plan not used again by the handle.
 * https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-cnn-library.html
 */
UCUDNN_API cudnnStatus_t ucudnnConvolutionForward(cudnnHandle_t handle,
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
                                                  void* y);

UCUDNN_API cudnnStatus_t ucudnnConvolutionBackwardData(cudnnHandle_t handle,
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
                                                       void* dx);

UCUDNN_API cudnnStatus_t ucudnnConvolutionBackwardFilter(cudnnHandle_t handle,
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
                                                         void* dw);

UCUDNN_API cudnnStatus_t
ucudnnConvolutionBiasActivationForward(cudnnHandle_t handle,
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
                                       void* y);

/*
 * The algorithms to use where the client names no limit, best first: μ-cuDNN's choice, then
 * cuDNN's own. `memory` of the first is what its plan needs, in bytes, a multiple of 512; `time` in
 * ms. At most `requestedAlgoCount` entries are written, `*returnedAlgoCount` says how many.
 * Measures nothing (but see ucudnnSetBenchmarkShare): a problem that has not been measured yet gets
 * cuDNN's heuristics, with `time` -1, and as much `memory` for the first as a plan may use later.
 * CUDNN_STATUS_BAD_PARAM: as cuDNN.
 */
UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle,
                                        cudnnTensorDescriptor_t srcDesc,
                                        cudnnFilterDescriptor_t filterDesc,
                                        cudnnConvolutionDescriptor_t convDesc,
                                        cudnnTensorDescriptor_t destDesc,
                                        int requestedAlgoCount,
                                        int* returnedAlgoCount,
                                        cudnnConvolutionFwdAlgoPerf_t* perfResults);

UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle,
                                             cudnnFilterDescriptor_t filterDesc,
                                             cudnnTensorDescriptor_t diffDesc,
                                             cudnnConvolutionDescriptor_t convDesc,
                                             cudnnTensorDescriptor_t gradDesc,
                                             int requestedAlgoCount,
                                             int* returnedAlgoCount,
                                             cudnnConvolutionBwdDataAlgoPerf_t* perfResults);

UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle,
                                               cudnnTensorDescriptor_t srcDesc,
                                               cudnnTensorDescriptor_t diffDesc,
                                               cudnnConvolutionDescriptor_t convDesc,
                                               cudnnFilterDescriptor_t gradDesc,
                                               int requestedAlgoCount,
                                               int* returnedAlgoCount,
                                               cudnnConvolutionBwdFilterAlgoPerf_t* perfResults);

/*
 * The same, measured now, without a limit but what is free on the device, or the default limit if
 * one has been set. Scratch memory: ucudnnSetBenchmarkMemory.
 */
UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle,
                                      cudnnTensorDescriptor_t xDesc,
                                      cudnnFilterDescriptor_t wDesc,
                                      cudnnConvolutionDescriptor_t convDesc,
                                      cudnnTensorDescriptor_t yDesc,
                                      int requestedAlgoCount,
                                      int* returnedAlgoCount,
                                      cudnnConvolutionFwdAlgoPerf_t* perfResults);

UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t handle,
                                           cudnnFilterDescriptor_t wDesc,
                                           cudnnTensorDescriptor_t dyDesc,
                                           cudnnConvolutionDescriptor_t convDesc,
                                           cudnnTensorDescriptor_t dxDesc,
                                           int requestedAlgoCount,
                                           int* returnedAlgoCount,
                                           cudnnConvolutionBwdDataAlgoPerf_t* perfResults);

UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionBackwardFilterAlgorithm(cudnnHandle_t handle,
                                             cudnnTensorDescriptor_t xDesc,
                                             cudnnTensorDescriptor_t dyDesc,
                                             cudnnConvolutionDescriptor_t convDesc,
                                             cudnnFilterDescriptor_t dwDesc,
                                             int requestedAlgoCount,
                                             int* returnedAlgoCount,
                                             cudnnConvolutionBwdFilterAlgoPerf_t* perfResults);

/*
 * The same under `workSpaceSizeInBytes`, measured on the caller's buffers; only the output and the
 * workspace are overwritten, and no other memory is taken. The limit holds for the problem's later
 * calls on this handle until a query names another.
 */
UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle,
                                        cudnnTensorDescriptor_t xDesc,
                                        const void* x,
                                        cudnnFilterDescriptor_t wDesc,
                                        const void* w,
                                        cudnnConvolutionDescriptor_t convDesc,
                                        cudnnTensorDescriptor_t yDesc,
                                        void* y,
                                        int requestedAlgoCount,
                                        int* returnedAlgoCount,
                                        cudnnConvolutionFwdAlgoPerf_t* perfResults,
                                        void* workSpace,
                                        size_t workSpaceSizeInBytes);

UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle,
                                             cudnnFilterDescriptor_t wDesc,
                                             const void* w,
                                             cudnnTensorDescriptor_t dyDesc,
                                             const void* dy,
                                             cudnnConvolutionDescriptor_t convDesc,
                                             cudnnTensorDescriptor_t dxDesc,
                                             void* dx,
                                             int requestedAlgoCount,
                                             int* returnedAlgoCount,
                                             cudnnConvolutionBwdDataAlgoPerf_t* perfResults,
                                             void* workSpace,
                                             size_t workSpaceSizeInBytes);

UCUDNN_API cudnnStatus_t
ucudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle,
                                               cudnnTensorDescriptor_t xDesc,
                                               const void* x,
                                               cudnnTensorDescriptor_t dyDesc,
                                               const void* y,
                                               cudnnConvolutionDescriptor_t convDesc,
                                               cudnnFilterDescriptor_t dwDesc,
                                               void* dw,
                                               int requestedAlgoCount,
                                               int* returnedAlgoCount,
                                               cudnnConvolutionBwdFilterAlgoPerf_t* perfResults,
                                               void* workSpace,
                                               size_t workSpaceSizeInBytes);

/*
 * The bytes that the problem's plan needs, a multiple of 512, under the latest limit that a query
 * on this handle named, else the default. Not measured yet: what cuDNN needs for `algo`, or, if it
 * is more, what a plan may use later. `algo` is accepted whether or not a query returned it.
 */
UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle,
                                         cudnnTensorDescriptor_t xDesc,
                                         cudnnFilterDescriptor_t wDesc,
                                         cudnnConvolutionDescriptor_t convDesc,
                                         cudnnTensorDescriptor_t yDesc,
                                         cudnnConvolutionFwdAlgo_t algo,
                                         size_t* sizeInBytes);

UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle,
                                              cudnnFilterDescriptor_t wDesc,
                                              cudnnTensorDescriptor_t dyDesc,
                                              cudnnConvolutionDescriptor_t convDesc,
                                              cudnnTensorDescriptor_t dxDesc,
                                              cudnnConvolutionBwdDataAlgo_t algo,
                                              size_t* sizeInBytes);

UCUDNN_API cudnnStatus_t
ucudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle,
                                                cudnnTensorDescriptor_t xDesc,
                                                cudnnTensorDescriptor_t dyDesc,
                                                cudnnConvolutionDescriptor_t convDesc,
                                                cudnnFilterDescriptor_t gradDesc,
                                                cudnnConvolutionBwdFilterAlgo_t algo,
                                                size_t* sizeInBytes);

/*
 * Each of the above for a layer: ucudnnConvolutionForwardLayer(handle, ..., y, layerId) and so on.
 * The layer id comes last; UCUDNN_LAYER_ANY makes it the function without one.
 */
#define UCUDNN_DECLARE_LAYER(NAME, PARAMETERS, ARGUMENTS) \
  UCUDNN_API cudnnStatus_t ucudnn##NAME##Layer(           \
      cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS, ucudnnLayerId_t layerId);
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DECLARE_LAYER)
#undef UCUDNN_DECLARE_LAYER

#ifdef __cplusplus
}
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_CONVOLUTION_H_ */
