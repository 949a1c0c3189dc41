/*
 * The functions that μ-cuDNN answers in cuDNN's place, for code that declares, defines or forwards
 * them: X(name without its prefix, (parameters after the handle), (the same as arguments)). The C
 * functions (convolution.h), their variants with a layer id and the C++ overloads are all made from
 * this one list, so that none can lack a function. A client's call to a missing overload would
 * compile, and silently bypass μ-cuDNN.
 */
#ifndef UCUDNN_FUNCTIONS_H_
#define UCUDNN_FUNCTIONS_H_

#define UCUDNN_UNPACK(...) __VA_ARGS__

/* The function, and its variant for a layer, whose id comes last. */
#define UCUDNN_DECLARE_WITH_LAYER(NAME, PARAMETERS, ARGUMENTS)                           \
  UCUDNN_API cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS); \
  UCUDNN_API cudnnStatus_t ucudnn##NAME##Layer(                                          \
      cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS, ucudnnLayerId_t layerId);

/* Formatted by hand: clang-format would put each of the 300 words on a line of its own. */
/* clang-format off */

/*
 * Computes y = alpha * convolution(x, w) + beta * y, or dx or dw in the same way. Tensors and
 * parameters are those of cuDNN's function.
 *
 * The call runs as planned for `workSpaceSizeInBytes`, on the handle's stream, without
 * synchronization or allocation. `algo` need not come from a query, and the plan may run other
 * kernels. `workSpace` may be NULL with 0 bytes. alpha and beta are `float`, for double tensors
 * `double`. dw is summed over the micro-batches. A call that can't be planned or split runs through
 * cuDNN with these very arguments. Returns what cuDNN returns.
 *
 * Any workspace is enough. If there is no plan and `algo` does not fit the workspace, a substitute
 * runs: the best algorithm that fits, by cuDNN's heuristics. A deterministic `algo` has a
 * deterministic substitute; if none fits, another runs, and the log says so. With
 * UCUDNN_DETERMINISTIC no other runs, and the call returns cuDNN's error.
 *
 * A plan is checked before its first use on a handle. If cuDNN still refuses a micro-batch, and the
 * output still allows it, the result is computed in another way. The log says so, and the handle
 * does not use the plan again.
 * https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-cnn-library.html
 */
#define UCUDNN_FOR_EACH_CONVOLUTION(X)                                                             \
  X(ConvolutionForward,                                                                            \
    (const void* alpha, cudnnTensorDescriptor_t xDesc, const void* x,                              \
     cudnnFilterDescriptor_t wDesc, const void* w, cudnnConvolutionDescriptor_t convDesc,          \
     cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes,                 \
     const void* beta, cudnnTensorDescriptor_t yDesc, void* y),                                    \
    (alpha, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes, beta, yDesc, y))  \
  X(ConvolutionBackwardData,                                                                       \
    (const void* alpha, cudnnFilterDescriptor_t wDesc, const void* w,                              \
     cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnConvolutionDescriptor_t convDesc,        \
     cudnnConvolutionBwdDataAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes,             \
     const void* beta, cudnnTensorDescriptor_t dxDesc, void* dx),                                  \
    (alpha, wDesc, w, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta, dxDesc,   \
     dx))                                                                                          \
  X(ConvolutionBackwardFilter,                                                                     \
    (const void* alpha, cudnnTensorDescriptor_t xDesc, const void* x,                              \
     cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnConvolutionDescriptor_t convDesc,        \
     cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes,           \
     const void* beta, cudnnFilterDescriptor_t dwDesc, void* dw),                                  \
    (alpha, xDesc, x, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta, dwDesc,   \
     dw))                                                                                          \
  X(ConvolutionBiasActivationForward,                                                              \
    (const void* alpha1, cudnnTensorDescriptor_t xDesc, const void* x,                             \
     cudnnFilterDescriptor_t wDesc, const void* w, cudnnConvolutionDescriptor_t convDesc,          \
     cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes,                 \
     const void* alpha2, cudnnTensorDescriptor_t zDesc, const void* z,                             \
     cudnnTensorDescriptor_t biasDesc, const void* bias,                                           \
     cudnnActivationDescriptor_t activationDesc, cudnnTensorDescriptor_t yDesc, void* y),          \
    (alpha1, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes, alpha2, zDesc,   \
     z, biasDesc, bias, activationDesc, yDesc, y))

