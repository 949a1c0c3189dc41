#include "kernels/copying.hpp"

#include <algorithm>

#include "kernels/engine_calls.hpp"

namespace ucudnn {

bool mayBeCopied(const Problem& problem) noexcept {
  return problem.mode == CUDNN_CROSS_CORRELATION &&
         (problem.xType == CUDNN_DATA_FLOAT || isRounded(problem.xType)) &&
         problem.wType == problem.xType && problem.yType == problem.xType;
}

bool isCopiedLast(const Problem& problem) noexcept {
  return problem.mathType != CUDNN_FMA_MATH && problem.xStrides[1] != 1 && problem.yStrides[1] != 1;
}

std::int64_t filledChannels(std::int64_t channels, const Problem& problem) noexcept {
  const auto atOnce = static_cast<std::int64_t>(kEngineAlignment / elementBytes(problem.xType));
  return dividedUp(channels, atOnce) * atOnce;
}

BlockCopy BandedCopy::at(int band,
                         const void* tensor,
                         const void* blocks,
                         bool adds) const noexcept {
  BlockCopy copy = adding(between(whole, tensor, blocks), adds);
  if (rows.count == 0) return copy;
  const std::int64_t first = rows.first + std::int64_t{band} * rows.step;
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, size);
  const std::int64_t end = std::clamp<std::int64_t>(first + rows.count, begin, size);
  const auto held = static_cast<std::int32_t>(end - begin);
  const auto before = held == 0 ? 0 : static_cast<std::int32_t>(begin - first);
  copy.tensor = const_cast<void*>(
      advance(tensor, static_cast<std::size_t>(begin * stride * copy.numberBytes)));
  if (rowWidth == 0) {
    copy.height = held * rowHeight;
    copy.padY = before * rowHeight;
    copy.down = rows.count * rowHeight;
  } else {
    copy.width = held * rowWidth;
    copy.padX = before * rowWidth;
    copy.across = rows.count * rowWidth;
  }
  return copy;
}

FilterCopy Copying::wCopy(const void* filters, const void* blocks, bool adds) const noexcept {
  FilterCopy copy = w_;
  copy.filters = const_cast<void*>(filters);
  copy.blocks = const_cast<void*>(blocks);
  copy.adds = adds ? 1 : 0;
  return copy;
}

}  // namespace ucudnn
