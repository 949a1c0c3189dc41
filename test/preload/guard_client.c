/* Finds, asks for a size, asks two plans for theirs and puts them into CUDA graphs, and ends. */
#include <stdio.h>

#include "cudnn_names.h"

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
  int plans[] = {1, 2}; /* as guard_ucudnn.c has them */
  for (int i = 0; i < 2; ++i) {
    failures += cudnnGetExecutionPlanWorkspaceSize(handle, &plans[i], &plans[i], &bytes) !=
                CUDNN_STATUS_SUCCESS;
    printf("%zu bytes\n", bytes);
  }
  failures += cudnnBackendPopulateCudaGraph(
                  handle, &plans[0], &plans[0], (cudaGraph_t)(void*)plans) != CUDNN_STATUS_SUCCESS;
  printf("%d\n",
         cudnnBackendPopulateCudaGraph(handle, &plans[1], &plans[1], (cudaGraph_t)(void*)plans));
  failures += cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS;
  return failures;
}
