// A fork that brought its own replacement for what cuDNN 8 removed (MXNet) switches ours off.
#define UCUDNN_NO_REMOVED_API
#include <ucudnn/ucudnn.h>

typedef enum {
  CUDNN_CONVOLUTION_FWD_NO_WORKSPACE,
  CUDNN_CONVOLUTION_FWD_PREFER_FASTEST,
  CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT
} cudnnConvolutionFwdPreference_t;

inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm(UcudnnHandle_t,
                                                         cudnnConvolutionFwdPreference_t) {
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t cudnnSetRNNDescriptor(UcudnnHandle_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ask(UcudnnHandle_t handle) {
  cudnnSetRNNDescriptor(handle);
  return cudnnGetConvolutionForwardAlgorithm(handle, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST);
}
