/* cuDNN's names for UcudnnHandle_t, inline, calling the C ABI. A raw handle still gets cuDNN. */
#ifndef UCUDNN_OVERLOADS_H_
#define UCUDNN_OVERLOADS_H_

#include <ucudnn/convolution.h>
#include <ucudnn/handle.h>
#include <ucudnn/removed.h>
#include <ucudnn/small_layers.h>

#ifdef __cplusplus

UCUDNN_QUIET_BEGIN

extern "C++" {

/** See ucudnnCreate. On an error `*handle` is null. */
inline cudnnStatus_t cudnnCreate(UcudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  cudnnHandle_t native = nullptr;
  const cudnnStatus_t status = ucudnnCreate(&native);
  *handle = native;
  return status;
}

/** See ucudnnDestroy. */
inline cudnnStatus_t cudnnDestroy(UcudnnHandle_t handle) {
  return ucudnnDestroy(handle);
}

/*
 * cudnnConvolutionForward(UcudnnHandle_t, ...) and the other functions. Each has an overload with
 * exactly cuDNN's parameters, so that typed function pointers work, and one with a layer id after
 * them.
 */
#define UCUDNN_OVERLOAD(NAME, PARAMETERS, ARGUMENTS)                                  \
  inline cudnnStatus_t cudnn##NAME(UcudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    return ucudnn##NAME(handle, UCUDNN_UNPACK ARGUMENTS);                             \
  }                                                                                   \
  inline cudnnStatus_t cudnn##NAME(                                                   \
      UcudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS, ucudnn::LayerId layerId) {     \
    return ucudnn##NAME##Layer(handle, UCUDNN_UNPACK ARGUMENTS, layerId);             \
  }
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_OVERLOAD)
UCUDNN_FOR_EACH_REMOVED_FUNCTION(UCUDNN_OVERLOAD)
#undef UCUDNN_OVERLOAD

/* cudnnAddTensor(UcudnnHandle_t, ...) and the others of small_layers.h's list. */
#define UCUDNN_OVERLOAD(NAME, PARAMETERS, ARGUMENTS)                                  \
  inline cudnnStatus_t cudnn##NAME(UcudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) { \
    return ucudnn##NAME(handle, UCUDNN_UNPACK ARGUMENTS);                             \
  }
UCUDNN_FOR_EACH_SMALL_LAYER(UCUDNN_OVERLOAD)
#undef UCUDNN_OVERLOAD

}  // extern "C++"

UCUDNN_QUIET_END

#endif

#endif /* UCUDNN_OVERLOADS_H_ */
