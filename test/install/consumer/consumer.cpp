// A stranger's program: one convolution of ones through μ-cuDNN, checked at one place. Prints "9 as
// expected".
#include <ucudnn/ucudnn.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                           \
  do {                                                        \
    const int status = static_cast<int>(call);                \
    if (status != 0) {                                        \
      std::fprintf(stderr, "%s: status %d\n", #call, status); \
      return 1;                                               \
    }                                                         \
  } while (0)

int main() {
  const int n = 4, c = 1, h = 8, w = 8, k = 1;
  const std::vector<float> ones(n * c * h * w, 1.0f);
  const std::size_t bytes = ones.size() * sizeof(float);
  void *x = nullptr, *filter = nullptr, *y = nullptr, *workspace = nullptr;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&filter, 9 * sizeof(float)));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMemcpy(x, ones.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(filter, ones.data(), 9 * sizeof(float), cudaMemcpyHostToDevice));

  UcudnnHandle_t handle;
  cudnnTensorDescriptor_t tensor;
  cudnnFilterDescriptor_t filterDescriptor;
  cudnnConvolutionDescriptor_t convolution;
  CHECK(cudnnCreate(&handle));
  CHECK(handle.setOptimizerBatchSizePolicy(ucudnn::BatchSizePolicy::all));
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  CHECK(cudnnCreateFilterDescriptor(&filterDescriptor));
  CHECK(cudnnSetFilter4dDescriptor(
      filterDescriptor, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, k, c, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  CHECK(cudnnSetConvolution2dDescriptor(
      convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));

  cudnnConvolutionFwdAlgo_t algo;
  std::size_t workspaceBytes = 0;
  CHECK(cudnnGetConvolutionForwardAlgorithm(handle,
                                            tensor,
                                            filterDescriptor,
                                            convolution,
                                            tensor,
                                            CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT,
                                            1 << 20,
                                            &algo));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      handle, tensor, filterDescriptor, convolution, tensor, algo, &workspaceBytes));
  if (workspaceBytes > 0) CHECK(cudaMalloc(&workspace, workspaceBytes));
  const float one = 1.0f, zero = 0.0f;
  CHECK(cudnnConvolutionForward(handle,
                                &one,
                                tensor,
                                x,
                                filterDescriptor,
                                filter,
                                convolution,
                                algo,
                                workspace,
                                workspaceBytes,
                                &zero,
                                tensor,
                                y));
  std::vector<float> result(ones.size());
  CHECK(cudaMemcpy(result.data(), y, bytes, cudaMemcpyDeviceToHost));

  CHECK(cudnnDestroyConvolutionDescriptor(convolution));
  CHECK(cudnnDestroyFilterDescriptor(filterDescriptor));
  CHECK(cudnnDestroyTensorDescriptor(tensor));
  CHECK(cudnnDestroy(handle));
  CHECK(cudaFree(workspace));
  CHECK(cudaFree(y));
  CHECK(cudaFree(filter));
  CHECK(cudaFree(x));
  const float inside = result[1 * w + 1];  // a 3x3 filter of ones over ones
  std::printf("%g %s\n", inside, inside == 9.0f ? "as expected" : "is wrong");
  return inside == 9.0f ? 0 : 1;
}
