// How a filter gradient in half or bfloat16 is computed in parts of the batch. If the engine added
// the parts, it would round each sum: for such tensors and a float gradient, cuDNN 9.19 has only a
// few engines, which are compiled at run time. So either parts of x and y are copied to float, and
// the sum is rounded once; or the engine writes each part in the caller's type, rounded once, and
// we add these in float, as for bands (channels_last.hpp). The latter copies nothing.
#pragma once

#include <vector>

#include "cuda/owners.hpp"
#include "kernels/native.hpp"
#include "problem/part.hpp"

namespace ucudnn {

/// Equal parts of the batch. x and y have no gaps, and neither have their parts, which are as
/// aligned as calls of engines are. Empty: there are none.
std::vector<Part> cutToSum(const Problem& problem, int parts);

/// The same parts, to be computed in the caller's type. Empty also where our copies can't run.
/// Throws Error: that can't be found out now.
std::vector<Part> cutToSplit(const Problem& problem, int parts);

/// A part in float; all parts use the same memory. TF32 holds every value of half and bfloat16, so
/// products are as exact as theirs. The sum is rounded once.
Problem inFloat(const Problem& part) noexcept;

// Copies between the client's type and float. Immutable once made, so threads may share them.

/// Copies x and y.
class WideInputs {
 public:
  /// Throws Error.
  explicit WideInputs(const Problem& part);

  cudnnStatus_t copy(cudnnHandle_t handle,
                     const ConvolutionPointers& part,
                     const ConvolutionPointers& wide) const noexcept;

 private:
  TensorDescriptor x_, wideX_, y_, wideY_;
};

/// Rounds a filter gradient.
class WideFilter {
 public:
  /// Throws Error.
  explicit WideFilter(const Problem& part);

  /// w = wide + beta * w, rounded once. `beta` is a float, like the client's.
  cudnnStatus_t round(cudnnHandle_t handle,
                      const void* wide,
                      const void* beta,
                      const void* w) const noexcept;

 private:
  TensorDescriptor w_, wideW_;
  OpTensorDescriptor larger_;
};

}  // namespace ucudnn
