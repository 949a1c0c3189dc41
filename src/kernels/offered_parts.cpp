#include "kernels/offered_parts.hpp"

#if UCUDNN_HAS_ENGINES

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "kernels/blocks.hpp"
#include "kernels/built_engine.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/sums.hpp"
#include "kernels/tiles.hpp"

namespace ucudnn {
namespace {

// A launch takes as long as copying a smaller band: 2.5 us on Hopper, whose memory moves 8 MiB in
// that time. A device with slower memory copies less.
constexpr std::size_t kLeastBandBytes = std::size_t{8} << 20;
constexpr double kLaunchMs = 2.5e-3;
// Small parts: of an H200's 32 MiB. Most limits leave room for them.
constexpr std::size_t kSmallInLeast = 4;
// The workspace of a limit that engines have beside a band's copies: mostly some KB. Those of a
// filter gradient sum its parts there, one of 128 x 128 floats for each multiprocessor, or, in
// float, two of a large gradient: on an H100 engines of misc/layers/one_sample.csv want 0 to 17
// MiB.
constexpr std::size_t kEnginesPart = 64, kSumsBytes = std::size_t{64} << 10;
// Engines' tiles have so many pixels of so many channels; Hopper's largest have twice as many
// channels.
constexpr int kTilePixels = 128, kFewChannels = 128;
// On an H200 one more band costs some 15 us (planner_large_list_test in 64 and 256 bands). A wave
// takes about as long if each of its outputs sums so many products of two bytes.
constexpr double kProductsOfALaunch = 1700;
constexpr int kTriedForWaves = 8;
constexpr double kMoreHalos = 1.05;  // what more bands must save: they copy more rows twice
constexpr int kManyChannels = 64;
// Blocks of fewer numbers have larger ones beside them.
constexpr int kFewInBlock = 16;
// More bands are only for large problems.
constexpr int kMostOffered = 256;
// Larger bands are no faster. Nothing else bounds the bands of a large problem without a limit.
constexpr std::size_t kMostBandBytes = std::size_t{1} << 30;
// With more samples, micro-batches serve as well as bands.
constexpr int kMostBandedBatch = 4;

/// An attribute of the current device; 0 where it can't be asked.
int attributeOf(cudaDeviceAttr attribute) noexcept {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // else the program would find it
    return 0;
  }
  return std::max(0, value);
}

/// The least band that is worth its launch on the current device. The largest of all devices where
/// it can't be asked.
std::size_t leastBandBytes() noexcept {
  const int kilohertz = attributeOf(cudaDevAttrMemoryClockRate);
  const int bits = attributeOf(cudaDevAttrGlobalMemoryBusWidth);
  if (kilohertz == 0 || bits == 0) return kLeastBandBytes;
  const double bytesPerMs = 2.0 * kilohertz * (bits / 8.0);  // two transfers a clock
  return std::min(kLeastBandBytes, static_cast<std::size_t>(bytesPerMs * kLaunchMs));
}

/// The part of a limit that a band's copies may take: its engine needs the rest.
std::size_t copiedWithin(std::size_t limitBytes, const Problem& problem, int multiprocessors) {
  std::size_t engine = limitBytes / kEnginesPart;
  if (problem.operation == Operation::kBackwardFilter) {
    const std::size_t sums = static_cast<std::size_t>(multiprocessors) * kSumsBytes;
    engine += isRounded(problem.wType) ? sums : std::max(sums, 2 * problem.wBytes());
  }
  return limitBytes - std::min(engine, limitBytes / 2);
}

bool exists(const Problem& problem, const EngineConfiguration& kind) {
  return ChannelsLast::exists(problem, kind.bands, kind.folds);
}

/// The fewest bands, more than those of `kind`, whose copies take at most `bytes`; empty if too
/// many would. Throws Error.
std::optional<int> fewestBands(const Problem& problem,
                               EngineConfiguration kind,
                               std::size_t bytes) {
  int fewer = kind.bands, enough = kMostOffered + 1;
  while (enough - fewer > 1) {
    kind.bands = fewer + (enough - fewer) / 2;
    // Of too many bands some would be empty. Others may not exist because they are too large.
    const bool areTooMany = !Bands::of(problem, kind.bands, kind.folds > 1);
    const bool fits =
        areTooMany || (exists(problem, kind) && EnginePart(problem, kind).ownBytes <= bytes);
    (fits ? enough : fewer) = kind.bands;
  }
  kind.bands = enough;
  if (enough > kMostOffered || !exists(problem, kind)) return std::nullopt;
  return enough;
}

/// The time of all bands, in waves: as many thread blocks as there are multiprocessors, each with a
/// tile of outputs. A band's last wave takes as long as a full one. The mean of both kinds of
/// tiles.
double wavesOf(const Problem& problem, const EngineConfiguration& kind, int multiprocessors) {
  const Problem band = EnginePart(problem, kind).problem;
  const bool isForward = problem.operation != Operation::kBackwardData;
  const Problem::Sizes& output = isForward ? band.ySizes : band.xSizes;
  double pixels = output[0], products = isForward ? band.wSizes[1] : band.wSizes[0] / band.groups;
  for (std::size_t i = 2; i < static_cast<std::size_t>(band.dimensions); ++i) {
    pixels *= output[i];
    products *= band.wSizes[i];
  }
  const auto wavesBy = [&](int channels) {
    const double tiles = std::ceil(pixels / kTilePixels) * std::ceil(1.0 * output[1] / channels);
    return std::ceil(tiles / multiprocessors) * channels / kFewChannels;
  };
  const double launch = (isRounded(problem.xType) ? 1 : 0.5) * kProductsOfALaunch / products;
  return kind.bands * ((wavesBy(kFewChannels) + wavesBy(2 * kFewChannels)) / 2 + launch);
}

/// As many bands as `kind` has, or some more if that saves waves. Throws Error.
int withFullWaves(const Problem& problem, EngineConfiguration kind, int multiprocessors) {
  const int fewest = kind.bands;
  if (problem.operation == Operation::kBackwardFilter || multiprocessors == 0) return fewest;
  int best = fewest;
  double least = 0;
  for (int i = 0; i < kTriedForWaves; ++i) {
    kind.bands = fewest + i * std::max(1, fewest / kTriedForWaves);
    if (kind.bands > kMostOffered || !exists(problem, kind)) break;
    const double waves = wavesOf(problem, kind, multiprocessors);
    if (i > 0 && waves * kMoreHalos >= least) continue;
    least = waves;
    best = kind.bands;
  }
  return best;
}

/// The numbers of bands that are worth it if tensors are copied channels last, so many columns of y
/// as a pixel. One band is, too, if columns are folded or in half and bfloat16, unless channels are
/// last already: engines copy those only to fill their channels. Others are the largest bands
/// within a power of two, because limits mostly are one, or some more that fill the
/// multiprocessors. Like tiles, they don't depend on a limit. Throws Error.
std::vector<EngineConfiguration> bandsOf(const Problem& problem, int folds) {
  const std::size_t copied = problem.xBytes() + problem.yBytes();
  std::vector<EngineConfiguration> kinds;
  if (problem.mathType == CUDNN_FMA_MATH) return kinds;
  EngineConfiguration kind;
  kind.blocks = 1;
  kind.folds = folds;
  const std::size_t least = leastBandBytes();
  const bool gainsWhole = (isRounded(problem.xType) && isCopiedLast(problem)) || folds > 1;
  if (gainsWhole && copied >= least && exists(problem, kind)) kinds.push_back(kind);
  const int multiprocessors = attributeOf(cudaDevAttrMultiProcessorCount);
  std::size_t limitBytes = 1;
  while (2 * limitBytes < copied + problem.wBytes()) limitBytes *= 2;
  for (; limitBytes >= least; limitBytes /= 2) {
    const std::size_t bytes = copiedWithin(limitBytes, problem, multiprocessors);
    if (!kinds.empty() && EnginePart(problem, kinds.back()).ownBytes <= bytes) continue;
    const auto bands = fewestBands(problem, kind, bytes);
    if (!bands || copied / static_cast<std::size_t>(*bands) < least) break;
    kind.bands = *bands;
    kind.bands = withFullWaves(problem, kind, multiprocessors);
    kinds.push_back(kind);
  }
  return kinds;
}

/// The numbers of bands of a large problem, in any layout, with folded columns where they may be:
/// all other ways are much slower. Each number is four times the one before, because each costs
/// several timings of a long kernel. If all bands are too large or too small, there is one number.
/// Throws Error.
std::vector<EngineConfiguration> bandsOfLarge(const Problem& problem) {
  std::vector<EngineConfiguration> kinds;
  EngineConfiguration kind;
  kind.blocks = 1;
  const int folds = ChannelsLast::foldsOf(problem);
  bool isTooLarge = false;
  const std::size_t least = leastBandBytes();
  for (kind.bands = 2; kind.bands <= kMostBands;
       kind.bands *= kinds.empty() || isTooLarge ? 2 : 4) {
    kind.folds = folds;
    if (!exists(problem, kind)) kind.folds = 1;
    if (!exists(problem, kind)) continue;
    const std::size_t bytes = EnginePart(problem, kind).ownBytes;
    if (!kinds.empty() && bytes < least) break;
    if (isTooLarge) kinds.clear();
    kinds.push_back(kind);
    isTooLarge = bytes > kMostBandBytes;
  }
  return kinds;
}

}  // namespace

