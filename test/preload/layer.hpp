// One convolution of a plain cuDNN program.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace plain {

/// The most that any call was given.
inline std::atomic<std::size_t> mostWorkspace{0};

inline void check(int status, const char* call) {
  if (status != 0) throw std::runtime_error(std::string(call) + ": " + std::to_string(status));
}
#define CHECK(CALL) check(CALL, #CALL)

class Memory {
 public:
  explicit Memory(std::size_t bytes) {
    if (bytes > 0) CHECK(cudaMalloc(&memory_, bytes));
  }
  ~Memory() { cudaFree(memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

// FFT suits it, and without much workspace everything else is slower on the simulator, even FFT in
// micro-batches.
constexpr int kBatch = 4, kChannels = 384, kFilters = 2, kSize = 12, kFilter = 5, kPad = 2;
constexpr std::size_t kImage = std::size_t{kSize} * kSize;
constexpr std::size_t kXCount = kImage * kBatch * kChannels, kYCount = kImage * kBatch * kFilters;
constexpr std::size_t kWCount = std::size_t{kFilter} * kFilter * kChannels * kFilters;
constexpr std::size_t kWorkspace = std::size_t{2} << 20;

inline void fill(const Memory& memory, std::size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) / 8388608.0F - 1;
  }
  CHECK(cudaMemcpy(memory.get(), values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
}

/// One convolution, its gradients, and the fused one.
class Layer {
 public:
  Layer() {
    CHECK(cudnnCreateTensorDescriptor(&x_));
    CHECK(cudnnCreateTensorDescriptor(&y_));
    CHECK(cudnnCreateTensorDescriptor(&bias_));
    CHECK(cudnnCreateFilterDescriptor(&w_));
    CHECK(cudnnCreateConvolutionDescriptor(&c_));
    CHECK(cudnnCreateActivationDescriptor(&relu_));
    const auto format = CUDNN_TENSOR_NCHW;
    const auto type = CUDNN_DATA_FLOAT;
    CHECK(cudnnSetTensor4dDescriptor(x_, format, type, kBatch, kChannels, kSize, kSize));
    CHECK(cudnnSetTensor4dDescriptor(y_, format, type, kBatch, kFilters, kSize, kSize));
    CHECK(cudnnSetTensor4dDescriptor(bias_, format, type, 1, kFilters, 1, 1));
    CHECK(cudnnSetFilter4dDescriptor(w_, type, format, kFilters, kChannels, kFilter, kFilter));
    CHECK(cudnnSetConvolution2dDescriptor(
        c_, kPad, kPad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(cudnnSetConvolutionMathType(c_, CUDNN_FMA_MATH));
    CHECK(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
    fill(x, kXCount, 1);
    fill(w, kWCount, 2);
    fill(y, kYCount, 3);
    fill(bias, kFilters, 4);
  }
  ~Layer() {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyTensorDescriptor(bias_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(c_);
    cudnnDestroyActivationDescriptor(relu_);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  void query(cudnnHandle_t handle, std::vector<float>& results) {
    int count = 0;
    cudnnConvolutionFwdAlgoPerf_t f[8];
    cudnnConvolutionBwdDataAlgoPerf_t d[8];
    cudnnConvolutionBwdFilterAlgoPerf_t g[8];
    std::size_t bytes = 0;
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(handle, x_, w_, c_, y_, 8, &count, f));
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x_, w_, c_, y_, f[0].algo, &bytes));
    forward(handle, f[0].algo, bytes, results);
    CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_, y_, c_, x_, 8, &count, d));
    CHECK(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w_, y_, c_, x_, d[0].algo, &bytes));
    backwardData(handle, d[0].algo, bytes, results);
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_, y_, c_, w_, 8, &count, g));
    CHECK(
        cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x_, y_, c_, w_, g[0].algo, &bytes));
    backwardFilter(handle, g[0].algo, bytes, results);
    fused(handle, f[0].algo, f[0].memory, results);
  }

  void find(cudnnHandle_t handle, std::vector<float>& results) {
    int count = 0;
    cudnnConvolutionFwdAlgoPerf_t f[8];
    cudnnConvolutionBwdDataAlgoPerf_t d[8];
    cudnnConvolutionBwdFilterAlgoPerf_t g[8];
    const Memory space(kWorkspace);
    const Memory x2(kXCount * sizeof(float)), w2(kWCount * sizeof(float));
    const Memory y2(kYCount * sizeof(float));
    void* const s = space.get();
    CHECK(cudnnFindConvolutionForwardAlgorithmEx(
        handle, x_, x.get(), w_, w.get(), c_, y_, y2.get(), 8, &count, f, s, kWorkspace));
    forward(handle, f[0].algo, f[0].memory, results);
    CHECK(cudnnFindConvolutionBackwardDataAlgorithmEx(
        handle, w_, w.get(), y_, y.get(), c_, x_, x2.get(), 8, &count, d, s, kWorkspace));
    backwardData(handle, d[0].algo, d[0].memory, results);
    CHECK(cudnnFindConvolutionBackwardFilterAlgorithmEx(
        handle, x_, x.get(), y_, y.get(), c_, w_, w2.get(), 8, &count, g, s, kWorkspace));
    backwardFilter(handle, g[0].algo, g[0].memory, results);
    CHECK(cudnnFindConvolutionForwardAlgorithm(handle, x_, w_, c_, y_, 8, &count, f));
    fused(handle, f[0].algo, f[0].memory, results);
  }

  void fixed(cudnnHandle_t handle, std::vector<float>& results) {
    forward(handle, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, kWorkspace, results);
    backwardData(handle, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, kWorkspace, results);
    backwardFilter(handle, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, kWorkspace, results);
    fused(handle, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, kWorkspace, results);
  }

 private:
  /// Three times, so that a call repeats.
  template <typename Call>
  static void run(std::size_t bytes,
                  const Memory& output,
                  std::size_t count,
                  std::vector<float>& results,
                  Call call) {
    for (std::size_t most = mostWorkspace; bytes > most;)
      if (mostWorkspace.compare_exchange_weak(most, bytes)) break;
    const Memory space(bytes);
    for (int i = 0; i < 3; ++i) {
      CHECK(cudaMemset(output.get(), 0xFF, count * sizeof(float)));
      call(space.get());
      CHECK(cudaDeviceSynchronize());
    }
    const std::size_t begin = results.size();
    results.resize(begin + count);
    CHECK(cudaMemcpy(&results[begin], output.get(), count * sizeof(float), cudaMemcpyDeviceToHost));
  }

  void forward(cudnnHandle_t handle,
               cudnnConvolutionFwdAlgo_t algo,
               std::size_t bytes,
               std::vector<float>& results) {
    const Memory y2(kYCount * sizeof(float));
    run(bytes, y2, kYCount, results, [&](void* space) {
      CHECK(cudnnConvolutionForward(
          handle, &kOne, x_, x.get(), w_, w.get(), c_, algo, space, bytes, &kZero, y_, y2.get()));
    });
  }
  void backwardData(cudnnHandle_t handle,
                    cudnnConvolutionBwdDataAlgo_t algo,
                    std::size_t bytes,
                    std::vector<float>& results) {
    const Memory x2(kXCount * sizeof(float));
    run(bytes, x2, kXCount, results, [&](void* space) {
      CHECK(cudnnConvolutionBackwardData(
          handle, &kOne, w_, w.get(), y_, y.get(), c_, algo, space, bytes, &kZero, x_, x2.get()));
    });
  }
  void backwardFilter(cudnnHandle_t handle,
                      cudnnConvolutionBwdFilterAlgo_t algo,
                      std::size_t bytes,
                      std::vector<float>& results) {
    const Memory w2(kWCount * sizeof(float));
    run(bytes, w2, kWCount, results, [&](void* space) {
      CHECK(cudnnConvolutionBackwardFilter(
          handle, &kOne, x_, x.get(), y_, y.get(), c_, algo, space, bytes, &kZero, w_, w2.get()));
    });
  }
  void fused(cudnnHandle_t handle,
             cudnnConvolutionFwdAlgo_t algo,
             std::size_t bytes,
             std::vector<float>& results) {
    const Memory y2(kYCount * sizeof(float));
    run(bytes, y2, kYCount, results, [&](void* space) {
      CHECK(cudnnConvolutionBiasActivationForward(handle,
                                                  &kOne,
                                                  x_,
                                                  x.get(),
                                                  w_,
                                                  w.get(),
                                                  c_,
                                                  algo,
                                                  space,
                                                  bytes,
                                                  &kZero,
                                                  y_,
                                                  y.get(),
                                                  bias_,
                                                  bias.get(),
                                                  relu_,
                                                  y_,
                                                  y2.get()));
    });
  }

  static constexpr float kOne = 1, kZero = 0;

  const Memory x{kXCount * sizeof(float)}, y{kYCount * sizeof(float)};
  const Memory w{kWCount * sizeof(float)}, bias{kFilters * sizeof(float)};
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t c_ = nullptr;
  cudnnActivationDescriptor_t relu_ = nullptr;
};

}  // namespace plain
