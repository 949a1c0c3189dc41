// How a filter gradient in half or bfloat16 is computed in parts of the batch. Each part would
// round what it adds, and cuDNN 9.19 has no engine from such tensors to a float gradient but a few
// that are compiled at run time: so parts of x and y are copied to float.
#pragma once

#include <cstddef>

#include "cuda/owners.hpp"
#include "kernels/native.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// A part of the batch in float, in the same memory for all parts. TF32 holds what half and
/// bfloat16 hold, so products are as exact as theirs; the sum is rounded once.
struct Summation {
  Problem wide;

  explicit Summation(const Problem& part) noexcept : wide(part) {
    wide.xType = wide.wType = wide.yType = CUDNN_DATA_FLOAT;
  }

  /// Whether there are so many equal parts: x and y are without gaps, and so are parts of them,
  /// which are as aligned as calls are.
  static bool exists(const Problem& problem, int parts) noexcept;

  /// A part's tensors in float, one behind another.
  std::size_t bytes() const noexcept { return yPlace() + wide.yBytes(); }
  std::size_t xPlace() const noexcept;
  std::size_t yPlace() const noexcept;
};

/// Between the client's type and float. Immutable once made, so threads may share it.
class Conversions {
 public:
  /// Throws Error.
  Conversions(const Problem& problem, const Summation& sums);

  cudnnStatus_t widenX(cudnnHandle_t handle, const void* x, const void* wide) const noexcept;
  cudnnStatus_t widenY(cudnnHandle_t handle, const void* y, const void* wide) const noexcept;
  /// w = wide + beta * w, rounded once. `beta` is the client's.
  cudnnStatus_t roundW(cudnnHandle_t handle,
                       const void* wide,
                       const void* beta,
                       const void* w) const noexcept;

 private:
  TensorDescriptor x_, wideX_, y_, wideY_, w_, wideW_;
  OpTensorDescriptor larger_;
};

}  // namespace ucudnn
