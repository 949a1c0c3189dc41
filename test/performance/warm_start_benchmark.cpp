// What planning takes in a process that finds everything in the database, and what of it is cuDNN's
// time. Run twice, on a GPU or under misc/with-simulator:
//   UCUDNN_DATABASE=FILE ucudnn_warm_start_benchmark [rest in ms before each query]
// The convolutions are AlexNet's, N=256, TF32, each queried within 64 MiB. Another one goes
// before them, through cuDNN and then through us: with it cuDNN loads its libraries, as it does at
// the first query of any program. A rest, as between the rows of `ucudnn bench`, leaves the caches
// to others.
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <thread>
#include <type_traits>

#include "convolution.hpp"

namespace ucudnn::test {
namespace {

using Clock = std::chrono::steady_clock;

double msSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Calls {
  int count = 0;
  double ms = 0, longestMs = 0;
};
std::map<std::string, Calls> calls;
std::map<cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t> types;
bool isPlanning = false;

/// Passes a call on to cuDNN, and notes what it takes.
template <typename... Arguments>
cudnnStatus_t ask(const std::string& what, const char* function, Arguments... arguments) {
  using Function = cudnnStatus_t (*)(Arguments...);
  const auto own = reinterpret_cast<Function>(dlsym(RTLD_NEXT, function));
  const auto begin = Clock::now();
  const cudnnStatus_t status = own(arguments...);
  const double ms = msSince(begin);
  if (!isPlanning) return status;
  Calls& noted = calls[what];
  ++noted.count;
  noted.ms += ms;
  noted.longestMs = std::max(noted.longestMs, ms);
  return status;
}

const char* whatIsFinalized(cudnnBackendDescriptor_t descriptor) {
  switch (types[descriptor]) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return "finalize: graphs";
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return "finalize: engines";
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return "finalize: configurations";
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return "finalize: execution plans";
    default:
      return "finalize: others";
  }
}

/// A layer of AlexNet: square images and filters.
struct Layer {
  int channels, filters, image, filter, pad, stride;
};
constexpr Layer kLayers[] = {{3, 64, 224, 11, 2, 4},
                             {64, 192, 27, 5, 2, 1},
                             {192, 384, 13, 3, 1, 1},
                             {384, 384, 13, 3, 1, 1},
                             {384, 256, 13, 3, 1, 1}};
constexpr Layer kOther = {16, 32, 28, 3, 1, 1};
constexpr int kBatch = 256;
constexpr std::size_t kLimitBytes = std::size_t{64} << 20;

/// A layer's query for the operation; the descriptors and the memory live until the process ends.
/// On a cudnnHandle_t it is cuDNN's own, and its heuristics' besides.
template <typename Handle>
double planningMs(const Handle& handle, const Layer& layer, int operation) {
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  CHECK(cudnnCreateTensorDescriptor(&x));
  CHECK(cudnnCreateTensorDescriptor(&y));
  CHECK(cudnnCreateFilterDescriptor(&w));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  const auto& [channels, filters, image, filter, pad, stride] = layer;
  const int out = (image + 2 * pad - filter) / stride + 1;
  const auto setTensor = [](cudnnTensorDescriptor_t tensor, int tensorChannels, int size) {
    CHECK(cudnnSetTensor4dDescriptor(
        tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, tensorChannels, size, size));
    void* data = nullptr;
    std::size_t bytes = 0;
    CHECK(cudnnGetTensorSizeInBytes(tensor, &bytes));
    CHECK(cudaMalloc(&data, bytes));
    return data;
  };
  void* const xData = setTensor(x, channels, image);
  void* const yData = setTensor(y, filters, out);
  CHECK(cudnnSetFilter4dDescriptor(
      w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, filter, filter));
  CHECK(cudnnSetConvolution2dDescriptor(
      convolution, pad, pad, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  void *wData = nullptr, *workspace = nullptr;
  CHECK(cudaMalloc(&wData,
                   sizeof(float) * static_cast<std::size_t>(filters * channels * filter * filter)));
  CHECK(cudaMalloc(&workspace, kLimitBytes));
  int count = 0;
  cudnnConvolutionFwdAlgoPerf_t forward;
  cudnnConvolutionBwdDataAlgoPerf_t data;
  cudnnConvolutionBwdFilterAlgoPerf_t gradient;
  isPlanning = true;
  const auto begin = Clock::now();
  if constexpr (std::is_same_v<Handle, cudnnHandle_t>) {
    if (operation == 0)
      CHECK(cudnnGetConvolutionForwardAlgorithm_v7(
          handle, x, w, convolution, y, 1, &count, &forward));
    else if (operation == 1)
      CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(
          handle, w, y, convolution, x, 1, &count, &data));
    else
      CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
          handle, x, y, convolution, w, 1, &count, &gradient));
  }
  if (operation == 0)
    CHECK(cudnnFindConvolutionForwardAlgorithmEx(handle,
                                                 x,
                                                 xData,
                                                 w,
                                                 wData,
                                                 convolution,
                                                 y,
                                                 yData,
                                                 1,
                                                 &count,
                                                 &forward,
                                                 workspace,
                                                 kLimitBytes));
  else if (operation == 1)
    CHECK(cudnnFindConvolutionBackwardDataAlgorithmEx(handle,
                                                      w,
                                                      wData,
                                                      y,
                                                      yData,
                                                      convolution,
                                                      x,
                                                      xData,
                                                      1,
                                                      &count,
                                                      &data,
                                                      workspace,
                                                      kLimitBytes));
  else
    CHECK(cudnnFindConvolutionBackwardFilterAlgorithmEx(handle,
                                                        x,
                                                        xData,
                                                        y,
                                                        yData,
                                                        convolution,
                                                        w,
                                                        wData,
                                                        1,
                                                        &count,
                                                        &gradient,
                                                        workspace,
                                                        kLimitBytes));
  const double ms = msSince(begin);
  isPlanning = false;
  for (void* const memory : {xData, wData, yData, workspace}) CHECK(cudaFree(memory));
  return ms;
}

