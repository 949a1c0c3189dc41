/*
 * The functions that μ-cuDNN answers in cuDNN's place: X(name without its prefix, (parameters after
 * the handle), (the same as arguments)). The layer variants and the C++ overloads are both made
 * from this one list, so that neither can lack a function: a client's call to a missing overload
 * would compile, and silently bypass μ-cuDNN.
 */
#ifndef UCUDNN_FUNCTIONS_H_
#define UCUDNN_FUNCTIONS_H_

#define UCUDNN_UNPACK(...) __VA_ARGS__

/* Formatted by hand: clang-format would put each of the 300 words on a line of its own. */
/* clang-format off */
#define UCUDNN_FOR_EACH_FUNCTION(X)                                                                \
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
     z, biasDesc, bias, activationDesc, yDesc, y))                                                 \
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
    (srcDesc, diffDesc, convDesc, gradDesc, requestedAlgoCount, returnedAlgoCount, perfResults))   \
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
    (xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults))         \
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
     perfResults, workSpace, workSpaceSizeInBytes))                                                \
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
/* clang-format on */

#endif /* UCUDNN_FUNCTIONS_H_ */
