// A client that includes us first, and cudnn.h (again) afterwards.
#include <ucudnn/ucudnn.h>
//
#include <cudnn.h>

cudnnStatus_t workspaceSize(UcudnnHandle_t handle, size_t* bytes) {
  return cudnnGetConvolutionForwardWorkspaceSize(
      handle, nullptr, nullptr, nullptr, nullptr, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, bytes);
}
