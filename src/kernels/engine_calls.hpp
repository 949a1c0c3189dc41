// Which calls the engines of cuDNN's graph API can run: those that their graphs are built for.
#pragma once

#include "kernels/native.hpp"
#include "problem/part.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// Whether a part's tensors are aligned as the call's are.
constexpr bool areForEngines(const Offsets& part) noexcept {
  return (part.x | part.w | part.y) % kEngineAlignment == 0;
}

/// Whether there are graphs with the factors: alpha is 1, beta is 0 or 1. The graph of
/// bias_activation_forward has its problem's factors. REQUIRES: neither is null.
bool areFactorsForEngines(const Problem& problem, const ConvolutionPointers& pointers) noexcept;

/// Whether engines can run on the memory: x, w and y are there, and all is aligned. Engines may
/// read memory that legacy algorithms refuse.
bool isMemoryForEngines(const ConvolutionPointers& pointers) noexcept;

/// Whether engines can run a call: its factors and memory are for them. bias_activation_forward has
/// more conditions: the bias is packed and of y's type, RELU treats NaNs as the problem says, and z
/// is aligned and not in y's memory.
bool suitsEngines(const Problem& problem,
                  const ConvolutionPointers& pointers,
                  const BiasActivation* fused) noexcept;

}  // namespace ucudnn
