/*
 * Functions that cuDNN 8 and 9 dropped from the API but older clients still call. A fork that
 * brought its own defines UCUDNN_NO_REMOVED_API before it includes us.
 */
#ifndef UCUDNN_REMOVED_H_
#define UCUDNN_REMOVED_H_

#include <ucudnn/functions.h>
#include <ucudnn/layer.h>
#include <ucudnn/preamble.h>

/* Formatted by hand, like functions.h. The overloads are made of it; empty if switched off. */
/* clang-format off */
#ifdef UCUDNN_NO_REMOVED_API
#define UCUDNN_FOR_EACH_REMOVED_FUNCTION(X)
#else
#define UCUDNN_FOR_EACH_REMOVED_FUNCTION(X)                                       \
  X(GetConvolutionForwardAlgorithm,                                               \
    (cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,                \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc,        \
     cudnnConvolutionFwdPreference_t preference, size_t memoryLimitInBytes,       \
     cudnnConvolutionFwdAlgo_t* algo),                                            \
    (xDesc, wDesc, convDesc, yDesc, preference, memoryLimitInBytes, algo))        \
  X(GetConvolutionBackwardDataAlgorithm,                                          \
    (cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,               \
     cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,       \
     cudnnConvolutionBwdDataPreference_t preference, size_t memoryLimitInBytes,   \
     cudnnConvolutionBwdDataAlgo_t* algo),                                        \
    (wDesc, dyDesc, convDesc, dxDesc, preference, memoryLimitInBytes, algo))      \
  X(GetConvolutionBackwardFilterAlgorithm,                                        \
    (cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,               \
     cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,       \
     cudnnConvolutionBwdFilterPreference_t preference, size_t memoryLimitInBytes, \
     cudnnConvolutionBwdFilterAlgo_t* algo),                                      \
    (xDesc, dyDesc, convDesc, dwDesc, preference, memoryLimitInBytes, algo))
#endif
/* clang-format on */

#ifndef UCUDNN_NO_REMOVED_API

UCUDNN_QUIET_BEGIN

#ifdef __cplusplus
extern "C" {
#endif

#if CUDNN_MAJOR >= 8

/* As in cuDNN 7: no workspace at all; the fastest, whatever it needs; the fastest in a limit. */

typedef enum {
  CUDNN_CONVOLUTION_FWD_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_FWD_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionFwdPreference_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_DATA_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_BWD_DATA_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionBwdDataPreference_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_FILTER_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_BWD_FILTER_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionBwdFilterPreference_t;

#endif /* CUDNN_MAJOR >= 8 */

/*
 * cuDNN 7's way to ask for one algorithm. `memoryLimitInBytes` counts only with
 * SPECIFY_WORKSPACE_LIMIT; NO_WORKSPACE means a plan of 0 bytes. The limit holds for the problem's
 * later calls on this handle until a query names another. CUDNN_STATUS_BAD_PARAM: `algo` is NULL,
 * or `preference` is none of the three. CUDNN_STATUS_NOT_SUPPORTED: no algorithm is within the
 * limit.
 * https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn_765/cudnn-api/index.html#cudnnGetConvolutionForwardAlgorithm
 */
UCUDNN_FOR_EACH_REMOVED_FUNCTION(UCUDNN_DECLARE_WITH_LAYER)

#ifdef __cplusplus
}
#endif

#if CUDNN_MAJOR >= 8

#ifdef __cplusplus
extern "C++" {
#define UCUDNN_INLINE inline
#else
#define UCUDNN_INLINE static inline
#endif

/** The limit that a preference means, in bytes. The three enums have the same values. Returns 0 if
 * it is none of them. */
UCUDNN_INLINE int ucudnnPreferredLimit(int preference, size_t memoryLimitInBytes, size_t* limit) {
  switch (preference) {
    case CUDNN_CONVOLUTION_FWD_NO_WORKSPACE:
      *limit = 0;
      return 1;
    case CUDNN_CONVOLUTION_FWD_PREFER_FASTEST:
      *limit = (size_t)-1;
      return 1;
    case CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT:
      *limit = memoryLimitInBytes;
      return 1;
    default:
      return 0;
  }
}

/*
 * The same for a raw cudnnHandle_t: plain cuDNN's best algorithm within the limit. cuDNN is asked
 * what each needs with the descriptor as it stands, because an entry's own `memory` may be that of
 * another math type. The array has twice the algorithm count, because cuDNN returns each with and
 * without tensor cores (cudnnGet...AlgorithmMaxCount).
 */
#define UCUDNN_DEFINE_PLAIN(OPERATION, TYPE, CONSTANT, DESCRIPTORS, ARGUMENTS)                   \
  UCUDNN_INLINE cudnnStatus_t cudnnGetConvolution##OPERATION##Algorithm(                         \
      cudnnHandle_t handle,                                                                      \
      UCUDNN_UNPACK DESCRIPTORS,                                                                 \
      cudnnConvolution##TYPE##Preference_t preference,                                           \
      size_t memoryLimitInBytes,                                                                 \
      cudnnConvolution##TYPE##Algo_t* algo) {                                                    \
    enum { kMost = 2 * CUDNN_CONVOLUTION_##CONSTANT##_ALGO_COUNT };                              \
    cudnnConvolution##TYPE##AlgoPerf_t found[kMost];                                             \
    cudnnStatus_t status;                                                                        \
    size_t limit = 0;                                                                            \
    int count = 0;                                                                               \
    int i;                                                                                       \
    if (algo == NULL || !ucudnnPreferredLimit((int)preference, memoryLimitInBytes, &limit)) {    \
      return CUDNN_STATUS_BAD_PARAM;                                                             \
    }                                                                                            \
    status = cudnnGetConvolution##OPERATION##Algorithm_v7(                                       \
        handle, UCUDNN_UNPACK ARGUMENTS, kMost, &count, found);                                  \
    for (i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i) {                              \
      size_t bytes = 0;                                                                          \
      if (found[i].status == CUDNN_STATUS_SUCCESS &&                                             \
          cudnnGetConvolution##OPERATION##WorkspaceSize(                                         \
              handle, UCUDNN_UNPACK ARGUMENTS, found[i].algo, &bytes) == CUDNN_STATUS_SUCCESS && \
          bytes <= limit) {                                                                      \
        *algo = found[i].algo;                                                                   \
        return CUDNN_STATUS_SUCCESS;                                                             \
      }                                                                                          \
    }                                                                                            \
    return status == CUDNN_STATUS_SUCCESS ? CUDNN_STATUS_NOT_SUPPORTED : status;                 \
  }
