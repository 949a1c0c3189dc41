#include "host/tiling.hpp"

#include <algorithm>

#include "problem/spatial_line.hpp"

namespace ucudnn {
namespace {

bool isBackwardData(const Problem& problem) noexcept {
  return problem.operation == Operation::kBackwardData;
}

/// The zeros on both sides that make all bands of backward data alike: the padding of a full
/// correlation, and no less than lets dy's rows reach the whole band. REQUIRES: the band begins at
/// a multiple of the step.
std::int64_t padOfBackwardData(const SpatialLine& line, std::int64_t band) noexcept {
  std::int64_t pad = line.pad % line.step;
  while (pad + line.step <= line.reach) pad += line.step;
  while (band + 2 * pad < line.reach + 1) pad += line.step;
  // The last row of dy that touches the band begins at or before the band's last row.
  while ((band + 2 * pad - line.reach - 1) / line.step < (band - 1 + pad) / line.step)
    pad += line.step;
  return pad;
}

}  // namespace

Tensor outputTensorOf(Operation operation) noexcept {
  return operation == Operation::kBackwardData     ? kTensorX
         : operation == Operation::kBackwardFilter ? kTensorW
                                                   : kTensorY;
}

Tensor haloTensorOf(Operation operation) noexcept {
  return operation == Operation::kBackwardData ? kTensorY : kTensorX;
}

bool dependsOn(const Problem& problem, Tensor tensor, Axis axis) noexcept {
  switch (axis) {
    case kSamples:
    case kBand:
      return tensor != kTensorW;
    case kOuts:
      return tensor != kTensorX || problem.groups > 1;
    default:
      return tensor != kTensorY;
  }
}

bool addsAlong(const Problem& problem, Axis axis) noexcept {
  switch (problem.operation) {
    case Operation::kBackwardData:
      return axis == kOuts && problem.groups == 1;
    case Operation::kBackwardFilter:
      return axis == kSamples || axis == kBand;
    default:
      return axis == kIns;
  }
}

std::int32_t sizeAlong(const Problem& problem, Axis axis, std::size_t spatial) noexcept {
  switch (axis) {
    case kSamples:
      return problem.batch();
    case kBand:
      return (isBackwardData(problem) ? problem.xSizes : problem.ySizes)[2 + spatial];
    case kOuts:
      return problem.groups > 1 ? problem.groups : problem.wSizes[0];
    default:
      return problem.groups > 1 ? 1 : problem.xSizes[1];
  }
}

Tiles::Tiles(const Problem& whole, const Tiling& tiling) : whole_(whole), tiling_(tiling) {
  for (const Axis axis : {kSamples, kBand, kOuts, kIns}) {
    sizes_[axis] = sizeAlong(whole, axis, tiling.spatial);
    counts_[axis] = (sizes_[axis] + tiling.size[axis] - 1) / tiling.size[axis];
  }
}

std::int64_t Tiles::count() const noexcept {
  std::int64_t product = 1;
  for (const std::int32_t count : counts_) product *= count;
  return product;
}

std::int64_t Tiles::partsOf(Tensor tensor) const noexcept {
  std::int64_t product = 1;
  for (const Axis axis : {kSamples, kBand, kOuts, kIns})
    if (dependsOn(whole_, tensor, axis)) product *= counts_[axis];
  return product;
}

bool Tiles::isCut(Tensor tensor) const noexcept {
  return partsOf(tensor) > 1;
}

Range Tiles::range(Axis axis, std::int32_t index) const noexcept {
  const std::int32_t first = index * tiling_.size[axis];
  return {first, std::min(tiling_.size[axis], sizes_[axis] - first)};
}

Tiles::BandRows Tiles::bandRows(std::int32_t index) const noexcept {
  const SpatialLine line(whole_, tiling_.spatial);
  const std::int64_t all = isBackwardData(whole_) ? line.y : line.x;
  BandRows found;
  if (!isCut(kBand)) {
    found.rows = {0, static_cast<std::int32_t>(all)};
    found.pad = whole_.pads[tiling_.spatial];
    return found;
  }
  const Range band = range(kBand, index);
  std::int64_t first = band.first * line.step - line.pad;
  std::int64_t count = (band.count - std::int64_t{1}) * line.step + line.reach + 1;
  if (isBackwardData(whole_)) {
    const std::int64_t pad = padOfBackwardData(line, band.count);
    first = (band.first + line.pad - pad) / line.step;
    count = (band.count + 2 * pad - line.reach - 1) / line.step + 1;
    found.pad = static_cast<std::int32_t>(pad);
  }
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, all);
  const std::int64_t end = std::clamp<std::int64_t>(first + count, begin, all);
  found.rows = {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end - begin)};
  found.before = static_cast<std::int32_t>(std::clamp<std::int64_t>(-first, 0, count));
  found.after = static_cast<std::int32_t>(count) - found.before - found.rows.count;
  return found;
}

Tile Tiles::tile(const TileIndex& index) const {
  Part part(whole_);
  if (isCut(kSamples)) part = cut(part, Direction::kBatch, range(kSamples, index[kSamples]));
  if (isCut(kOuts))
    part = cut(part,
               whole_.groups > 1 ? Direction::kGroups : Direction::kFilters,
               range(kOuts, index[kOuts]));
  if (isCut(kIns)) part = cut(part, Direction::kChannels, range(kIns, index[kIns]));
  const BandRows rows = bandRows(index[kBand]);
  if (isCut(kBand)) {
    const Range band = range(kBand, index[kBand]);
    part = isBackwardData(whole_) ? cutSpatial(part, tiling_.spatial, band, rows.rows)
                                  : cutSpatial(part, tiling_.spatial, rows.rows, band);
  }
  Tile tile{part.problem, {}, part.offsets.adds};
  tile.parts[kTensorX] = {part.offsets.x, part.problem.xSizes, 0, 0};
  tile.parts[kTensorW] = {part.offsets.w, part.problem.wSizes, 0, 0};
  tile.parts[kTensorY] = {part.offsets.y, part.problem.ySizes, 0, 0};
  TilePart& halo = tile.parts[haloTensorOf(whole_.operation)];
  halo.before = rows.before;
  halo.after = rows.after;
  Problem& problem = tile.problem;
  problem.pads[tiling_.spatial] = rows.pad;
  (isBackwardData(whole_) ? problem.ySizes : problem.xSizes)[2 + tiling_.spatial] = rows.count();
  problem.xStrides = packedLike(layoutOfX(whole_), problem.xSizes);
  problem.yStrides = packedLike(layoutOfY(whole_), problem.ySizes);
  return tile;
}

}  // namespace ucudnn
