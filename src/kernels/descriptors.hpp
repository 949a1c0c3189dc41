// cuDNN's descriptors with the values of a problem.
#pragma once

#include "cuda/owners.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Owned; immutable once made, so threads may share them.
class ProblemDescriptors {
 public:
  /// Throws Error.
  explicit ProblemDescriptors(const Problem& problem);

  ConvolutionDescriptors get() const noexcept {
    return {x_.get(), w_.get(), convolution_.get(), y_.get()};
  }

 private:
  TensorDescriptor x_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  TensorDescriptor y_;
};

}  // namespace ucudnn