bool hasFewSamples(const Problem& problem) noexcept {
  return problem.batch() <= kMostBandedBatch ||
         (problem.operation == Operation::kBackwardFilter && isRounded(problem.wType));
}

std::vector<EngineConfiguration> groupTilesOf(const Problem& problem) {
  std::vector<EngineConfiguration> kinds;
  const bool isDepthwise = problem.wSizes[1] == 1;
  if (problem.groups == 1 || isDepthwise || problem.mathType == CUDNN_FMA_MATH ||
      !hasFewSamples(problem))
    return kinds;
  const std::size_t copied = problem.xBytes() + problem.yBytes() + problem.wBytes();
  const std::size_t least = leastBandBytes();
  EngineConfiguration kind;
  for (kind.tiles = 2; kind.tiles <= kMostTiles; kind.tiles *= 2) {
    if (copied / static_cast<std::size_t>(kind.tiles) < least) break;
    if (!cutInTiles(problem, kind.tiles).empty()) kinds.push_back(kind);
  }
  return kinds;
}

std::int64_t numbersInBlock(const Problem& problem) noexcept {
  return std::int64_t{problem.xSizes[1]} * Blocking::pixelsOf(problem);
}

bool hasFewInBlock(const Problem& problem) noexcept {
  return numbersInBlock(problem) <= kFewInBlock;
}