/*
 * The algorithms to use if the client names no limit, best first: μ-cuDNN's choice, then cuDNN's
 * own. `memory` of the first is what its plan needs, in bytes, a multiple of 512; `time` is in ms.
 * At most `requestedAlgoCount` entries are written; `*returnedAlgoCount` says how many. Measures
 * nothing (but see ucudnnSetBenchmarkShare): a problem that has not been measured yet gets the
 * answer of cuDNN's heuristics, with `time` -1 and the `memory` that each algorithm needs.
 * CUDNN_STATUS_BAD_PARAM: as cuDNN's function.
 */
#define UCUDNN_FOR_EACH_ALGORITHM_QUERY(X)                                                         \
  X(GetConvolutionForwardAlgorithm_v7,                                                             \
    (cudnnTensorDescriptor_t srcDesc, cudnnFilterDescriptor_t filterDesc,                          \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t destDesc,                      \
     int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults),  \
    (srcDesc, filterDesc, convDesc, destDesc, requestedAlgoCount, returnedAlgoCount, perfResults)) \
  X(GetConvolutionBackwardDataAlgorithm_v7,                                                        \
    (cudnnFilterDescriptor_t filterDesc, cudnnTensorDescriptor_t diffDesc,                         \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t gradDesc,                      \
     int requestedAlgoCount, int* returnedAlgoCount,                                               \
     cudnnConvolutionBwdDataAlgoPerf_t* perfResults),                                              \
    (filterDesc, diffDesc, convDesc, gradDesc, requestedAlgoCount, returnedAlgoCount,              \
     perfResults))                                                                                 \
  X(GetConvolutionBackwardFilterAlgorithm_v7,                                                      \
    (cudnnTensorDescriptor_t srcDesc, cudnnTensorDescriptor_t diffDesc,                            \
     cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t gradDesc,                      \
     int requestedAlgoCount, int* returnedAlgoCount,                                               \
     cudnnConvolutionBwdFilterAlgoPerf_t* perfResults),                                            \
    (srcDesc, diffDesc, convDesc, gradDesc, requestedAlgoCount, returnedAlgoCount, perfResults))

/*
 * The same, but measured now. The limit is the device's free memory, or the default limit if one
 * has been set. ucudnnSetBenchmarkMemory bounds the scratch memory.
 */
#define UCUDNN_FOR_EACH_FIND(X)                                                                    \
  X(FindConvolutionForwardAlgorithm,                                                               \
    (cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,                                 \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc,                         \
     int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults),  \
    (xDesc, wDesc, convDesc, yDesc, requestedAlgoCount, returnedAlgoCount, perfResults))           \
  X(FindConvolutionBackwardDataAlgorithm,                                                          \
    (cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,                                \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,                        \
     int requestedAlgoCount, int* returnedAlgoCount,                                               \
     cudnnConvolutionBwdDataAlgoPerf_t* perfResults),                                              \
    (wDesc, dyDesc, convDesc, dxDesc, requestedAlgoCount, returnedAlgoCount, perfResults))         \
  X(FindConvolutionBackwardFilterAlgorithm,                                                        \
    (cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,                                \
     cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,                        \
     int requestedAlgoCount, int* returnedAlgoCount,                                               \
     cudnnConvolutionBwdFilterAlgoPerf_t* perfResults),                                            \
    (xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults))

