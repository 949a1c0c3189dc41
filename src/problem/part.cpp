#include "problem/part.hpp"

#include <algorithm>

#include "problem/spatial_line.hpp"

namespace ucudnn {
namespace {

/// Takes this range of one of a tensor's dimensions. `stride` is in elements.
void take(std::int32_t& size,
          std::size_t& offset,
          Range range,
          std::size_t stride,
          std::int32_t type) noexcept {
  size = range.count;
  offset += static_cast<std::size_t>(range.first) * stride * elementBytes(type);
}
void takeX(Part& part, std::size_t dimension, Range range) noexcept {
  Problem& problem = part.problem;
  const auto stride = static_cast<std::size_t>(problem.xStrides[dimension]);
  take(problem.xSizes[dimension], part.offsets.x, range, stride, problem.xType);
}
void takeW(Part& part, std::size_t dimension, Range range) noexcept {
  Problem& problem = part.problem;
  take(problem.wSizes[dimension], part.offsets.w, range, part.wStrides[dimension], problem.wType);
}
void takeY(Part& part, std::size_t dimension, Range range) noexcept {
  Problem& problem = part.problem;
  const auto stride = static_cast<std::size_t>(problem.yStrides[dimension]);
  take(problem.ySizes[dimension], part.offsets.y, range, stride, problem.yType);
}

Range rangeOf(std::int64_t first, std::int64_t end) noexcept {
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(end - first)};
}

}  // namespace

std::int32_t sizeOf(const Problem& problem, Direction direction) noexcept {
  const std::int32_t sizes[] = {
      problem.batch(), problem.groups, problem.wSizes[0], problem.xSizes[1]};
  return sizes[static_cast<int>(direction)];
}

Part cut(const Part& whole, Direction direction, Range range) noexcept {
  Part part = whole;
  Problem& problem = part.problem;
  const std::int32_t all = sizeOf(whole.problem, direction);
  const auto share = [&](std::int32_t size) {  // a group has several channels and filters
    return Range{range.first * (size / all), range.count * (size / all)};
  };
  const std::size_t inXY = direction == Direction::kBatch ? 0 : 1;
  const std::size_t inW = direction == Direction::kChannels ? 1 : 0;
  if (direction != Direction::kFilters) takeX(part, inXY, share(problem.xSizes[inXY]));
  if (direction != Direction::kChannels) takeY(part, inXY, share(problem.ySizes[inXY]));
  if (direction != Direction::kBatch) takeW(part, inW, share(problem.wSizes[inW]));
  if (direction == Direction::kGroups) problem.groups = range.count;
  const Direction ofOneOutput = problem.operation == Operation::kBackwardFilter ? Direction::kBatch
                                : problem.operation == Operation::kBackwardData
                                    ? Direction::kFilters
                                    : Direction::kChannels;
  part.offsets.adds |= direction == ofOneOutput && range.first > 0;
  return part;
}

std::vector<Part> cutEqually(const Part& whole, Direction direction, int count) {
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(count));
  const std::int32_t size = sizeOf(whole.problem, direction) / count;
  for (int i = 0; i < count; ++i) parts.push_back(cut(whole, direction, {i * size, size}));
  return parts;
}

Range rangeOfX(const Problem& problem, std::size_t spatial, Range y) noexcept {
  const SpatialLine line(problem, spatial);
  const auto inX = [&](std::int64_t place) { return std::clamp<std::int64_t>(place, 0, line.x); };
  return rangeOf(inX(y.first * line.step - line.pad),
                 inX((y.end() - 1) * line.step - line.pad + line.reach + 1));
}

Range rangeOfY(const Problem& problem, std::size_t spatial, Range x) noexcept {
  const SpatialLine line(problem, spatial);
  const std::int64_t first = x.first + line.pad, last = first + x.count - 1;
  // The first y whose last tap reaches x's range; or, if the step leaves a gap, one before it that
  // begins no later than the range.
  const std::int64_t touching =
      (std::max(first - line.reach, std::int64_t{0}) + line.step - 1) / line.step;
  return rangeOf(std::min({touching, first / line.step, line.y - 1}),
                 std::min(last / line.step + 1, line.y));
}

Part cutSpatial(const Part& whole, std::size_t spatial, Range x, Range y) noexcept {
  Part part = whole;
  takeX(part, 2 + spatial, x);
  takeY(part, 2 + spatial, y);
  part.offsets.adds |= whole.problem.operation == Operation::kBackwardFilter && y.first > 0;
  const SpatialLine line(part.problem, spatial);
  const std::int64_t before = line.pad + x.first - y.first * line.step;
  const std::int64_t after = (line.y - 1) * line.step + line.reach + 1 - line.x - before;
  part.problem.pads[spatial] = static_cast<std::int32_t>(before);
  part.padsAfter[spatial] = static_cast<std::int32_t>(std::max(after, std::int64_t{0}));
  return part;
}

Part cutBand(const Part& whole, std::size_t spatial, Range band) noexcept {
  const Problem& problem = whole.problem;
  return problem.operation == Operation::kBackwardData
             ? cutSpatial(whole, spatial, band, rangeOfY(problem, spatial, band))
             : cutSpatial(whole, spatial, rangeOfX(problem, spatial, band), band);
}

}  // namespace ucudnn
