// Convolution calls whose tensors are in chosen places, and what their results must be.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <regex>

#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "fixture.hpp"

namespace ucudnn::test {

enum class Place { kDevice, kPinned, kPageable };

/// A copy of a tensor's buffer in some place.
class Memory {
 public:
  Memory(Place place, const std::vector<char>& contents) : place_(place), bytes_(contents.size()) {
    if (place == Place::kPageable) {
      pageable_ = contents;
      return;
    }
    EXPECT_CUDA(place == Place::kDevice ? cudaMalloc(&memory_, bytes_)
                                        : cudaMallocHost(&memory_, bytes_));
    EXPECT_CUDA(cudaMemcpy(memory_, contents.data(), bytes_, cudaMemcpyDefault));
  }
  ~Memory() {
    if (place_ == Place::kPageable) return;
    EXPECT_CUDA(place_ == Place::kDevice ? cudaFree(memory_) : cudaFreeHost(memory_));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* get() { return place_ == Place::kPageable ? pageable_.data() : memory_; }
  std::vector<char> read() {
    std::vector<char> contents(bytes_);
    EXPECT_CUDA(cudaMemcpy(contents.data(), get(), bytes_, cudaMemcpyDefault));
    return contents;
  }

 private:
  const Place place_;
  const std::size_t bytes_;
  std::vector<char> pageable_;
  void* memory_ = nullptr;
};

using Places = std::array<Place, 3>;  // of x, w and y

/// A call of a convolution whose tensors are copies in these places.
class PlacedCall {
 public:
  PlacedCall(Convolution& convolution, Places places)
      : convolution_(convolution),
        x_(places[0], convolution.x().read()),
        w_(places[1], convolution.w().read()),
        y_(places[2], convolution.y().read()) {}

  cudnnStatus_t run(UcudnnHandle_t handle, ucudnnOperation_t operation, double alpha, double beta) {
    const bool isDouble = convolution_.parameters().type == CUDNN_DATA_DOUBLE;
    const double doubles[] = {alpha, beta};
    const float floats[] = {static_cast<float>(alpha), static_cast<float>(beta)};
    const auto factor = [&](int i) {
      return isDouble ? static_cast<const void*>(&doubles[i]) : &floats[i];
    };
    const cudnnTensorDescriptor_t x = convolution_.xDesc(), y = convolution_.yDesc();
    const cudnnFilterDescriptor_t w = convolution_.wDesc();
    const cudnnConvolutionDescriptor_t d = convolution_.convDesc();
    switch (operation) {
      case UCUDNN_BACKWARD_DATA:
        return cudnnConvolutionBackwardData(handle,
                                            factor(0),
                                            w,
                                            w_.get(),
                                            y,
                                            y_.get(),
                                            d,
                                            CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                            nullptr,
                                            0,
                                            factor(1),
                                            x,
                                            x_.get());
      case UCUDNN_BACKWARD_FILTER:
        return cudnnConvolutionBackwardFilter(handle,
                                              factor(0),
                                              x,
                                              x_.get(),
                                              y,
                                              y_.get(),
                                              d,
                                              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                              nullptr,
                                              0,
                                              factor(1),
                                              w,
                                              w_.get());
      default:
        return cudnnConvolutionForward(handle,
                                       factor(0),
                                       x,
                                       x_.get(),
                                       w,
                                       w_.get(),
                                       d,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                       nullptr,
                                       0,
                                       factor(1),
                                       y,
                                       y_.get());
    }
  }

  std::vector<char> output(ucudnnOperation_t operation) {
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    return (operation == UCUDNN_BACKWARD_DATA     ? x_
            : operation == UCUDNN_BACKWARD_FILTER ? w_
                                                  : y_)
        .read();
  }
  Memory& x() { return x_; }
  Memory& w() { return w_; }
  Memory& y() { return y_; }

 private:
  Convolution& convolution_;
  Memory x_, w_, y_;
};

/// The result of tensors on the device, by the first of cuDNN's algorithms that has it. Empty: none
/// has, as an H100's for some filters' gradients in half.
inline std::optional<std::vector<char>> inCoreIfAny(Convolution& convolution,
                                                    cudnnHandle_t native,
                                                    ucudnnOperation_t operation,
                                                    double alpha,
                                                    double beta) {
  for (int algorithm = 0; algorithm < 8; ++algorithm)
    if (auto output = convolution.undivided(native, operation, algorithm, alpha, beta))
      return output;
  return std::nullopt;
}
inline std::vector<char> inCore(Convolution& convolution,
                                cudnnHandle_t native,
                                ucudnnOperation_t operation,
                                double alpha,
                                double beta) {
  const auto output = inCoreIfAny(convolution, native, operation, alpha, beta);
  EXPECT_TRUE(output) << "cuDNN has no algorithm";
  return output.value_or(std::vector<char>());
}

class HostTensorsTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    setArithmetic(Arithmetic::kFull);
  }