void planAll(int restMs) {
  setArithmetic(Arithmetic::kOff);  // on the simulator
  UcudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  double totalMs = 0, firstMs = 0, otherMs = 0, cudnnMs = 0;
  cudnnHandle_t plain;
  CHECK(cudnnCreate(&plain));
  for (int operation = 0; operation < 3; ++operation) {
    cudnnMs += planningMs(plain, kOther, operation);
    otherMs += planningMs(handle, kOther, operation);
  }
  calls.clear();
  for (const Layer& layer : kLayers)
    for (int operation = 0; operation < 3; ++operation) {
      std::this_thread::sleep_for(std::chrono::milliseconds(restMs));
      totalMs += planningMs(handle, layer, operation);
      if (firstMs == 0) firstMs = totalMs;
    }
  ucudnnStatistics_t statistics;
  CHECK(ucudnnGetStatistics(&statistics));
  std::printf(
      "planning %.3f ms, the first of 15 queries %.3f; another convolution before them %.3f, by "
      "cuDNN itself %.3f; %lld kernels measured, %lld loaded%s\n",
      totalMs,
      firstMs,
      otherMs,
      cudnnMs,
      statistics.kernelsMeasured,
      statistics.kernelsLoaded,
      onSimulator() ? " (simulated)" : "");
  std::printf("%-48s %6s %9s %9s\n", "of it cuDNN's", "calls", "ms", "longest");
  for (const auto& [what, noted] : calls)
    std::printf("%-48s %6d %9.3f %9.3f\n", what.c_str(), noted.count, noted.ms, noted.longestMs);
}

}  // namespace
}  // namespace ucudnn::test

using ucudnn::test::ask;

// Before cuDNN's own in the loader's order: ucudnn's calls come here.
extern "C" {

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, x, w, convolution, y, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t w,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t x,
    cudnnConvolutionBwdDataAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, w, y, convolution, x, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionBwdFilterAlgo_t algorithm,
    size_t* bytes) {
  return ask(__func__, __func__, handle, x, y, convolution, w, algorithm, bytes);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y,
    int most,
    int* count,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, x, w, convolution, y, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnFilterDescriptor_t w,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t x,
    int most,
    int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, w, y, convolution, x, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle,
    cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t w,
    int most,
    int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return ask(__func__, __func__, handle, x, y, convolution, w, most, count, results);
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  const cudnnStatus_t status = ask(__func__, __func__, type, made);
  if (status == CUDNN_STATUS_SUCCESS) ucudnn::test::types[*made] = type;
  return status;
}

__attribute__((visibility("default"))) cudnnStatus_t cudnnBackendFinalize(
    cudnnBackendDescriptor_t descriptor) {
  return ask(ucudnn::test::whatIsFinalized(descriptor), __func__, descriptor);
}
}

int main(int argc, char** argv) {
  ucudnn::test::planAll(argc > 1 ? std::atoi(argv[1]) : 0);
  return 0;
}
