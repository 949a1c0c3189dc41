// The one place that names cuDNN's functions: all of the library calls them through a table.
// Linked, it holds their addresses; a library that is loaded in front of cuDNN looks them up.
#pragma once

#include "cudnn_names.h"

/// Engines are used from here on: no older headers were tried.
#define UCUDNN_HAS_ENGINES (CUDNN_VERSION >= 90100)

namespace ucudnn {

/* Formatted by hand: a function a line. */
/* clang-format off */
#if UCUDNN_HAS_ENGINES
#define UCUDNN_FOR_EACH_ENGINE_FUNCTION(X) \
  X(backendCreateDescriptor, cudnnBackendCreateDescriptor)                            \
  X(backendDestroyDescriptor, cudnnBackendDestroyDescriptor)                          \
  X(backendExecute, cudnnBackendExecute)                                              \
  X(backendFinalize, cudnnBackendFinalize)                                            \
  X(backendGetAttribute, cudnnBackendGetAttribute)                                    \
  X(backendSetAttribute, cudnnBackendSetAttribute)
#else
#define UCUDNN_FOR_EACH_ENGINE_FUNCTION(X)
#endif

#define UCUDNN_FOR_EACH_CUDNN_FUNCTION(X) \
  UCUDNN_FOR_EACH_ENGINE_FUNCTION(X)                                                  \
  X(activationBackward, cudnnActivationBackward)                                      \
  X(activationForward, cudnnActivationForward)                                        \
  X(addTensor, cudnnAddTensor)                                                        \
  X(convolutionBackwardBias, cudnnConvolutionBackwardBias)                            \
  X(convolutionBackwardData, cudnnConvolutionBackwardData)                            \
  X(convolutionBackwardFilter, cudnnConvolutionBackwardFilter)                        \
  X(convolutionBiasActivationForward, cudnnConvolutionBiasActivationForward)          \
  X(convolutionForward, cudnnConvolutionForward)                                      \
  X(create, cudnnCreate)                                                              \
  X(createActivationDescriptor, cudnnCreateActivationDescriptor)                      \
  X(createConvolutionDescriptor, cudnnCreateConvolutionDescriptor)                    \
  X(createFilterDescriptor, cudnnCreateFilterDescriptor)                              \
  X(createOpTensorDescriptor, cudnnCreateOpTensorDescriptor)                          \
  X(createTensorDescriptor, cudnnCreateTensorDescriptor)                              \
  X(destroy, cudnnDestroy)                                                            \
  X(destroyActivationDescriptor, cudnnDestroyActivationDescriptor)                    \
  X(destroyConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)                  \
  X(destroyFilterDescriptor, cudnnDestroyFilterDescriptor)                            \
  X(destroyOpTensorDescriptor, cudnnDestroyOpTensorDescriptor)                        \
  X(destroyTensorDescriptor, cudnnDestroyTensorDescriptor)                            \
  X(findConvolutionBackwardDataAlgorithm, cudnnFindConvolutionBackwardDataAlgorithm)  \
  X(findConvolutionBackwardDataAlgorithmEx, cudnnFindConvolutionBackwardDataAlgorithmEx) \
  X(findConvolutionBackwardFilterAlgorithm, cudnnFindConvolutionBackwardFilterAlgorithm) \
  X(findConvolutionBackwardFilterAlgorithmEx, cudnnFindConvolutionBackwardFilterAlgorithmEx) \
  X(findConvolutionForwardAlgorithm, cudnnFindConvolutionForwardAlgorithm)            \
  X(findConvolutionForwardAlgorithmEx, cudnnFindConvolutionForwardAlgorithmEx)        \
  X(getActivationDescriptor, cudnnGetActivationDescriptor)                            \
  X(getConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataAlgorithm_v7) \
  X(getConvolutionBackwardDataWorkspaceSize, cudnnGetConvolutionBackwardDataWorkspaceSize) \
  X(getConvolutionBackwardFilterAlgorithm_v7, cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
  X(getConvolutionBackwardFilterWorkspaceSize, cudnnGetConvolutionBackwardFilterWorkspaceSize) \
  X(getConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardAlgorithm_v7)        \
  X(getConvolutionForwardWorkspaceSize, cudnnGetConvolutionForwardWorkspaceSize)      \
  X(getConvolutionGroupCount, cudnnGetConvolutionGroupCount)                          \
  X(getConvolutionMathType, cudnnGetConvolutionMathType)                              \
  X(getConvolutionNdDescriptor, cudnnGetConvolutionNdDescriptor)                      \
  X(getErrorString, cudnnGetErrorString)                                              \
  X(getFilterNdDescriptor, cudnnGetFilterNdDescriptor)                                \
  X(getStream, cudnnGetStream)                                                        \
  X(getTensorNdDescriptor, cudnnGetTensorNdDescriptor)                                \
  X(getVersion, cudnnGetVersion)                                                      \
  X(opTensor, cudnnOpTensor)                                                          \
  X(poolingBackward, cudnnPoolingBackward)                                            \
  X(poolingForward, cudnnPoolingForward)                                              \
  X(setActivationDescriptor, cudnnSetActivationDescriptor)                            \
  X(setConvolutionGroupCount, cudnnSetConvolutionGroupCount)                          \
  X(setConvolutionMathType, cudnnSetConvolutionMathType)                              \
  X(setConvolutionNdDescriptor, cudnnSetConvolutionNdDescriptor)                      \
  X(setFilterNdDescriptor, cudnnSetFilterNdDescriptor)                                \
  X(setOpTensorDescriptor, cudnnSetOpTensorDescriptor)                                \
  X(setStream, cudnnSetStream)                                                        \
  X(setTensor, cudnnSetTensor)                                                        \
  X(setTensor4dDescriptor, cudnnSetTensor4dDescriptor)                                \
  X(setTensorNdDescriptor, cudnnSetTensorNdDescriptor)                                \
  X(softmaxBackward, cudnnSoftmaxBackward)                                            \
  X(softmaxForward, cudnnSoftmaxForward)                                              \
  X(transformTensor, cudnnTransformTensor)
/* clang-format on */

// The legacy convolution API is marked deprecated in cuDNN 9; it is what μ-cuDNN stands in for.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/// Each member is cuDNN's function of that name, which is documented at
/// https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/overview.html
struct Cudnn {
#define UCUDNN_MEMBER(NAME, FUNCTION) decltype(&::FUNCTION) NAME;
  UCUDNN_FOR_EACH_CUDNN_FUNCTION(UCUDNN_MEMBER)
#undef UCUDNN_MEMBER
#if CUDNN_VERSION >= 90000
  decltype(&::cudnnGetLastErrorString) getLastErrorString;
#endif
};

#pragma GCC diagnostic pop

namespace detail {
extern Cudnn cudnnFunctions;
}

inline const Cudnn& cudnn() noexcept {
  return detail::cudnnFunctions;
}

/// From here on these are called. REQUIRES: no other thread is in the library.
void setCudnn(const Cudnn& functions) noexcept;

/// Those that `find` finds by their names, once for the process. False: one is missing, and nothing
/// has changed. Other threads may be in the library if what they call meanwhile is as good.
bool lookUpCudnn(void* (*find)(const char* name)) noexcept;

}  // namespace ucudnn
