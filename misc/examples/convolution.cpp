// A client in C++: one convolution of ones through μ-cuDNN, within a limit of 1 MiB. Two lines
// differ from plain cuDNN: the header, and the type of the handle. Prints "9 as expected".
#include <ucudnn/ucudnn.h>

#include <cstdio>
#include <vector>

#include "check.h"

int main() {
  UcudnnHandle_t handle;  // was: cudnnHandle_t
  CHECK(cudnnCreate(&handle));
  CHECK(handle.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::all));  // not needed

  const int n = 4, height = 8, width = 8;
  cudnnTensorDescriptor_t tensor;
  cudnnFilterDescriptor_t kernel;
  cudnnConvolutionDescriptor_t convolution;
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnCreateFilterDescriptor(&kernel));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  const auto type = CUDNN_DATA_FLOAT;
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, type, n, 1, height, width));
  CHECK(cudnnSetFilter4dDescriptor(kernel, type, CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  const auto mode = CUDNN_CROSS_CORRELATION;
  CHECK(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, mode, type));

  const std::vector<float> ones(n * height * width, 1.0f);
  const std::size_t bytes = ones.size() * sizeof(float);
  void *x, *w, *y, *workspace = nullptr;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&w, 9 * sizeof(float)));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMemcpy(x, ones.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(w, ones.data(), 9 * sizeof(float), cudaMemcpyHostToDevice));

  // The first query measures; it names an algorithm, and behind it stands a plan.
  const auto limited = CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT;
  const std::size_t limit = std::size_t{1} << 20;
  cudnnConvolutionFwdAlgo_t algorithm;
  std::size_t size = 0;
  CHECK(cudnnGetConvolutionForwardAlgorithm(
      handle, tensor, kernel, convolution, tensor, limited, limit, &algorithm));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      handle, tensor, kernel, convolution, tensor, algorithm, &size));
  if (size > 0) CHECK(cudaMalloc(&workspace, size));

  // Runs the plan: one micro-batch after another.
  const float one = 1, zero = 0;
  // clang-format off
  CHECK(cudnnConvolutionForward(handle, &one, tensor, x, kernel, w, convolution, algorithm,
                                workspace, size, &zero, tensor, y));
  // clang-format on
  std::vector<float> result(ones.size());
  CHECK(cudaMemcpy(result.data(), y, bytes, cudaMemcpyDeviceToHost));
  const float inside = result[width + 1];  // a 3x3 filter of ones over ones
  std::printf("%g %s\n", inside, inside == 9 ? "as expected" : "is wrong");

  CHECK(cudnnDestroyConvolutionDescriptor(convolution));
  CHECK(cudnnDestroyFilterDescriptor(kernel));
  CHECK(cudnnDestroyTensorDescriptor(tensor));
  CHECK(cudnnDestroy(handle));
  for (void* memory : {workspace, y, w, x}) CHECK(cudaFree(memory));
  return inside == 9 ? 0 : 1;
}