UCUDNN_DEFINE_PLAIN(Forward,
                    Fwd,
                    FWD,
                    (cudnnTensorDescriptor_t xDesc,
                     cudnnFilterDescriptor_t wDesc,
                     cudnnConvolutionDescriptor_t convDesc,
                     cudnnTensorDescriptor_t yDesc),
                    (xDesc, wDesc, convDesc, yDesc))
UCUDNN_DEFINE_PLAIN(BackwardData,
                    BwdData,
                    BWD_DATA,
                    (cudnnFilterDescriptor_t wDesc,
                     cudnnTensorDescriptor_t dyDesc,
                     cudnnConvolutionDescriptor_t convDesc,
                     cudnnTensorDescriptor_t dxDesc),
                    (wDesc, dyDesc, convDesc, dxDesc))
UCUDNN_DEFINE_PLAIN(BackwardFilter,
                    BwdFilter,
                    BWD_FILTER,
                    (cudnnTensorDescriptor_t xDesc,
                     cudnnTensorDescriptor_t dyDesc,
                     cudnnConvolutionDescriptor_t convDesc,
                     cudnnFilterDescriptor_t dwDesc),
                    (xDesc, dyDesc, convDesc, dwDesc))
#undef UCUDNN_DEFINE_PLAIN

/** Named by clients in code that cuDNN 8 and later never run. Always CUDNN_STATUS_NOT_SUPPORTED. */
UCUDNN_INLINE cudnnStatus_t cudnnSetRNNDescriptor(cudnnHandle_t handle,
                                                  cudnnRNNDescriptor_t rnnDesc,
                                                  int hiddenSize,
                                                  int numLayers,
                                                  cudnnDropoutDescriptor_t dropoutDesc,
                                                  cudnnRNNInputMode_t inputMode,
                                                  cudnnDirectionMode_t direction,
                                                  cudnnRNNMode_t mode,
                                                  cudnnRNNAlgo_t algo,
                                                  cudnnDataType_t mathPrec) {
  (void)handle, (void)rnnDesc, (void)hiddenSize, (void)numLayers, (void)dropoutDesc;
  (void)inputMode, (void)direction, (void)mode, (void)algo, (void)mathPrec;
  return CUDNN_STATUS_NOT_SUPPORTED;
}

#undef UCUDNN_INLINE

#ifdef __cplusplus
}  // extern "C++"
#endif

#endif /* CUDNN_MAJOR >= 8 */

UCUDNN_QUIET_END

#endif /* UCUDNN_NO_REMOVED_API */

#endif /* UCUDNN_REMOVED_H_ */
