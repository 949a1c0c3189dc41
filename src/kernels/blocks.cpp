#include "kernels/blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/engine_configuration.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kSpatial = 2;
constexpr int kMostTimes = 4;

/// How many times as high and wide as the filter's step a block is. 0: no block has so many pixels.
int timesOf(const Problem& problem, int pixels) noexcept {
  for (int times = 1; pixels > 1 && times <= kMostTimes; ++times)
    if (pixels == times * times * Blocking::pixelsOf(problem)) return times;
  return 0;
}

bool canBeBlocks(const Problem& problem, int pixels) noexcept {
  const int times = timesOf(problem, pixels);
  if (times == 0 || pixels > kMostPixels) return false;
  for (std::size_t i = 0; i < kSpatial; ++i)
    if (problem.dilations[i] != 1 || problem.wSizes[2 + i] < problem.strides[i] ||
        problem.strides[i] * times > kMostColumns)
      return false;
  const std::int64_t inX = filledChannels(std::int64_t{problem.xSizes[1]} * pixels, problem);
  const std::int64_t inY = std::int64_t{problem.ySizes[1]} * times * times;
  if (inX > kMostInBlock) return false;
  if (times > 1 && (inY > kMostInBlock || problem.operation == Operation::kBiasActivationForward))
    return false;
  // With larger blocks a filter's gradient is a sum of several, which must not be rounded before.
  if (times > 1 && isRounded(problem.wType) && problem.operation == Operation::kBackwardFilter)
    return false;
  const BlockLine down(problem, 0, times), across(problem, 1, times);
  return fitsInt32(inX, down.x, across.x) && fitsInt32(inY, down.y, across.y) &&
         fitsInt32(inX * inY, down.w, across.w) &&
         fitsInt32(problem.batch(), problem.xSizes[2] + down.x) &&
         fitsInt32(problem.xSizes[3], std::max<std::int64_t>(1, problem.xStrides[3])) &&
         fitsInt32(problem.ySizes[3], std::max<std::int64_t>(1, problem.yStrides[3]));
}

/// Whether engines would copy y, which we can copy for them.
bool canCopyY(const Problem& problem, int pixels) noexcept {
  const bool addsZ = problem.operation == Operation::kBiasActivationForward && problem.addsZ != 0;
  return timesOf(problem, pixels) == 1 && isCopiedLast(problem) && !addsZ &&
         filledChannels(problem.ySizes[1], problem) == problem.ySizes[1] &&
         std::max(problem.batch(), problem.ySizes[1]) <= kMostThreadBlocks;
}

/// The problem of blocks. REQUIRES: they exist.
Problem blockedOf(const Problem& problem, int pixels, bool copiesY) noexcept {
  Problem blocked = problem;
  blocked.wFormat = CUDNN_TENSOR_NHWC;
  const int times = timesOf(problem, pixels);
  blocked.xSizes[1] = blocked.wSizes[1] =
      static_cast<std::int32_t>(filledChannels(std::int64_t{problem.xSizes[1]} * pixels, problem));
  blocked.ySizes[1] = blocked.wSizes[0] = problem.ySizes[1] * times * times;
  for (std::size_t i = 0; i < kSpatial; ++i) {
    const BlockLine line(problem, i, times);
    blocked.xSizes[2 + i] = static_cast<std::int32_t>(line.x);
    blocked.wSizes[2 + i] = static_cast<std::int32_t>(line.w);
    blocked.ySizes[2 + i] = static_cast<std::int32_t>(line.y);
    blocked.strides[i] = 1;
    blocked.pads[i] = 0;
  }
  blocked.xStrides = channelsLast(blocked.xSizes);
  if (times > 1 || copiesY) blocked.yStrides = channelsLast(blocked.ySizes);
  return blocked;
}

}  // namespace

bool Blocking::exists(const Problem& problem, int pixels, bool copiesY) {
  return problem.dimensions == 2 + kSpatial && problem.groups == 1 && mayBeCopied(problem) &&
         canBeBlocks(problem, pixels) && (!copiesY || canCopyY(problem, pixels)) &&
         hasBlockCopies();
}

Blocking::Blocking(const Problem& problem, int pixels, bool copiesY) noexcept
    : Copying(blockedOf(problem, pixels, copiesY), copiesY || timesOf(problem, pixels) > 1, 1) {
  const int times = timesOf(problem, pixels);
  const std::size_t numberBytes = elementBytes(problem.xType);
  x_.whole = copyOf(problem.xSizes, problem.xStrides, problem_.xSizes, numberBytes);
  x_.whole.rows = problem.strides[0] * times;
  x_.whole.columns = problem.strides[1] * times;
  x_.whole.padY = problem.pads[0];
  x_.whole.padX = problem.pads[1];
  y_.whole = copyOf(problem.ySizes, problem.yStrides, problem_.ySizes, numberBytes);
  y_.whole.rows = y_.whole.columns = times;

  const Problem::Sizes& w = problem.wSizes;
  const Problem::FilterStrides strides = problem.wStrides();
  std::copy_n(strides.begin(), std::size(w_.strides), w_.strides);
  w_.numberBytes = x_.whole.numberBytes;
  w_.count = w[0];
  w_.channels = w[1];
  w_.height = w[2];
  w_.width = w[3];
  w_.rows = x_.whole.rows;
  w_.columns = x_.whole.columns;
  w_.shiftsY = w_.shiftsX = times;
  w_.stepY = problem.strides[0];
  w_.stepX = problem.strides[1];
  w_.down = problem_.wSizes[2];
  w_.across = problem_.wSizes[3];
  w_.numbers = problem_.wSizes[1];
}

}  // namespace ucudnn