/*
 * The same within `workSpaceSizeInBytes`, measured on the caller's buffers. Only the output and the
 * workspace are overwritten, and no other memory is taken. The limit holds for the problem's later
 * calls on this handle until a query names another.
 */
#define UCUDNN_FOR_EACH_FIND_EX(X)                                                                 \
  X(FindConvolutionForwardAlgorithmEx,                                                             \
    (cudnnTensorDescriptor_t xDesc, const void* x, cudnnFilterDescriptor_t wDesc, const void* w,   \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc, void* y,                \
     int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults,   \
     void* workSpace, size_t workSpaceSizeInBytes),                                                \
    (xDesc, x, wDesc, w, convDesc, yDesc, y, requestedAlgoCount, returnedAlgoCount, perfResults,   \
     workSpace, workSpaceSizeInBytes))                                                             \
  X(FindConvolutionBackwardDataAlgorithmEx,                                                        \
    (cudnnFilterDescriptor_t wDesc, const void* w, cudnnTensorDescriptor_t dyDesc,                 \
     const void* dy, cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,        \
     void* dx, int requestedAlgoCount, int* returnedAlgoCount,                                     \
     cudnnConvolutionBwdDataAlgoPerf_t* perfResults, void* workSpace,                              \
     size_t workSpaceSizeInBytes),                                                                 \
    (wDesc, w, dyDesc, dy, convDesc, dxDesc, dx, requestedAlgoCount, returnedAlgoCount,            \
     perfResults, workSpace, workSpaceSizeInBytes))                                                \
  X(FindConvolutionBackwardFilterAlgorithmEx,                                                      \
    (cudnnTensorDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t dyDesc,                 \
     const void* y, cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,         \
     void* dw, int requestedAlgoCount, int* returnedAlgoCount,                                     \
     cudnnConvolutionBwdFilterAlgoPerf_t* perfResults, void* workSpace,                            \
     size_t workSpaceSizeInBytes),                                                                 \
    (xDesc, x, dyDesc, y, convDesc, dwDesc, dw, requestedAlgoCount, returnedAlgoCount,             \
     perfResults, workSpace, workSpaceSizeInBytes))

/*
 * The workspace in bytes that the problem's plan needs, a multiple of 512. The plan's limit is the
 * latest that a query on this handle named for the problem, else the default. If the problem is not
 * measured yet: what cuDNN needs for `algo`, which need not come from a query.
 */
#define UCUDNN_FOR_EACH_WORKSPACE_SIZE(X)                                                          \
  X(GetConvolutionForwardWorkspaceSize,                                                            \
    (cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,                                 \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc,                         \
     cudnnConvolutionFwdAlgo_t algo, size_t* sizeInBytes),                                         \
    (xDesc, wDesc, convDesc, yDesc, algo, sizeInBytes))                                            \
  X(GetConvolutionBackwardDataWorkspaceSize,                                                       \
    (cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,                                \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,                        \
     cudnnConvolutionBwdDataAlgo_t algo, size_t* sizeInBytes),                                     \
    (wDesc, dyDesc, convDesc, dxDesc, algo, sizeInBytes))                                          \
  X(GetConvolutionBackwardFilterWorkspaceSize,                                                     \
    (cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,                                \
     cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t gradDesc,                      \
     cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes),                                   \
    (xDesc, dyDesc, convDesc, gradDesc, algo, sizeInBytes))

#define UCUDNN_FOR_EACH_FUNCTION(X)                                                                \
  UCUDNN_FOR_EACH_CONVOLUTION(X)                                                                   \
  UCUDNN_FOR_EACH_ALGORITHM_QUERY(X)                                                               \
  UCUDNN_FOR_EACH_FIND(X)                                                                          \
  UCUDNN_FOR_EACH_FIND_EX(X)                                                                       \
  UCUDNN_FOR_EACH_WORKSPACE_SIZE(X)
/* clang-format on */

#endif /* UCUDNN_FUNCTIONS_H_ */
