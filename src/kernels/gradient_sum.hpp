// The sum, in float, of parts of a filter gradient in half or bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/block_copy.hpp"
#include "kernels/native.hpp"
#include "problem/problem.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// Adds up the bands, or other parts, of a gradient in half or bfloat16 in float: the engine rounds
/// each once, and the sum is rounded once.
class GradientSum {
 public:
  /// `offset`: bytes in the workspace from the copies, or from the part's gradient, to the sum.
  GradientSum(std::size_t offset, const Problem& part) : offset_(roundUpToAlignment(offset)) {
    sum_.count = static_cast<std::int64_t>(bytes(part) / sizeof(float));
    sum_.isBfloat16 = part.wType == CUDNN_DATA_BFLOAT16 ? 1 : 0;
  }

  /// Our kernel adds kSummedAtOnce numbers at a time. The last ones may lie behind the gradient, in
  /// the workspace: nobody reads their sums.
  static std::size_t bytes(const Problem& problem) noexcept {
    const std::size_t numbers = problem.wBytes() / elementBytes(problem.wType);
    return (numbers + kSummedAtOnce - 1) / kSummedAtOnce * kSummedAtOnce * sizeof(float);
  }
  const void* sums(const void* copies) const noexcept { return advance(copies, offset_); }
  /// The sum begins with the part's gradient, or the gradient is added to it.
  WideSum of(const void* w, const void* copies, bool adds) const noexcept {
    WideSum sum = sum_;
    sum.numbers = w;
    sum.sums = const_cast<void*>(sums(copies));
    sum.adds = adds ? 1 : 0;
    return sum;
  }
  /// The copy of the sum to the caller's gradient. `copy` is that of a band's.
  FilterCopy rounded(FilterCopy copy, const void* copies) const noexcept {
    copy.blocks = const_cast<void*>(sums(copies));
    copy.hasFloats = 1;
    copy.isBfloat16 = sum_.isBfloat16;
    return copy;
  }

 private:
  std::size_t offset_;
  WideSum sum_{};
};

}  // namespace ucudnn