std::vector<EngineConfiguration> blocksOf(const Problem& problem) {
  std::vector<EngineConfiguration> kinds;
  if (!Blocking::hasFewChannels(problem)) return kinds;
  const bool keepsY = !isRounded(problem.xType);
  const auto add = [&](int pixels) {
    if (!Blocking::exists(problem, pixels)) return;
    EngineConfiguration kind;
    kind.blocks = pixels;
    const bool mayCopyY = Blocking::exists(problem, pixels, true);
    if (!mayCopyY || keepsY) kinds.push_back(kind);
    kind.last = 1;
    if (mayCopyY) kinds.push_back(kind);
  };
  const int smallest = Blocking::pixelsOf(problem);
  if (smallest > 1) add(smallest);
  if (problem.mathType != CUDNN_FMA_MATH && hasFewInBlock(problem)) add(4 * smallest);
  return kinds;
}

std::vector<EngineConfiguration> foldedParts(const Problem& problem) {
  const int folds = ChannelsLast::foldsOf(problem);
  return folds == 1 ? std::vector<EngineConfiguration>() : bandsOf(problem, folds);
}

bool hasManyOnOneSide(const Problem& problem) noexcept {
  const auto [few, many] = std::minmax(problem.xSizes[1], problem.ySizes[1]);
  return many >= kManyChannels && few >= kManyChannels / 2;
}

std::vector<EngineConfiguration> partsOfSample(const Problem& problem) {
  std::vector<EngineConfiguration> kinds = groupTilesOf(problem);
  for (EngineConfiguration& kind : bandsOf(problem, 1)) kinds.push_back(std::move(kind));
  return kinds;
}

namespace {

/// Parts of the batch, in numbers from `fewest` on, kept in `number`.
template <typename Cut>
std::vector<EngineConfiguration> partsOfBatch(const Problem& problem,
                                              int EngineConfiguration::*number,
                                              int fewest,
                                              Cut cut) {
  std::vector<EngineConfiguration> kinds;
  const std::size_t copied = problem.xBytes() + problem.yBytes(), least = leastBandBytes();
  for (int parts = fewest; !cut(problem, parts).empty(); parts *= 2) {
    if (copied / static_cast<std::size_t>(parts) < least) break;
    kinds.emplace_back();
    kinds.back().*number = parts;
  }
  return kinds;
}

/// Whether the parts copy little enough at a time. Bands of all samples don't where the filter is
/// dilated, so that most rows of a band belong to the next one, too.
bool areSmall(const std::vector<EngineConfiguration>& parts, const Problem& problem) {
  if (parts.empty()) return false;
  const int most = std::max(parts.back().bands, parts.back().tiles);
  const std::size_t copied = problem.xBytes() + problem.yBytes();
  return copied / static_cast<std::size_t>(most) <= kSmallInLeast * leastBandBytes();
}

}  // namespace

std::vector<EngineConfiguration> splitsOf(const Problem& problem) {
  if (cutToSplit(problem, 2).empty()) return {};
  if (!Blocking::hasFewChannels(problem) && isCopiedLast(problem) &&
      areSmall(partsOfSample(problem), problem))
    return {};
  return partsOfBatch(problem, &EngineConfiguration::splits, 2, cutToSplit);
}

std::vector<EngineConfiguration> sumsOf(const Problem& problem) {
  if (!Blocking::hasFewChannels(problem)) return {};
  return partsOfBatch(problem, &EngineConfiguration::sums, kFewestSums, cutToSum);
}

std::vector<EngineConfiguration> partsOfLarge(const Problem& problem) {
  std::vector<EngineConfiguration> kinds = bandsOfLarge(problem);
  const auto isDivided = [](const std::vector<Part>& parts) {
    return !parts.empty() && !parts.front().problem.isLarge();
  };
  EngineConfiguration kind;
  for (kind.tiles = 2; kind.tiles <= kMostTiles; kind.tiles *= 2)
    if (isDivided(cutInTiles(problem, kind.tiles))) kinds.push_back(kind);
  kind.tiles = 1;
  for (kind.sums = kFewestSums; kind.sums <= kMostSums; kind.sums *= 2)
    if (isDivided(cutToSum(problem, kind.sums))) kinds.push_back(kind);
  return kinds;
}

}  // namespace ucudnn

#endif
