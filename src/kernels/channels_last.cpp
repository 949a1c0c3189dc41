#include "kernels/channels_last.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/engine_configuration.hpp"
#include "problem/spatial_line.hpp"

namespace ucudnn {
namespace {

// Fewer zero channels than this are added: engines read sixteen bytes at once, two for each
// channel.
constexpr int kMostFilled = 8;

std::size_t spatialOf(const Problem& problem) noexcept {
  return static_cast<std::size_t>(problem.dimensions) - 2;
}

std::int64_t dividedUp(std::int64_t value, std::int64_t by) noexcept {
  return (value + by - 1) / by;
}

/// Bands of y, each with the rows of x that the filter covers. REQUIRES: y has rows.
Bands bandsOfY(const SpatialLine& line, int most) noexcept {
  const std::int64_t rows = dividedUp(line.y, most);
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  Bands bands;
  bands.count = narrow(dividedUp(line.y, rows));
  bands.y = {0, narrow(rows), narrow(rows)};
  bands.x = {
      narrow(-line.pad), narrow(rows * line.step), narrow((rows - 1) * line.step + line.reach + 1)};
  return bands;
}

/// Bands of dx, each with the rows of dy whose filters reach it, and a padding of `reach` on both
/// sides. The first band begins at a whole row of dy, perhaps before dx.
Bands bandsOfX(const SpatialLine& line, int most) noexcept {
  const std::int64_t ahead = ((line.pad - line.reach) % line.step + line.step) % line.step;
  const std::int64_t rows = dividedUp(dividedUp(line.x + ahead, most), line.step) * line.step;
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  Bands bands;
  bands.count = narrow(dividedUp(line.x + ahead, rows));
  bands.x = {narrow(-ahead), narrow(rows), narrow(rows)};
  bands.y = {narrow((line.pad - line.reach - ahead) / line.step),
             narrow(rows / line.step),
             narrow((rows - 1 + line.reach) / line.step + 1)};
  return bands;
}

/// The convolution whose tensors are copied. If its filter has one tap, x has only the pixels that
/// the tap reads.
Problem ofPixels(const Problem& problem) noexcept {
  Problem read = problem;
  const auto isPacked = [](const Problem::Sizes& sizes, const Problem::Strides& strides) {
    return strides == channelsFirst(sizes) || strides == channelsLast(sizes);
  };
  const bool isGradient = problem.operation == Operation::kBackwardData;
  if (problem.dimensions != 4) return read;
  for (std::size_t i = 0; i < 2; ++i)
    if (problem.wSizes[2 + i] != 1 || problem.pads[i] != 0 ||
        (isGradient && !isPacked(problem.xSizes, problem.xStrides)))
      return read;
  for (std::size_t i = 0; i < 2; ++i) {
    read.xSizes[2 + i] = problem.ySizes[2 + i];
    read.xStrides[2 + i] *= problem.strides[i];
    read.strides[i] = 1;
  }
  return read;
}

/// Strides of packed sizes.
Problem::Strides packedLast(const Problem::Sizes& sizes, int dimensions) noexcept {
  Problem::Strides strides{};
  std::int64_t stride = strides[1] = 1;
  stride *= sizes[1];
  for (auto i = static_cast<std::size_t>(dimensions) - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  strides[0] = stride;
  return strides;
}

/// The problem of one band. REQUIRES: the bands exist.
Problem lastOf(const Problem& read, const Bands& bands) noexcept {
  Problem last = read;
  last.wFormat = CUDNN_TENSOR_NHWC;
  if (read.groups == 1) {
    last.xSizes[1] = last.wSizes[1] =
        static_cast<std::int32_t>(filledChannels(read.xSizes[1], read));
    last.ySizes[1] = last.wSizes[0] =
        static_cast<std::int32_t>(filledChannels(read.ySizes[1], read));
  }
  if (bands.count > 1) {
    last.xSizes[2 + bands.spatial] = bands.x.count;
    last.ySizes[2 + bands.spatial] = bands.y.count;
    const bool isGradient = read.operation == Operation::kBackwardData;
    last.pads[bands.spatial] =
        isGradient ? static_cast<std::int32_t>(SpatialLine(read, bands.spatial).reach) : 0;
  }
  last.xStrides = packedLast(last.xSizes, last.dimensions);
  last.yStrides = packedLast(last.ySizes, last.dimensions);
  return last;
}

/// A tensor's spatial dimensions as two. If there are three, two neighbours are joined.
struct Plane {
  std::int64_t height, width, down, across;  ///< of the tensor and of a band's copy
  std::int64_t strideY, strideX;
  bool exists;

  Plane(const Problem::Sizes& sizes,
        const Problem::Strides& strides,
        const Problem::Sizes& copied,
        std::size_t dimensions,
        std::size_t spatial) noexcept {
    const std::size_t last = dimensions - 1;
    const bool isThree = dimensions == 5, joinsFirst = isThree && spatial == 2;
    height = sizes[2], down = copied[2];
    width = sizes[last], across = copied[last];
    strideY = strides[joinsFirst ? 3 : 2];
    strideX = strides[last];
    if (joinsFirst) height *= sizes[3], down *= copied[3];
    if (isThree && !joinsFirst) width *= sizes[3], across *= copied[3];
    exists = !isThree || (joinsFirst ? strides[2] == std::int64_t{sizes[3]} * strides[3]
                                     : strides[3] == std::int64_t{sizes[4]} * strides[4]);
  }
};

BandedCopy copyOf(const Problem& problem,
                  const Problem::Sizes& sizes,
                  const Problem::Strides& strides,
                  const Problem::Sizes& copied,
                  const Bands& bands,
                  const BandRows& rows) noexcept {
  const auto dimensions = static_cast<std::size_t>(problem.dimensions);
  const Plane plane(sizes, strides, copied, dimensions, bands.spatial);
  BandedCopy banded;
  BlockCopy& copy = banded.whole;
  copy.numberBytes = static_cast<std::int32_t>(elementBytes(problem.xType));
  copy.strides[0] = strides[0];
  copy.strides[1] = strides[1];
  copy.strides[2] = plane.strideY;
  copy.strides[3] = plane.strideX;
  copy.samples = sizes[0];
  copy.channels = sizes[1];
  copy.height = static_cast<std::int32_t>(plane.height);
  copy.width = static_cast<std::int32_t>(plane.width);
  copy.rows = copy.columns = 1;
  copy.down = static_cast<std::int32_t>(plane.down);
  copy.across = static_cast<std::int32_t>(plane.across);
  copy.numbers = copied[1];
  if (bands.count == 1) return banded;
  banded.rows = rows;
  banded.size = sizes[2 + bands.spatial];
  banded.stride = strides[2 + bands.spatial];
  // With two dimensions the second is the width. With three the third is, or the second and third
  // joined.
  const bool isThree = dimensions == 5;
  if (bands.spatial > 0) banded.rowWidth = isThree && bands.spatial == 1 ? sizes[4] : 1;
  return banded;
}

bool fitPlanes(const Problem::Sizes& sizes,
               const Problem::Strides& strides,
               const Problem::Sizes& copied,
               const Problem& problem,
               std::size_t spatial) noexcept {
  const Plane plane(sizes, strides, copied, static_cast<std::size_t>(problem.dimensions), spatial);
  // A band's copy is as large as its rows of the tensor, or larger.
  return plane.exists && fitsInt32(plane.down, plane.across) &&
         fitsInt32(std::max<std::int64_t>(1, plane.strideX), plane.across) &&
         fitsInt32(plane.down * plane.across, copied[1], sizes[0]);
}

}  // namespace

std::optional<Bands> Bands::of(const Problem& problem, int most) noexcept {
  if (most < 1 || most > kMostBands) return std::nullopt;
  Bands best;
  if (most == 1) return best;
  const bool isGradient = problem.operation == Operation::kBackwardData;
  const std::size_t spatial = spatialOf(problem);
  double leastShared = 0;
  for (std::size_t i = 0; i < spatial; ++i) {
    const SpatialLine line(problem, i);
    // The last dimension is cut only if no other can be: its rows are neighbours in memory.
    if (i + 1 == spatial && best.count > 1) break;
    if (!fitsInt32(2 * line.reach + line.x + 2 * line.pad + 1, line.step)) return std::nullopt;
    Bands bands = isGradient ? bandsOfX(line, most) : bandsOfY(line, most);
    if (bands.count <= most / 2 || bands.count < 2) continue;
    const BandRows& input = isGradient ? bands.y : bands.x;
    const double shared = static_cast<double>(input.count) / input.step;
    if (best.count > 1 && shared >= leastShared) continue;
    leastShared = shared;
    bands.spatial = i;
    best = bands;
  }
  return best.count > 1 ? std::optional(best) : std::nullopt;
}

bool ChannelsLast::exists(const Problem& problem, int bands) {
  const bool isFused = problem.operation == Operation::kBiasActivationForward;
  if (problem.dimensions < 4 || !mayBeCopied(problem) || (isFused && problem.addsZ != 0))
    return false;
  const Problem read = ofPixels(problem);
  const auto found = Bands::of(read, bands);
  const Problem::Sizes &x = read.xSizes, &w = read.wSizes, &y = read.ySizes;
  const bool isFilled = filledChannels(x[1], read) == x[1] && filledChannels(y[1], read) == y[1];
  if (!found || (isFused && !isFilled) ||
      std::max({x[0], x[1], y[1], w[0]}) > kMostThreadBlocks - kMostFilled)
    return false;
  if (read.groups != 1 && (!isFilled || filledChannels(w[1], read) != w[1] ||
                           filledChannels(w[0] / read.groups, read) != w[0] / read.groups))
    return false;
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < static_cast<std::size_t>(read.dimensions); ++i) {
    if (!fitsInt32(taps, w[i])) return false;
    taps *= w[i];
  }
  // Sizes of the copies: if these fit, so do the copies' strides.
  Problem::Sizes copiedX = x, copiedY = y;
  if (found->count > 1) copiedX[2 + found->spatial] = found->x.count;
  if (found->count > 1) copiedY[2 + found->spatial] = found->y.count;
  copiedX[1] += kMostFilled, copiedY[1] += kMostFilled;
  return fitPlanes(x, read.xStrides, copiedX, read, found->spatial) &&
         fitPlanes(y, read.yStrides, copiedY, read, found->spatial) &&
         fitsInt32(std::int64_t{w[0]} + kMostFilled, std::int64_t{w[1]} + kMostFilled, taps) &&
         hasBlockCopies();
}

ChannelsLast::ChannelsLast(const Problem& problem, int most) noexcept
    : ChannelsLast(problem, ofPixels(problem), *Bands::of(ofPixels(problem), most)) {}

ChannelsLast::ChannelsLast(const Problem& problem, const Problem& read, const Bands& bands) noexcept
    : Copying(lastOf(read, bands), true, bands.count) {
  if (read.xSizes != problem.xSizes) clearedBytes_ = problem.xBytes();
  if (problem_.wSizes[0] != problem.wSizes[0]) clearedFilterBytes_ = problem_.wBytes();
  x_ = copyOf(read, read.xSizes, read.xStrides, problem_.xSizes, bands, bands.x);
  y_ = copyOf(read, read.ySizes, read.yStrides, problem_.ySizes, bands, bands.y);

  const Problem::Sizes& w = problem.wSizes;
  const Problem::FilterStrides strides = problem.wStrides();
  const auto last = static_cast<std::size_t>(problem.dimensions) - 1;
  w_.numberBytes = x_.whole.numberBytes;
  w_.strides[0] = static_cast<std::int64_t>(strides[0]);
  w_.strides[1] = static_cast<std::int64_t>(strides[1]);
  w_.strides[2] = static_cast<std::int64_t>(strides[2]);
  w_.strides[3] = static_cast<std::int64_t>(strides[last]);
  w_.count = w[0];
  w_.channels = w[1];
  w_.height = w_.down = w[2];
  w_.width = w_.across = last == 4 ? w[3] * w[4] : w[3];
  w_.rows = w_.columns = w_.shifts = w_.stepY = w_.stepX = 1;
  w_.numbers = problem_.wSizes[1];
}

}  // namespace ucudnn
