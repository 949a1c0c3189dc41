#include "kernels/planar_part.hpp"

#include <algorithm>
#include <cstdint>

namespace ucudnn {
namespace {

constexpr std::size_t kSpatial = 2;

// With fewer taps Winograd and FFT save less than the copies, and the products with 0, cost.
constexpr int kFewestTaps = 10;
constexpr int kFewestChannels = 16;

/// The problem along one dimension, in planes. In 64 bits, because sizes may be the largest of 32.
struct Line {
  std::int64_t w, x;

  Line(const Problem& problem, std::size_t dimension) noexcept {
    const std::int64_t step = problem.strides[dimension];
    w = (problem.wSizes[2 + dimension] + step - 1) / step;
    x = problem.ySizes[2 + dimension] + w - 1;
  }
};

/// Whether the copies support the problem.
bool isOfFloats(const Problem& problem) noexcept {
  return problem.xType == CUDNN_DATA_FLOAT && problem.wType == CUDNN_DATA_FLOAT &&
         problem.yType == CUDNN_DATA_FLOAT && problem.computeType == CUDNN_DATA_FLOAT &&
         problem.dimensions == 2 + kSpatial && problem.groups == 1 &&
         problem.mode == CUDNN_CROSS_CORRELATION &&
         problem.operation != Operation::kBiasActivationForward;
}

/// Whether some tap reads each pixel, and there are enough taps.
bool hasTaps(const Problem& problem) noexcept {
  const auto& taps = problem.wSizes;
  const auto& steps = problem.strides;
  return problem.dilations[0] == 1 && problem.dilations[1] == 1 && taps[2] >= steps[0] &&
         taps[3] >= steps[1] && std::int64_t{taps[2]} * taps[3] >= kFewestTaps;
}

/// Without a step planes are plain copies. Only tiles need these, and only if no tensor cores
/// multiply faster than Fourier's transforms. Bands of a filter gradient would add up.
bool isCutSo(const Problem& problem, const PlaneCut& cut) noexcept {
  const bool isStepping = problem.strides[0] > 1 || problem.strides[1] > 1;
  if (!isStepping && (cut.tiles == 1 || problem.mathType != CUDNN_FMA_MATH)) return false;
  if (cut.tiles > 1 &&
      (problem.xSizes[1] % cut.tiles != 0 || problem.xSizes[1] / cut.tiles < kFewestChannels))
    return false;
  return cut.bands == 1 || (isStepping && problem.operation != Operation::kBackwardFilter &&
                            (cut.bands - 1) * cut.rowsOf(problem) < problem.ySizes[2]);
}

std::size_t bytesOf(std::int64_t numbers) noexcept {
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

/// The part in planes, each a channel.
Problem planarOf(const Problem& part, bool copiesY) noexcept {
  Problem planar = part;
  planar.xSizes[1] = planar.wSizes[1] = part.xSizes[1] * part.strides[0] * part.strides[1];
  for (std::size_t i = 0; i < kSpatial; ++i) {
    const Line line(part, i);
    planar.xSizes[2 + i] = static_cast<std::int32_t>(line.x);
    planar.wSizes[2 + i] = static_cast<std::int32_t>(line.w);
    planar.strides[i] = 1;
    planar.pads[i] = 0;
  }
  planar.xStrides = channelsFirst(planar.xSizes);
  planar.wFormat = CUDNN_TENSOR_NCHW;
  if (copiesY) planar.yStrides = channelsFirst(planar.ySizes);
  return planar;
}

}  // namespace

bool hasPlanes(const Problem& problem, const PlaneCut& cut) noexcept {
  if (!isOfFloats(problem) || !hasTaps(problem) || !isCutSo(problem, cut)) return false;
  const auto& steps = problem.strides;
  const Line down(problem, 0), across(problem, 1);
  const std::int64_t perPixel = std::int64_t{steps[0]} * steps[1];
  const std::int64_t channels = problem.xSizes[1] / cut.tiles, planes = channels * perPixel;
  const bool fitDescriptors =
      fitsInt32(channels, perPixel) && fitsInt32(planes, down.x, across.x) &&
      fitsInt32(problem.batch(), planes * down.x * across.x) && fitsInt32(planes, down.w, across.w);
  const bool fitCopies =
      fitsInt32(problem.batch(), channels, problem.xSizes[2] + down.x * steps[0]) &&
      fitsInt32(problem.wSizes[0], channels, down.w * steps[0]) &&
      fitsInt32(problem.xSizes[3] + across.x * steps[1],
                std::max<std::int64_t>(1, problem.xStrides[3])) &&
      fitsInt32(problem.batch(), problem.ySizes[1], problem.ySizes[2]) &&
      fitsInt32(problem.ySizes[3], std::max<std::int64_t>(1, problem.yStrides[3]));
  return fitDescriptors && fitCopies;
}

PlanarPart::PlanarPart(const Part& part, std::int32_t written, bool copiesY) noexcept
    : planar_(planarOf(part.problem, copiesY)),
      offsets_(part.offsets),
      copies_(planar_, copiesY),
      written_(written) {
  const Problem& problem = part.problem;
  x_ = copyOf(problem.xSizes, problem.xStrides, planar_.xSizes, sizeof(float));
  x_.padY = problem.pads[0];
  x_.padX = problem.pads[1];
  w_ = copyOf(problem.wSizes, part.wStrides, planar_.wSizes, sizeof(float));
  x_.rows = w_.rows = problem.strides[0];
  x_.columns = w_.columns = problem.strides[1];
  y_ = copyOf(problem.ySizes, problem.yStrides, planar_.ySizes, sizeof(float));
  y_.rows = y_.columns = 1;
}

std::pair<BlockCopy, BlockCopy> PlanarPart::writtenAndNew(const void* tensor,
                                                          const void* planes) const noexcept {
  BlockCopy before = x(tensor, planes), others = before;
  before.height = written_;
  others.tensor = const_cast<void*>(advance(tensor, bytesOf(written_ * others.strides[2])));
  others.height -= written_;
  others.padY += written_;
  return {before, others};
}

std::vector<std::vector<PlanarPart>> runsOf(const Problem& problem, const PlaneCut& cut) {
  if (!hasPlanes(problem, cut)) return {};
  // Planes pad the filter to a multiple of the step.
  Problem filled = problem;
  filled.wSizes[2] = static_cast<std::int32_t>(Line(problem, 0).w) * problem.strides[0];
  const bool isDx = problem.operation == Operation::kBackwardData;
  std::vector<std::vector<PlanarPart>> runs;
  Range before;
  for (int i = 0, row = 0; i < cut.bands; ++i) {
    const Range y{row, std::min(cut.rowsOf(problem), problem.ySizes[2] - row)};
    Range x = rangeOfX(filled, 0, y);
    // dx may have rows behind those that the last row of y is computed from: no output depends on
    // them.
    if (isDx && i + 1 == cut.bands) x.count = problem.xSizes[2] - x.first;
    const Part band = cutSpatial(Part(problem), 0, x, y);
    if (runs.empty() || runs.back().back().problem().ySizes[2] != y.count) runs.emplace_back();
    for (const Part& tile : cutEqually(band, Direction::kChannels, cut.tiles))
      // cuDNN's algorithms write to a part of a tensor, but don't read one.
      runs.back().emplace_back(tile, std::max(0, before.end() - x.first), isDx && cut.bands > 1);
    row = y.end();
    before = x;
  }
  return runs;
}

}  // namespace ucudnn
