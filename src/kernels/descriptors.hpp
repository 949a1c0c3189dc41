// cuDNN's descriptors with the values of a problem.
#pragma once

#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Owned; immutable once made, so threads may share them. All are null if cuDNN's tensors can't
/// have the problem's values. A large problem (Problem::isLarge) has only the graph API (9.19), so
/// cuDNN is not asked.
class ProblemDescriptors {
 public:
  /// Throws Error.
  explicit ProblemDescriptors(const Problem& problem);

  ConvolutionDescriptors get() const noexcept {
    return {x_.get(), w_.get(), convolution_.get(), y_.get()};
  }

 private:
  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
};

}  // namespace ucudnn
