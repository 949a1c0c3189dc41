#include "problem/part.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

void takeX(Part& part, std::size_t dimension, Range range) noexcept {
  Problem& problem = part.problem;
  problem.xSizes[dimension] = range.count;
  part.offsets.x += static_cast<std::size_t>(range.first) *
                    static_cast<std::size_t>(problem.xStrides[dimension]) *
                    elementBytes(problem.xType);
}
void takeW(Part& part, std::size_t dimension, Range range) noexcept {
  part.problem.wSizes[dimension] = range.count;
  part.offsets.w += static_cast<std::size_t>(range.first) * part.wStrides[dimension] *
                    elementBytes(part.problem.wType);
}
void takeY(Part& part, std::size_t dimension, Range range) noexcept {
  Problem& problem = part.problem;
  problem.ySizes[dimension] = range.count;
  part.offsets.y += static_cast<std::size_t>(range.first) *
                    static_cast<std::size_t>(problem.yStrides[dimension]) *
                    elementBytes(problem.yType);
}

void addUp(Part& part, Range range, bool haveOneOutput) noexcept {
  part.offsets.adds |= haveOneOutput && range.first > 0;
}

/// Along one dimension, in 64 bits, as sizes may be the largest of 32.
struct Line {
  std::int64_t x, y, step, pad;
  std::int64_t reach;  ///< from the filter's first tap to its last

  Line(const Problem& problem, std::size_t spatial) noexcept
      : x(problem.xSizes[2 + spatial]),
        y(problem.ySizes[2 + spatial]),
        step(problem.strides[spatial]),
        pad(problem.pads[spatial]),
        reach((std::int64_t{problem.wSizes[2 + spatial]} - 1) * problem.dilations[spatial]) {}
};

Range rangeOf(std::int64_t first, std::int64_t end) noexcept {
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(end - first)};
}

}  // namespace

std::int32_t sizeOf(const Problem& problem, Direction direction) noexcept {
  switch (direction) {
    case Direction::kBatch:
      return problem.batch();
    case Direction::kGroups:
      return problem.groups;
    case Direction::kFilters:
      return problem.wSizes[0];
    case Direction::kChannels:
      return problem.xSizes[1];
  }
  return 1;
}

Part cut(const Part& whole, Direction direction, Range range) noexcept {
  Part part = whole;
  const Problem& problem = whole.problem;
  const Operation operation = problem.operation;
  const auto inGroups = [&](std::int32_t size) {
    const std::int32_t each = size / problem.groups;
    return Range{range.first * each, range.count * each};
  };
  switch (direction) {
    case Direction::kBatch: {
      const Offsets samples = offsetsOfSample(problem, range.first);
      part.problem = problem.withBatch(range.count);
      part.offsets.x += samples.x;
      part.offsets.y += samples.y;
      part.offsets.adds |= samples.adds;
      break;
    }
    case Direction::kGroups:
      takeX(part, 1, inGroups(problem.xSizes[1]));
      takeW(part, 0, inGroups(problem.wSizes[0]));
      takeY(part, 1, inGroups(problem.ySizes[1]));
      part.problem.groups = range.count;
      break;
    case Direction::kFilters:
      takeW(part, 0, range);
      takeY(part, 1, range);
      addUp(part, range, operation == Operation::kBackwardData);
      break;
    case Direction::kChannels:
      takeX(part, 1, range);
      takeW(part, 1, range);
      addUp(part, range, operation == Operation::kForward);
      break;
  }
  return part;
}

std::vector<Part> cutEqually(const Part& whole, Direction direction, int count) {
  std::vector<Part> parts;
  const std::int32_t size = sizeOf(whole.problem, direction) / count;
  for (int i = 0; i < count; ++i) parts.push_back(cut(whole, direction, {i * size, size}));
  return parts;
}

Range rangeOfX(const Problem& problem, std::size_t spatial, Range y) noexcept {
  const Line line(problem, spatial);
  const auto inX = [&](std::int64_t place) { return std::clamp<std::int64_t>(place, 0, line.x); };
  return rangeOf(inX(y.first * line.step - line.pad),
                 inX((y.end() - 1) * line.step - line.pad + line.reach + 1));
}

Range rangeOfY(const Problem& problem, std::size_t spatial, Range x) noexcept {
  const Line line(problem, spatial);
  const std::int64_t first = x.first + line.pad, last = first + x.count - 1;
  // The first whose last tap reaches x's; or one before it that begins no later than x's, where the
  // step leaves a gap.
  const std::int64_t touching =
      (std::max(first - line.reach, std::int64_t{0}) + line.step - 1) / line.step;
  return rangeOf(std::min({touching, first / line.step, line.y - 1}),
                 std::min(last / line.step + 1, line.y));
}

Part cutSpatial(const Part& whole, std::size_t spatial, Range x, Range y) noexcept {
  Part part = whole;
  takeX(part, 2 + spatial, x);
  takeY(part, 2 + spatial, y);
  addUp(part, y, whole.problem.operation == Operation::kBackwardFilter);
  const Line line(part.problem, spatial);
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
