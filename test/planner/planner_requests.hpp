// Kernels, and requests for the sample problem, of tests without a device.
#pragma once

#include "planner/request.hpp"
#include "support/problems.hpp"

namespace ucudnn::test {

constexpr Kernel kGemm{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_FMA_MATH};
constexpr Kernel kFft{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH};
constexpr Kernel kWinograd{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_FMA_MATH};

/// For the sample problem, of 8 samples.
inline PlanRequest wanted(std::size_t limitBytes,
                          bool deterministic = false,
                          bool replays = false) {
  static const Settings kOn, kOff = [] {
    Settings settings;
    settings.graphMemoryBytes = 0;
    return settings;
  }();
  PlanRequest request;
  request.problem = sampleProblem();
  request.limitBytes = limitBytes;
  request.deterministic = deterministic;
  request.settings = replays ? &kOn : &kOff;
  return request;
}

}  // namespace ucudnn::test
