// A program that knows nothing of μ-cuDNN, for `ucudnn run --report`: AlexNet's second convolution,
// 256 samples, ten times, in the workspace that cuDNN's answer asks for. Prints that size.
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <cstdio>
#include <initializer_list>

#include "check.h"

int main() {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&x));
  CHECK(cudnnCreateTensorDescriptor(&y));
  CHECK(cudnnCreateFilterDescriptor(&w));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  const auto type = CUDNN_DATA_FLOAT;
  CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, type, 256, 64, 27, 27));
  CHECK(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, type, 256, 192, 27, 27));
  CHECK(cudnnSetFilter4dDescriptor(w, type, CUDNN_TENSOR_NCHW, 192, 64, 5, 5));
  const auto mode = CUDNN_CROSS_CORRELATION;
  CHECK(cudnnSetConvolution2dDescriptor(convolution, 2, 2, 1, 1, 1, 1, mode, type));
  CHECK(cudnnSetConvolutionMathType(convolution, CUDNN_TENSOR_OP_MATH));

  cudnnConvolutionFwdAlgoPerf_t found;
  int count = 0;
  std::size_t size = 0;
  CHECK(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 1, &count, &found));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, found.algo, &size));
  std::printf("%.1f MiB of workspace\n", static_cast<double>(size) / (1 << 20));

  const std::size_t samples = 256 * 27 * 27 * sizeof(float);
  void *input, *filter, *output, *workspace = nullptr;
  CHECK(cudaMalloc(&input, 64 * samples));
  CHECK(cudaMalloc(&filter, 192 * 64 * 5 * 5 * sizeof(float)));
  CHECK(cudaMalloc(&output, 192 * samples));
  if (size > 0) CHECK(cudaMalloc(&workspace, size));
  const float one = 1, zero = 0;
  for (int step = 0; step < 10; ++step) {
    // clang-format off
    CHECK(cudnnConvolutionForward(handle, &one, x, input, w, filter, convolution, found.algo,
                                  workspace, size, &zero, y, output));
    // clang-format on
  }
  CHECK(cudaDeviceSynchronize());

  for (void* memory : {workspace, output, filter, input}) CHECK(cudaFree(memory));
  CHECK(cudnnDestroyConvolutionDescriptor(convolution));
  CHECK(cudnnDestroyFilterDescriptor(w));
  CHECK(cudnnDestroyTensorDescriptor(y));
  CHECK(cudnnDestroyTensorDescriptor(x));
  CHECK(cudnnDestroy(handle));
  return 0;
}
