#pragma once

#include "kernels/native.hpp"

namespace ucudnn {

/// A convolution call as the client makes it.
struct ConvolutionCall {
  ConvolutionDescriptors descriptors;
  ConvolutionPointers pointers;
  const BiasActivation* fused = nullptr;  ///< of bias_activation_forward
  int algorithm = 0;                      ///< the one that the client named
};

}  // namespace ucudnn
