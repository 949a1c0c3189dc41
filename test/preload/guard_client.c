/* Finds, asks for a size, and ends. */
#include <cudnn.h>

int main(void) {
  cudnnHandle_t handle = NULL;
  int failures = cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS;
  cudnnConvolutionFwdAlgoPerf_t results;
  int count = 0;
  size_t bytes = 0;
  failures += cudnnFindConvolutionForwardAlgorithm(
                  handle, NULL, NULL, NULL, NULL, 1, &count, &results) != CUDNN_STATUS_SUCCESS;
  failures += cudnnGetConvolutionForwardWorkspaceSize(
                  handle, NULL, NULL, NULL, NULL, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes) !=
              CUDNN_STATUS_SUCCESS;
  failures += cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS;
  return failures;
}
