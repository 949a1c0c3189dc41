#include "kernels/blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kSpatial = 2;
constexpr int kMostTimes = 4;

/// How many times as high and wide as the filter's step a block is, or 1 where it is a pixel. 0:
/// none is.
int timesOf(const Problem& problem, int pixels) noexcept {
  if (pixels == 1) return 1;
  for (int times = 1; pixels > 1 && times <= kMostTimes; ++times)
    if (pixels == times * times * Blocking::pixelsOf(problem)) return times;
  return 0;
}

bool isPacked(const Problem::Sizes& sizes, const Problem::Sizes& strides) noexcept {
  return strides == channelsFirst(sizes) || strides == channelsLast(sizes);
}

/// The convolution of which each pixel is a block. Where its filter has one tap, x as only those
/// pixels that the taps read.
Problem ofPixels(const Problem& problem) noexcept {
  Problem read = problem;
  const bool isGradient = problem.operation == Operation::kBackwardData;
  for (std::size_t i = 0; i < kSpatial; ++i)
    if (problem.wSizes[2 + i] != 1 || problem.pads[i] != 0 ||
        (isGradient && !isPacked(problem.xSizes, problem.xStrides)))
      return read;
  for (std::size_t i = 0; i < kSpatial; ++i) {
    read.xSizes[2 + i] = problem.ySizes[2 + i];
    read.xStrides[2 + i] *= problem.strides[i];
    read.strides[i] = 1;
  }
  return read;
}

std::int64_t blocksOf(std::int64_t pixels, std::int64_t inBlock) noexcept {
  return (pixels + inBlock - 1) / inBlock;
}

/// Along one dimension: what the problem's becomes. In 64 bits, as sizes may be the largest of 32.
struct Line {
  std::int64_t step, inBlock;
  std::int64_t x, w, y;  ///< in blocks

  /// Of blocks of more than a pixel.
  Line(const Problem& problem, std::size_t dimension, int times) noexcept
      : step(problem.strides[dimension]), inBlock(step * times) {
    w = blocksOf(problem.wSizes[2 + dimension] + inBlock - step, inBlock);
    y = blocksOf(problem.ySizes[2 + dimension], times);
    x = y + w - 1;
  }
};

bool hasOneType(const Problem& problem) noexcept {
  return (problem.xType == CUDNN_DATA_FLOAT || isRounded(problem.xType)) &&
         problem.wType == problem.xType && problem.yType == problem.xType;
}

/// As many as engines read at once, or several times that. Of others they copy all pixels, or there
/// are few engines.
std::int64_t channelsOf(std::int64_t channels, const Problem& problem) noexcept {
  const auto atOnce = static_cast<std::int64_t>(kEngineAlignment / elementBytes(problem.xType));
  return (channels + atOnce - 1) / atOnce * atOnce;
}

/// Engines read sixteen bytes at once; fused calls have z and a bias besides.
bool canBeLast(const Problem& problem) noexcept {
  if (problem.operation == Operation::kBiasActivationForward ||
      channelsOf(problem.xSizes[1], problem) != problem.xSizes[1] ||
      channelsOf(problem.ySizes[1], problem) != problem.ySizes[1])
    return false;
  const Problem::Sizes &x = problem.xSizes, &w = problem.wSizes, &y = problem.ySizes;
  if (std::max({x[0], x[1], w[0]}) > kMostThreadBlocks) return false;
  for (std::size_t i = 2; i < 2 + kSpatial; ++i)
    if (!fits(std::max(1, problem.xStrides[i]), problem.strides[i - 2], x[i]) ||
        !fits(std::max(1, problem.yStrides[i]), y[i]))
      return false;
  return fits(x[1], x[2], x[3]) && fits(y[1], y[2], y[3]) && fits(w[2], w[3]) &&
         fits(w[0], w[1], std::int64_t{w[2]} * w[3]) && fits(x[0], x[2], x[3]) &&
         fits(y[0], y[2], y[3]);
}

