/* A client in C, where macros stand for the overloads of C++. Prints "9 as expected". */
#include <ucudnn/ucudnn.h>

#include "check.h"

#define SAMPLES 4
#define WIDTH 8
#define NUMBERS (SAMPLES * WIDTH * WIDTH)

int main(void) {
  UcudnnHandle_t handle = NULL;
  CHECK(cudnnCreate(&handle));
  CHECK(ucudnnSetBatchSizePolicy(handle, UCUDNN_BATCH_SIZE_POLICY_ALL)); /* not needed */

  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorDescriptor_t tensor;
  cudnnFilterDescriptor_t kernel;
  cudnnConvolutionDescriptor_t convolution;
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnCreateFilterDescriptor(&kernel));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, type, SAMPLES, 1, WIDTH, WIDTH));
  CHECK(cudnnSetFilter4dDescriptor(kernel, type, CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(
      convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, type));

  float numbers[NUMBERS];
  for (int i = 0; i < NUMBERS; ++i) numbers[i] = 1;
  void *x = NULL, *w = NULL, *y = NULL, *workspace = NULL;
  CHECK(cudaMalloc(&x, sizeof numbers));
  CHECK(cudaMalloc(&w, 9 * sizeof(float)));
  CHECK(cudaMalloc(&y, sizeof numbers));
  CHECK(cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(w, numbers, 9 * sizeof(float), cudaMemcpyHostToDevice));

  cudnnConvolutionFwdAlgoPerf_t found;
  int count = 0;
  size_t size = 0;
  CHECK(cudnnGetConvolutionForwardAlgorithm_v7(
      handle, tensor, kernel, convolution, tensor, 1, &count, &found));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      handle, tensor, kernel, convolution, tensor, found.algo, &size));
  if (size > 0) CHECK(cudaMalloc(&workspace, size));

  const float one = 1, zero = 0;
  /* clang-format off */
  CHECK(cudnnConvolutionForward(handle, &one, tensor, x, kernel, w, convolution, found.algo,
                                workspace, size, &zero, tensor, y));
  /* clang-format on */
  CHECK(cudaMemcpy(numbers, y, sizeof numbers, cudaMemcpyDeviceToHost));
  const float inside = numbers[WIDTH + 1]; /* a 3x3 filter of ones over ones */
  printf("%g %s\n", inside, inside == 9 ? "as expected" : "is wrong");

  CHECK(cudnnDestroyConvolutionDescriptor(convolution));
  CHECK(cudnnDestroyFilterDescriptor(kernel));
  CHECK(cudnnDestroyTensorDescriptor(tensor));
  CHECK(cudnnDestroy(handle));
  CHECK(cudaFree(workspace));
  CHECK(cudaFree(y));
  CHECK(cudaFree(w));
  CHECK(cudaFree(x));
  return inside == 9 ? 0 : 1;
}
