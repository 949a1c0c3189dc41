#pragma once

#include "kernels/factor.hpp"
#include "kernels/native.hpp"

namespace ucudnn {

/// A convolution call as the client makes it.
struct ConvolutionCall {
  ConvolutionDescriptors descriptors;
  ConvolutionPointers pointers;
  const BiasActivation* fused = nullptr;  ///< of bias_activation_forward
  int algorithm = 0;                      ///< the one that the client named
};

/// Whether one of the call's scaling factors is there and 0.
inline bool isZero(const void* factor, const Problem& problem) noexcept {
  return factor != nullptr && valueOf(factor, problem.xType) == 0;
}

}  // namespace ucudnn
