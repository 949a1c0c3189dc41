// How a filter gradient in half or bfloat16 is computed in parts of the batch. Each part would
// round what it adds, and cuDNN 9.19 has no engine from such tensors to a float gradient but a few
// that are compiled at run time: so parts of x and y are copied to float.
#pragma once

#include <vector>

#include "cuda/owners.hpp"
#include "kernels/native.hpp"
#include "problem/part.hpp"

namespace ucudnn {

/// Equal parts of the batch: x and y are without gaps, and so are parts of them, which are as
/// aligned as calls of engines are. Empty: there are none.
std::vector<Part> cutToSum(const Problem& problem, int parts);

/// A part in float, in the same memory for all. TF32 holds what half and bfloat16 hold, so products
/// are as exact as theirs; the sum is rounded once.
Problem inFloat(const Problem& part) noexcept;

// Between the client's type and float. Immutable once made, so threads may share them.

/// Of x and y.
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

/// Of a filter gradient.
class WideFilter {
 public:
  /// Throws Error.
  explicit WideFilter(const Problem& part);

  /// wide = w, or wide += w.
  cudnnStatus_t add(cudnnHandle_t handle,
                    const void* w,
                    bool adds,
                    const void* wide) const noexcept;
  /// w = wide + beta * w, rounded once. `beta` is a float, as the client's.
  cudnnStatus_t round(cudnnHandle_t handle,
                      const void* wide,
                      const void* beta,
                      const void* w) const noexcept;

 private:
  TensorDescriptor w_, wideW_;
  OpTensorDescriptor larger_;
};

}  // namespace ucudnn
