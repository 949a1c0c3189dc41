#include "kernels/channels_last.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/blocks.hpp"
#include "kernels/engine_configuration.hpp"
#include "problem/spatial_line.hpp"

namespace ucudnn {
namespace {

// Fewer zero channels than this are added: engines read sixteen bytes at once, two for each
// channel.
constexpr int kMostFilled = 8;
// Engines multiply so many channels about as fast as fewer.
constexpr int kFoldedChannels = 64;
constexpr int kMostUnused = 8;  // at most one in so many columns of y's copy is beyond y

std::size_t spatialOf(const Problem& problem) noexcept {
  return static_cast<std::size_t>(problem.dimensions) - 2;
}

/// The channels of a column that is folded, with zeros behind them: those that are copied at once.
std::int64_t inColumn(std::int64_t channels) noexcept {
  constexpr std::int64_t kCopiedAtOnce = 4;
  return dividedUp(channels, kCopiedAtOnce) * kCopiedAtOnce;
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

/// The problem of one band. REQUIRES: the bands exist, and the columns can be folded.
Problem lastOf(const Problem& read, const Bands& bands, int folds) noexcept {
  Problem last = read;
  last.wFormat = CUDNN_TENSOR_NHWC;
  const std::size_t row = spatialOf(read) - 1;
  const BlockLine line(read, row, folds);
  const auto set = [&](std::int64_t channels, std::int64_t filters) {
    last.xSizes[1] = last.wSizes[1] = static_cast<std::int32_t>(channels);
    last.ySizes[1] = last.wSizes[0] = static_cast<std::int32_t>(filters);
  };
  if (folds == 1 && read.groups == 1)
    set(filledChannels(read.xSizes[1], read), filledChannels(read.ySizes[1], read));
  if (folds > 1) {
    set(line.inBlock * inColumn(read.xSizes[1]), folds * inColumn(read.ySizes[1]));
    last.xSizes[2 + row] = static_cast<std::int32_t>(line.x);
    last.wSizes[2 + row] = static_cast<std::int32_t>(line.w);
    last.ySizes[2 + row] = static_cast<std::int32_t>(line.y);
    last.pads[row] = 0;
    last.strides[row] = 1;
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

/// A tensor that is copied, and its copy's sizes.
struct CopiedTensor {
  const Problem::Sizes& sizes;
  const Problem::Strides& strides;
  Problem::Sizes copied;
  std::int64_t columns;  ///< of the tensor, in a pixel of the copy; 0: columns are not folded
};

/// A tensor's spatial dimensions as two. If there are three, two neighbours are joined; or the
/// first are samples, of which there is one.
struct Plane {
  std::int64_t samples, height, width;
  std::int64_t down, across;  ///< of a band's copy, before columns are folded
  std::int64_t strideSample, strideY, strideX;
  std::int32_t rowHeight = 1, rowWidth = 0;  ///< as in BandedCopy
  bool exists = true;

  Plane(const CopiedTensor& tensor, std::size_t dimensions, std::size_t spatial) noexcept {
    const Problem::Sizes &sizes = tensor.sizes, &copied = tensor.copied;
    const Problem::Strides& strides = tensor.strides;
    const std::size_t last = dimensions - 1;
    const bool isThree = dimensions == 5, isFolded = tensor.columns > 0;
    // A folded row is not as long as the tensor's.
    const bool joinsFirst = isThree && spatial == (isFolded ? 0U : 2U);
    const bool joinsLast = isThree && !isFolded && !joinsFirst;
    const bool areSamples = isThree && isFolded && !joinsFirst;
    samples = sizes[0], strideSample = strides[0];
    height = sizes[2], down = copied[2];
    width = sizes[last], across = copied[last] * std::max<std::int64_t>(1, tensor.columns);
    strideY = strides[2], strideX = strides[last];
    if (joinsFirst) {
      exists = strides[2] == std::int64_t{sizes[3]} * strides[3];
      height *= sizes[3], down *= copied[3], strideY = strides[3];
      rowHeight = sizes[3];
    }
    if (joinsLast) {
      exists = strides[3] == std::int64_t{sizes[4]} * strides[4];
      width *= sizes[3], across *= copied[3];
    }
    if (areSamples) {
      exists = sizes[0] == 1 && sizes[2] <= kMostThreadBlocks;
      samples = sizes[2], strideSample = strides[2];
      height = sizes[3], down = copied[3], strideY = strides[3];
    }
    if (spatial > 0 && !areSamples) rowWidth = joinsLast ? sizes[4] : 1;
  }
};

BandedCopy copyOf(const Problem& problem,
                  const CopiedTensor& tensor,
                  const Bands& bands,
                  const BandRows& rows) noexcept {
  const Plane plane(tensor, static_cast<std::size_t>(problem.dimensions), bands.spatial);
  BandedCopy banded;
  BlockCopy& copy = banded.whole;
  copy.numberBytes = static_cast<std::int32_t>(elementBytes(problem.xType));
  copy.strides[0] = plane.strideSample;
  copy.strides[1] = tensor.strides[1];
  copy.strides[2] = plane.strideY;
  copy.strides[3] = plane.strideX;
  copy.samples = static_cast<std::int32_t>(plane.samples);
  copy.channels = tensor.sizes[1];
  copy.height = static_cast<std::int32_t>(plane.height);
  copy.width = static_cast<std::int32_t>(plane.width);
  copy.rows = copy.columns = 1;
  copy.down = static_cast<std::int32_t>(plane.down);
  copy.across = static_cast<std::int32_t>(plane.across);
  copy.numbers = tensor.copied[1];
  if (tensor.columns > 0) copy.numbers = static_cast<std::int32_t>(inColumn(copy.channels));
  if (bands.count == 1) return banded;
  banded.rows = rows;
  banded.size = tensor.sizes[2 + bands.spatial];
  banded.stride = tensor.strides[2 + bands.spatial];
  banded.rowHeight = plane.rowHeight;
  banded.rowWidth = plane.rowWidth;
  return banded;
}

bool fitPlanes(const Problem& problem, const CopiedTensor& tensor, std::size_t spatial) noexcept {
  const Plane plane(tensor, static_cast<std::size_t>(problem.dimensions), spatial);
  const std::int64_t columns = std::max<std::int64_t>(1, tensor.columns);
  // A band's copy is as large as its rows of the tensor, or larger.
  return plane.exists && fitsInt32(plane.down, plane.across) &&
         fitsInt32(std::max<std::int64_t>(1, plane.strideX), plane.across) &&
         fitsInt32(plane.down * (plane.across / columns), tensor.copied[1], plane.samples);
}

/// Whether columns may be a pixel, however large the tensors are.
bool isFoldable(const Problem& problem) noexcept {
  const std::size_t row = spatialOf(problem) - 1;
  const int taps = problem.wSizes[2 + row];
  return problem.groups == 1 && problem.operation != Operation::kBiasActivationForward &&
         problem.dilations[row] == 1 && taps > 1 && taps >= problem.strides[row];
}

/// Whether so many columns of the problem's tensors can be a pixel.
bool canFold(const Problem& problem, const Bands& bands, int folds) noexcept {
  if (folds < 1 || folds > kMostFolds) return false;
  if (folds == 1) return true;
  const std::size_t row = spatialOf(problem) - 1;
  const BlockLine line(problem, row, folds);
  const bool isCut = bands.count > 1 && bands.spatial == row;
  const auto isRead = [&](std::int64_t channels) {
    return filledChannels(channels, problem) == channels;
  };
  return isFoldable(problem) && !isCut && isRead(line.inBlock * inColumn(problem.xSizes[1])) &&
         isRead(folds * inColumn(problem.ySizes[1])) && fitsInt32(line.x, line.inBlock) &&
         line.x * line.inBlock >= std::int64_t{problem.xSizes[2 + row]} + problem.pads[row];
}

}  // namespace

std::optional<Bands> Bands::of(const Problem& problem, int most, bool isFolded) noexcept {
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
    if (isFolded && spatial == 3 && i > 0 && problem.batch() > 1) break;
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

bool ChannelsLast::exists(const Problem& problem, int bands, int folds) {
  const bool isFused = problem.operation == Operation::kBiasActivationForward;
  if (problem.dimensions < 4 || !mayBeCopied(problem) || (isFused && problem.addsZ != 0))
    return false;
  const Problem read = ofPixels(problem);
  const auto found = Bands::of(read, bands, folds > 1);
  const Problem::Sizes &x = read.xSizes, &w = read.wSizes, &y = read.ySizes;
  const bool isFilled = filledChannels(x[1], read) == x[1] && filledChannels(y[1], read) == y[1];
  if (!found || (isFused && !isFilled) || !canFold(read, *found, folds) ||
      std::max({x[0], x[1], y[1], w[0]}) > kMostThreadBlocks - kMostFilled)
    return false;
  if (read.groups != 1 && (!isFilled || filledChannels(w[1], read) != w[1] ||
                           filledChannels(w[0] / read.groups, read) != w[0] / read.groups))
    return false;
  const std::size_t row = spatialOf(read) - 1;
  const BlockLine line(read, row, folds);
  const std::int64_t columns = folds == 1 ? 0 : line.inBlock, columnsOfY = folds == 1 ? 0 : folds;
  std::int64_t taps = 1;
  for (std::size_t i = 0; i <= row; ++i) {
    const std::int64_t size = folds > 1 && i == row ? line.w : w[2 + i];
    if (!fitsInt32(taps, size)) return false;
    taps *= size;
  }
  // Sizes of the copies: if these fit, so do the copies' strides.
  CopiedTensor copiedX{x, read.xStrides, x, columns}, copiedY{y, read.yStrides, y, columnsOfY};
  if (found->count > 1) copiedX.copied[2 + found->spatial] = found->x.count;
  if (found->count > 1) copiedY.copied[2 + found->spatial] = found->y.count;
  if (folds > 1) copiedX.copied[2 + row] = static_cast<std::int32_t>(line.x);
  if (folds > 1) copiedY.copied[2 + row] = static_cast<std::int32_t>(line.y);
  const auto inPixel = [](std::int64_t channels, std::int64_t inFold) {
    return inFold == 0 ? channels + kMostFilled : inFold * inColumn(channels);
  };
  const std::int64_t inX = inPixel(x[1], columns), inY = inPixel(y[1], columnsOfY);
  if (!fitsInt32(inX, 1) || !fitsInt32(inY, 1)) return false;
  copiedX.copied[1] = static_cast<std::int32_t>(inX);
  copiedY.copied[1] = static_cast<std::int32_t>(inY);
  return fitPlanes(read, copiedX, found->spatial) && fitPlanes(read, copiedY, found->spatial) &&
         fitsInt32(inPixel(w[0], columnsOfY), inPixel(w[1], columns), taps) && hasBlockCopies();
}

bool ChannelsLast::mayFold(const Problem& problem) noexcept {
  // A filter gradient of 16 bits has no blocks larger than the filter's step.
  const bool hasBlocks = problem.dimensions == 4 && Blocking::hasFewChannels(problem) &&
                         (Blocking::pixelsOf(problem) != 1 || !isRounded(problem.wType) ||
                          problem.operation != Operation::kBackwardFilter);
  return !hasBlocks && isCopiedLast(problem) && mayBeCopied(problem) && problem.dimensions >= 4 &&
         std::min(problem.xSizes[1], problem.ySizes[1]) <= kFoldedChannels / 2 &&
         isFoldable(problem);
}

int ChannelsLast::foldsOf(const Problem& problem) {
  if (!mayFold(problem)) return 1;
  const std::size_t row = spatialOf(problem) - 1;
  const std::int64_t few = std::min(problem.xSizes[1], problem.ySizes[1]);
  int folds = 1;
  while (2 * folds <= kMostFolds && 2 * few * folds <= kFoldedChannels) folds *= 2;
  const auto wastes = [&](std::int64_t columns) {
    const std::int64_t unused = (columns - problem.ySizes[2 + row] % columns) % columns;
    return unused * kMostUnused > problem.ySizes[2 + row];
  };
  // Where one band is too large, there may be more.
  while (folds > 1 && (wastes(folds) || !canFold(problem, Bands(), folds))) folds /= 2;
  return folds > 1 && hasBlockCopies() ? folds : 1;
}

ChannelsLast::ChannelsLast(const Problem& problem, int most, int folds) noexcept
    : ChannelsLast(
          problem, ofPixels(problem), *Bands::of(ofPixels(problem), most, folds > 1), folds) {}

ChannelsLast::ChannelsLast(const Problem& problem,
                           const Problem& read,
                           const Bands& bands,
                           int folds) noexcept
    : Copying(lastOf(read, bands, folds), true, bands.count) {
  const auto last = static_cast<std::size_t>(problem.dimensions) - 1;
  const BlockLine line(read, last - 2, folds);
  const bool isFolded = folds > 1;
  const CopiedTensor x{read.xSizes, read.xStrides, problem_.xSizes, isFolded ? line.inBlock : 0};
  const CopiedTensor y{read.ySizes, read.yStrides, problem_.ySizes, isFolded ? folds : 0};
  if (read.xSizes != problem.xSizes) clearedBytes_ = problem.xBytes();
  if (!isFolded && problem_.wSizes[0] != problem.wSizes[0]) clearedFilterBytes_ = problem_.wBytes();
  x_ = copyOf(read, x, bands, bands.x);
  y_ = copyOf(read, y, bands, bands.y);
  if (isFolded) x_.whole.padX = read.pads[last - 2];

  const Problem::Sizes& w = problem.wSizes;
  const Problem::FilterStrides strides = problem.wStrides();
  const bool joinsFirst = last == 4 && isFolded, joinsLast = last == 4 && !isFolded;
  w_.numberBytes = x_.whole.numberBytes;
  w_.strides[0] = static_cast<std::int64_t>(strides[0]);
  w_.strides[1] = static_cast<std::int64_t>(strides[1]);
  w_.strides[2] = static_cast<std::int64_t>(strides[joinsFirst ? 3 : 2]);
  w_.strides[3] = static_cast<std::int64_t>(strides[last]);
  w_.count = w[0];
  w_.channels = w[1];
  w_.height = w_.down = joinsFirst ? w[2] * w[3] : w[2];
  w_.width = w_.across = joinsLast ? w[3] * w[4] : w[last];
  w_.rows = w_.columns = w_.shiftsY = w_.shiftsX = w_.stepY = w_.stepX = 1;
  w_.numbers = problem_.wSizes[1];
  if (!isFolded) return;
  w_.across = problem_.wSizes[last];
  w_.columns = static_cast<std::int32_t>(line.inBlock);
  w_.shiftsX = folds;
  w_.stepX = static_cast<std::int32_t>(line.step);
  w_.inPixel = x_.whole.numbers;
  w_.inShift = y_.whole.numbers;
}

}  // namespace ucudnn