/// Of more than one pixel.
bool canBeBlocks(const Problem& problem, int pixels) noexcept {
  const int times = timesOf(problem, pixels);
  if (times == 0 || pixels > kMostPixels) return false;
  for (std::size_t i = 0; i < kSpatial; ++i)
    if (problem.dilations[i] != 1 || problem.wSizes[2 + i] < problem.strides[i] ||
        problem.strides[i] * times > kMostColumns)
      return false;
  const std::int64_t inX = channelsOf(std::int64_t{problem.xSizes[1]} * pixels, problem);
  const std::int64_t inY = std::int64_t{problem.ySizes[1]} * times * times;
  if (inX > kMostInBlock) return false;
  if (times > 1 && (inY > kMostInBlock || problem.operation == Operation::kBiasActivationForward))
    return false;
  // Of larger blocks a filter's gradient is a sum of several, which are not to be rounded before.
  if (times > 1 && isRounded(problem.wType) && problem.operation == Operation::kBackwardFilter)
    return false;
  const Line down(problem, 0, times), across(problem, 1, times);
  return fits(inX, down.x, across.x) && fits(inY, down.y, across.y) &&
         fits(inX * inY, down.w, across.w) && fits(problem.batch(), problem.xSizes[2] + down.x) &&
         fits(problem.xSizes[3], std::max(1, problem.xStrides[3])) &&
         fits(problem.ySizes[3], std::max(1, problem.yStrides[3]));
}

/// The problem of blocks that exist.
Problem blockedOf(const Problem& problem, int pixels) noexcept {
  Problem blocked = pixels == 1 ? ofPixels(problem) : problem;
  blocked.wFormat = CUDNN_TENSOR_NHWC;
  const int times = timesOf(problem, pixels);
  if (pixels > 1) {
    blocked.xSizes[1] = blocked.wSizes[1] =
        static_cast<std::int32_t>(channelsOf(std::int64_t{problem.xSizes[1]} * pixels, problem));
    blocked.ySizes[1] = blocked.wSizes[0] = problem.ySizes[1] * times * times;
    for (std::size_t i = 0; i < kSpatial; ++i) {
      const Line line(problem, i, times);
      blocked.xSizes[2 + i] = static_cast<std::int32_t>(line.x);
      blocked.wSizes[2 + i] = static_cast<std::int32_t>(line.w);
      blocked.ySizes[2 + i] = static_cast<std::int32_t>(line.y);
      blocked.strides[i] = 1;
      blocked.pads[i] = 0;
    }
  }
  blocked.xStrides = channelsLast(blocked.xSizes);
  if (times > 1 || pixels == 1) blocked.yStrides = channelsLast(blocked.ySizes);
  return blocked;
}

}  // namespace

bool Blocking::exists(const Problem& problem, int pixels) {
  if (problem.dimensions != 2 + kSpatial || problem.groups != 1 ||
      problem.mode != CUDNN_CROSS_CORRELATION || !hasOneType(problem))
    return false;
  return (pixels == 1 ? canBeLast(problem) : canBeBlocks(problem, pixels)) && hasBlockCopies();
}

Blocking::Blocking(const Problem& problem, int pixels) noexcept
    : blocked_(blockedOf(problem, pixels)),
      copies_(blocked_, pixels == 1 || timesOf(problem, pixels) > 1) {
  const int times = timesOf(problem, pixels);
  const std::size_t numberBytes = elementBytes(problem.xType);
  const Problem read = pixels == 1 ? ofPixels(problem) : problem;
  if (read.xSizes != problem.xSizes) clearedBytes_ = problem.xBytes();
  x_ = copyOf(read.xSizes, read.xStrides, blocked_.xSizes, numberBytes);
  x_.rows = x_.columns = 1;
  if (pixels > 1) {
    x_.rows = problem.strides[0] * times;
    x_.columns = problem.strides[1] * times;
    x_.padY = problem.pads[0];
    x_.padX = problem.pads[1];
  }
  y_ = copyOf(problem.ySizes, problem.yStrides, blocked_.ySizes, numberBytes);
  y_.rows = y_.columns = times;

  const Problem::Sizes& w = problem.wSizes;
  const Problem::FilterStrides strides = problem.wStrides();
  std::copy_n(strides.begin(), std::size(w_.strides), w_.strides);
  w_.numberBytes = x_.numberBytes;
  w_.count = w[0];
  w_.channels = w[1];
  w_.height = w[2];
  w_.width = w[3];
  w_.rows = x_.rows;
  w_.columns = x_.columns;
  w_.shifts = times;
  w_.stepY = problem.strides[0];
  w_.stepX = problem.strides[1];
  w_.down = blocked_.wSizes[2];
  w_.across = blocked_.wSizes[3];
  w_.numbers = blocked_.wSizes[1];
}

FilterCopy Blocking::wCopy(const void* filters, const void* blocks, bool adds) const noexcept {
  FilterCopy copy = w_;
  copy.filters = const_cast<void*>(filters);
  copy.blocks = const_cast<void*>(blocks);
  copy.adds = adds ? 1 : 0;
  return copy;
}

}  // namespace ucudnn