  std::string logFile() const { return directory_.file("log"); }

  /// The bytes that the last refusal has named.
  std::size_t bytesNamed() const {
    const std::vector<std::string> lines = linesWith(logFile(), {"need", "bytes of device memory"});
    std::smatch match;
    if (lines.empty() || !std::regex_search(lines.back(), match, std::regex("need ([0-9]+) bytes")))
      return 0;
    return std::stoull(match[1]);
  }

  void compareRandomCases(unsigned seed, int cases);

  static void expectEqual(const Convolution& convolution,
                          ucudnnOperation_t operation,
                          const std::vector<char>& expected,
                          const std::vector<char>& found) {
    ASSERT_EQ(expected.size(), found.size());
    EXPECT_LE(distance(convolution.geometry(operation), found, expected),
              tolerance(convolution.parameters()));
  }

 private:
  TemporaryDirectory directory_;
  // Kernels are not measured: they are the first that fit.
  EnvironmentGuard setting_{{{"UCUDNN_BENCHMARK_SHARE", "0"},
                             {"UCUDNN_LOG_LEVEL", "warn"},
                             {"UCUDNN_LOG_FILE", logFile()}}};
};

/// A stream of its own, and what it captures.
class Captured {
 public:
  explicit Captured(cudnnHandle_t handle) : handle_(handle) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    EXPECT_CUDNN(cudnnSetStream(handle, stream_));
    EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  }
  ~Captured() {
    EXPECT_CUDNN(cudnnSetStream(handle_, nullptr));
    if (exec_ != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    }
    EXPECT_CUDA(cudaStreamDestroy(stream_));
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  void end() {
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
    ASSERT_CUDA(cudaGraphInstantiate(&exec_, graph, 0));
    ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  void launch() { EXPECT_CUDA(cudaGraphLaunch(exec_, stream_)); }
  void wait() { EXPECT_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  const cudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

inline ConvolutionCase randomCase(std::mt19937& random) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<>(least, most)(random);
  };
  ConvolutionCase chosen;
  chosen.name = "random";
  const int dimensions = pick(1, 4) == 1 ? 3 : 2;
  const int types = pick(0, 9);
  chosen.type = types == 0 ? CUDNN_DATA_DOUBLE : types == 1 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  if (pick(0, 3) == 0 && dimensions == 2) chosen.format = CUDNN_TENSOR_NHWC;
  chosen.batch = pick(1, 4);
  chosen.channels = pick(1, 12);
  chosen.filters = pick(1, 12);
  if (pick(0, 4) == 0) {
    chosen.groups = pick(2, 3);
    chosen.channels *= chosen.groups;
    chosen.filters *= chosen.groups;
  }
  const auto each = [&](int least, int most) {
    std::vector<int> values;
    for (int i = 0; i < dimensions; ++i) values.push_back(pick(least, most));
    return values;
  };
  chosen.filter = each(1, 4);
  chosen.pad = each(0, 2);
  for (std::size_t i = 0; i < chosen.pad.size(); ++i)
    chosen.pad[i] = std::min(chosen.pad[i], chosen.filter[i] - 1);
  chosen.stride = each(1, 3);
  chosen.dilation = pick(0, 3) == 0 ? each(1, 2) : std::vector<int>(chosen.filter.size(), 1);
  chosen.input = each(8, dimensions == 3 ? 11 : 24);
  if (chosen.format == CUDNN_TENSOR_NCHW && pick(0, 5) == 0) chosen.batchGap = pick(1, 64);
  return chosen;
}

constexpr std::size_t kBudget = std::size_t{256} << 10;
constexpr Places kPinnedAll = {Place::kPinned, Place::kPinned, Place::kPinned};

/// Some tiles within kBudget.
inline ConvolutionCase planeCase() {
  ConvolutionCase parameters;
  parameters.batch = 2;
  parameters.channels = parameters.filters = 8;
  parameters.input = {64, 40};
  return parameters;
}

}  // namespace ucudnn::test
