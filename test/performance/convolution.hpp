// A convolution as a framework holds one, for the programs that time calls.
#pragma once

#include <cuda_runtime_api.h>
#include <ucudnn/ucudnn.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "comparison.hpp"

// The legacy convolution API is marked deprecated in cuDNN 9; it is what is measured.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn::test {

inline void check(int status, const char* call) {
  if (status == 0) return;
  std::cerr << call << " returned " << status << "\n";
  std::exit(1);
}
#define CHECK(call) check((call), #call)

/// A forward convolution that keeps the image's size, with everything that a client has for it.
class Convolution {
 public:
  /// `sets`: of x and y, one behind the other.
  Convolution(int batch,
              int channels,
              int filters,
              int image,
              int kernel,
              std::size_t limitBytes,
              int sets = 1) {
    CHECK(cudnnCreate(&handle_));
    CHECK(cudnnCreateTensorDescriptor(&x_));
    CHECK(cudnnCreateFilterDescriptor(&w_));
    CHECK(cudnnCreateConvolutionDescriptor(&convolution_));
    CHECK(cudnnCreateTensorDescriptor(&y_));
    CHECK(cudnnSetTensor4dDescriptor(
        x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch, channels, image, image));
    CHECK(cudnnSetTensor4dDescriptor(
        y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch, filters, image, image));
    CHECK(cudnnSetFilter4dDescriptor(
        w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, kernel, kernel));
    const int pad = kernel / 2;
    CHECK(cudnnSetConvolution2dDescriptor(
        convolution_, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(cudnnSetConvolutionMathType(convolution_, CUDNN_FMA_MATH));
    const auto bytes = [](int a, int b, int c, int d) {
      return sizeof(float) * static_cast<std::size_t>(a) * static_cast<std::size_t>(b) *
             static_cast<std::size_t>(c) * static_cast<std::size_t>(d);
    };
    const auto copies = static_cast<std::size_t>(sets);
    xBytes_ = bytes(batch, channels, image, image);
    yBytes_ = bytes(batch, filters, image, image);
    allocate(&xData_, copies * xBytes_);
    allocate(&wData_, bytes(filters, channels, kernel, kernel));
    allocate(&yData_, copies * yBytes_);
    workspaceBytes_ = limitBytes;
    allocate(&workspace_, limitBytes);
  }
  ~Convolution() {
    for (void* const data : {xData_, wData_, yData_, workspace_}) cudaFree(data);
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroy(handle_);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  void setMath(cudnnMathType_t math) const {
    CHECK(cudnnSetConvolutionMathType(convolution_, math));
  }

  void* y() const { return yData_; }
  const void* x() const { return xData_; }
  UcudnnHandle_t handle() const { return handle_; }
  cudnnHandle_t native() const { return handle_; }

  /// `Handle` decides: μ-cuDNN's overload or cuDNN's own function.
  template <typename Handle>
  void forward(Handle handle, cudnnConvolutionFwdAlgo_t algorithm, int set = 0) const {
    const auto index = static_cast<std::size_t>(set);
    forwardTo(handle,
              algorithm,
              static_cast<char*>(xData_) + index * xBytes_,
              static_cast<char*>(yData_) + index * yBytes_);
  }
  template <typename Handle>
  void forwardTo(Handle handle, cudnnConvolutionFwdAlgo_t algorithm, const void* x, void* y) const {
    const float one = 1, zero = 0;
    CHECK(cudnnConvolutionForward(handle,
                                  &one,
                                  x_,
                                  x,
                                  w_,
                                  wData_,
                                  convolution_,
                                  algorithm,
                                  workspace_,
                                  workspaceBytes_,
                                  &zero,
                                  y_,
                                  y));
  }
  template <typename Handle>
  std::size_t workspaceSize(Handle handle, cudnnConvolutionFwdAlgo_t algorithm) const {
    std::size_t bytes = 0;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(
        handle, x_, w_, convolution_, y_, algorithm, &bytes));
    return bytes;
  }
  template <typename Handle>
  cudnnConvolutionFwdAlgo_t heuristic(Handle handle) const {
    cudnnConvolutionFwdAlgoPerf_t first;
    int count = 0;
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(
        handle, x_, w_, convolution_, y_, 1, &count, &first));
    return first.algo;
  }
  template <typename Handle>
  cudnnConvolutionFwdAlgo_t find(Handle handle) const {
    cudnnConvolutionFwdAlgoPerf_t first;
    int count = 0;
    CHECK(
        cudnnFindConvolutionForwardAlgorithm(handle, x_, w_, convolution_, y_, 1, &count, &first));
    return first.algo;
  }

  std::vector<ucudnnMicroBatches_t> plan() const {
    ucudnnPlan_t plan{};
    plan.size = sizeof(plan);
    int count = 0;
    std::vector<ucudnnMicroBatches_t> steps(64);
    steps.front().size = sizeof(steps.front());
    CHECK(ucudnnGetConvolutionPlan(handle_,
                                   UCUDNN_FORWARD,
                                   x_,
                                   w_,
                                   convolution_,
                                   y_,
                                   workspaceBytes_,
                                   &plan,
                                   static_cast<int>(steps.size()),
                                   &count,
                                   steps.data()));
    steps.resize(static_cast<std::size_t>(count));
    return steps;
  }

 private:
  static void allocate(void** data, std::size_t bytes) {
    CHECK(cudaMalloc(data, bytes));
    CHECK(cudaMemset(*data, 0, bytes));
  }

  UcudnnHandle_t handle_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  void *xData_ = nullptr, *wData_ = nullptr, *yData_ = nullptr, *workspace_ = nullptr;
  std::size_t workspaceBytes_ = 0, xBytes_ = 0, yBytes_ = 0;
};

inline int microBatchesOf(const std::vector<ucudnnMicroBatches_t>& plan) {
  int count = 0;
  for (const ucudnnMicroBatches_t& step : plan) count += step.count;
  return count;
}

/// Empty: it is none of cuDNN's legacy algorithms.
inline std::optional<cudnnConvolutionFwdAlgo_t> algorithmOf(const ucudnnMicroBatches_t& step) {
  const char* const kNames[] = {"IMPLICIT_GEMM",
                                "IMPLICIT_PRECOMP_GEMM",
                                "GEMM",
                                "DIRECT",
                                "FFT",
                                "FFT_TILING",
                                "WINOGRAD",
                                "WINOGRAD_NONFUSED"};  // cudnnConvolutionFwdAlgo_t
  const std::string kernel = step.kernel;
  const auto name =
      std::find(std::begin(kNames), std::end(kNames), kernel.substr(0, kernel.find('/')));
  if (name == std::end(kNames)) return std::nullopt;
  return static_cast<cudnnConvolutionFwdAlgo_t>(name - std::begin(kNames));
}

}  // namespace ucudnn::test
