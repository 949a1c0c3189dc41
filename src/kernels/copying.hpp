// A convolution on copies of a call's tensors, in a workspace, which engines read faster: as blocks
// of pixels (blocks.hpp), or channels last (channels_last.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/block_copy.hpp"
#include "kernels/copied_tensors.hpp"
#include "kernels/pixel_copies.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Whether the problem's numbers can be copied: they have one type of four or two bytes, and taps
/// are in the order that engines read.
bool mayBeCopied(const Problem& problem) noexcept;
/// Whether engines on tensor cores would copy the problem's tensors channels last.
bool isCopiedLast(const Problem& problem) noexcept;
/// The channels, rounded up with zeros to a multiple of those that engines read at once. With other
/// numbers of channels, engines copy all pixels, or few engines exist.
std::int64_t filledChannels(std::int64_t channels, const Problem& problem) noexcept;

/// The rows of a tensor that the copy of each band holds. Rows outside the tensor are 0.
struct BandRows {
  std::int32_t first = 0;  ///< of the first band; negative: before the tensor
  std::int32_t step = 0;   ///< from one band's to the next's
  std::int32_t count = 0;
};

/// The copy of a tensor, in bands of its rows.
struct BandedCopy {
  BlockCopy whole{};
  BandRows rows;
  std::int32_t size = 0;       ///< rows of the tensor
  std::int64_t stride = 0;     ///< from one to the next, in elements
  std::int32_t rowHeight = 1;  ///< of the copy's rows
  std::int32_t rowWidth = 0;   ///< rows are ranges of the copy's width, so wide; 0: of its height

  /// The copy of a band between the blocks and the tensor that begins at `tensor`. `adds`: it adds
  /// to the tensor.
  BlockCopy at(int band, const void* tensor, const void* blocks, bool adds) const noexcept;
};

class Copying {
 public:
  /// The engine's problem: one band.
  const Problem& problem() const noexcept { return problem_; }
  const CopiedTensors& copies() const noexcept { return copies_; }
  /// How often it runs, one band after another in the same memory.
  int bands() const noexcept { return bands_; }

  /// Copies between a call's tensors and a band's. `adds`: the copy adds to the call's tensors; not
  /// for half and bfloat16, where an engine has already added. REQUIRES for yCopy: y is copied.
  BlockCopy xCopy(int band,
                  const void* tensor,
                  const void* blocks,
                  bool adds = false) const noexcept {
    return x_.at(band, tensor, blocks, adds);
  }
  BlockCopy yCopy(int band,
                  const void* tensor,
                  const void* blocks,
                  bool adds = false) const noexcept {
    return y_.at(band, tensor, blocks, adds);
  }
  FilterCopy wCopy(const void* filters, const void* blocks, bool adds = false) const noexcept;
  /// Bytes of the call's x to clear, because only some of its pixels are written; 0: none.
  std::size_t clearedBytes() const noexcept { return clearedBytes_; }
  /// Bytes of the filter's copy to clear before it is made, because it has more filters than the
  /// call's; 0: none.
  std::size_t clearedFilterBytes() const noexcept { return clearedFilterBytes_; }

 protected:
  Copying(const Problem& problem, bool copiesY, int bands) noexcept
      : problem_(problem), copies_(problem, copiesY), bands_(bands) {}

  Problem problem_;
  CopiedTensors copies_;
  int bands_;
  BandedCopy x_, y_;
  FilterCopy w_{};
  std::size_t clearedBytes_ = 0, clearedFilterBytes_ = 0;
};

}  // namespace ucudnn
