// Which calls the engines of cuDNN's graph API can run: those that their graphs are built for.
#pragma once

#include <cstdint>

#include "kernels/native.hpp"
#include "problem/part.hpp"

namespace ucudnn {

/// Bytes that x, w, y, z and the workspace of a call are aligned to for which engines are built.
constexpr std::int64_t kEngineAlignment = 16;

/// Whether a part's tensors are aligned as the call's are.
constexpr bool areForEngines(const Offsets& part) noexcept {
  return (part.x | part.w | part.y) % kEngineAlignment == 0;
}

/// Whether there are graphs with the factors: alpha is 1, beta is 0 or 1. That of
/// bias_activation_forward has the problem's. REQUIRES: neither is null.
bool areFactorsForEngines(const Problem& problem, const ConvolutionPointers& pointers) noexcept;

/// Whether engines can run on the memory: x, w and y are there, and all is aligned. What legacy
/// algorithms refuse, engines may read.
bool isMemoryForEngines(const ConvolutionPointers& pointers) noexcept;

/// Whether engines can run a call: its factors and memory are for them. Of
/// bias_activation_forward also: the bias is packed and of y's type, RELU makes of NaNs what the
/// problem's does, and z is aligned and not in y's memory.
bool suitsEngines(const Problem& problem,
                  const ConvolutionPointers& pointers,
                  const BiasActivation* fused) noexcept;

}  // namespace ucudnn
