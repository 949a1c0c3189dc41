// How columns of x are folded into its channels. cuDNN's engines of half and bfloat16 read channels
// by eights: they copy an x of 3 channels to one of 8. Two columns of it are 6 channels, and take
// half the copy.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/native.hpp"

namespace ucudnn {

/// A filter gradient with channels last. It reads each group of neighbouring columns of x as one
/// column with all their channels; a group is as wide as the filter's step. The memory of x is the
/// same. The gradient is wider than the caller's and has its own memory: each of its rows is a row
/// of the caller's, with numbers before and behind that belong to no tap. Each sum is that of the
/// undivided kernel, and is rounded once.
struct Folding {
  Problem folded;
  std::size_t bytes = 0;  ///< of the wide gradient

  /// REQUIRES: exists.
  explicit Folding(const Problem& problem) noexcept;

  /// Whether so many columns can be folded. Only for half and bfloat16, whose batch can't be split.
  static bool exists(const Problem& problem, int columns) noexcept;
  /// Columns of the filter's step. 1: there is nothing to fold.
  static int columnsOf(const Problem& problem) noexcept {
    return problem.strides[static_cast<std::size_t>(problem.dimensions) - 3];
  }
  /// Whether engines copy fewer channels with folding than without.
  static bool savesCopies(const Problem& problem) noexcept;

  /// Both are enqueued on the stream. `wide` is the wide gradient, `w` the caller's.
  cudaError_t toCallers(const void* wide, const void* w, cudaStream_t stream) const noexcept {
    return copy(advance(wide, firstBytes_), pitchBytes_, w, rowBytes_, stream);
  }
  cudaError_t fromCallers(const void* w, const void* wide, cudaStream_t stream) const noexcept {
    return copy(w, rowBytes_, advance(wide, firstBytes_), pitchBytes_, stream);
  }

 private:
  cudaError_t copy(const void* from,
                   std::size_t fromPitch,
                   const void* to,
                   std::size_t toPitch,
                   cudaStream_t stream) const noexcept;

  std::size_t rows_, rowBytes_, pitchBytes_, firstBytes_;
};

}  // namespace ucudnn
