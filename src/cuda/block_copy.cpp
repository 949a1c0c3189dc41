#include "cuda/block_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "cuda/dependent_launch.hpp"
#include "cuda/owners.hpp"
#include "support/fork.hpp"

namespace ucudnn {

#if CUDART_VERSION >= 13000

// The code that nvcc has made of block_copy.cu.
extern "C" const unsigned char ucudnnBlockCopyCode[];

namespace {

using namespace block_copy;

// As many as large GPUs have at a time: an H200 792.
constexpr std::int64_t kEnoughThreadBlocks = 1024;

/// The kernels for numbers of one size.
struct Kernels {
  cudaKernel_t toBlocks = nullptr, fromBlocks = nullptr;
  cudaKernel_t pixelsToBlocks = nullptr, pixelsFromBlocks = nullptr, pixels = nullptr;
  cudaKernel_t filtersToBlocks = nullptr, filtersFromBlocks = nullptr;
  // Only for numbers of two bytes.
  cudaKernel_t pairsToBlocks = nullptr, pairsFromBlocks = nullptr, pairs = nullptr;
  cudaKernel_t filtersFromFloats = nullptr;
  // Only for floats.
  cudaKernel_t quadsToBlocks = nullptr, quadsFromBlocks = nullptr;
  cudaKernel_t toPlanes = nullptr, fromPlanes = nullptr;
};
struct AllKernels {
  Kernels floats, halves;

  const Kernels& of(std::int32_t numberBytes) const noexcept {
    return numberBytes == sizeof(float) ? floats : halves;
  }
};

/// Works while the client captures, too. Throws Error.
cudaError_t load(AllKernels& kernels) {
  int device = 0;  // without one there is nothing to load it for
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  const RelaxedCapture relaxed;
  cudaLibrary_t library = nullptr;
  error =
      cudaLibraryLoadData(&library, ucudnnBlockCopyCode, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != cudaSuccess) return error;
  const auto find = [&](cudaKernel_t& kernel, const char* name) {
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&kernel, library, name);
  };
  find(kernels.floats.toBlocks, "ucudnnToBlocks");
  find(kernels.floats.fromBlocks, "ucudnnFromBlocks");
  find(kernels.floats.pixelsToBlocks, "ucudnnPixelsToBlocks");
  find(kernels.floats.pixelsFromBlocks, "ucudnnPixelsFromBlocks");
  find(kernels.floats.pixels, "ucudnnPixels");
  find(kernels.floats.filtersToBlocks, "ucudnnFiltersToBlocks");
  find(kernels.floats.filtersFromBlocks, "ucudnnFiltersFromBlocks");
  find(kernels.floats.quadsToBlocks, "ucudnnQuadsToBlocks");
  find(kernels.floats.quadsFromBlocks, "ucudnnQuadsFromBlocks");
  find(kernels.floats.toPlanes, "ucudnnToPlanes");
  find(kernels.floats.fromPlanes, "ucudnnFromPlanes");
  find(kernels.halves.toBlocks, "ucudnnToBlocks16");
  find(kernels.halves.fromBlocks, "ucudnnFromBlocks16");
  find(kernels.halves.pixelsToBlocks, "ucudnnPixelsToBlocks16");
  find(kernels.halves.pixelsFromBlocks, "ucudnnPixelsFromBlocks16");
  find(kernels.halves.pixels, "ucudnnPixels16");
  find(kernels.halves.pairsToBlocks, "ucudnnPairsToBlocks16");
  find(kernels.halves.pairsFromBlocks, "ucudnnPairsFromBlocks16");
  find(kernels.halves.pairs, "ucudnnPairs16");
  find(kernels.halves.filtersToBlocks, "ucudnnFiltersToBlocks16");
  find(kernels.halves.filtersFromBlocks, "ucudnnFiltersFromBlocks16");
  find(kernels.halves.filtersFromFloats, "ucudnnFiltersFromFloats16");
  if (error != cudaSuccess) cudaLibraryUnload(library);
  return error;
}

/// Loads the kernels on first use, for all devices, and never unloads them: handles are used in
/// static destructors. A failure is not kept, because memory may be short for a while.
cudaError_t loaded(AllKernels& kernels) noexcept try {
  static LongForkMutex& mutex = *new LongForkMutex;
  static AllKernels known;
  static bool isLoaded = false;
  const std::lock_guard lock(mutex);
  if (!isLoaded) {
    const cudaError_t error = load(known);
    if (error != cudaSuccess) return error;
    isLoaded = true;
  }
  kernels = known;
  return cudaSuccess;
} catch (const Error&) {
  return cudaErrorUnknown;
}

/// Whether the code may yet be loaded. Any other failure says that the code does not work with this
/// device, driver or runtime.
bool mayPass(cudaError_t error) noexcept {
  return error == cudaErrorMemoryAllocation || error == cudaErrorStreamCaptureUnsupported ||
         error == cudaErrorUnknown;
}

/// REQUIRES: there are fewer than 2^31 thread blocks.
template <typename Copy>
cudaError_t launch(cudaKernel_t Kernels::*kernel,
                   const Copy& copy,
                   dim3 threadBlocks,
                   dim3 threads,
                   cudaStream_t stream) noexcept {
  AllKernels kernels;
  const cudaError_t error = loaded(kernels);
  if (error != cudaSuccess) return error;
  Copy argument = copy;
  void* arguments[] = {&argument};
  return launchDependent(
      kernels.of(copy.numberBytes).*kernel, threadBlocks, threads, arguments, stream);
}

bool isAligned(const void* memory, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % bytes == 0;
}

/// Whether each channel of a block is four floats, in two pairs of neighbours in the tensor, and
/// the blocks are exactly the tensor.
bool movesQuads(const BlockCopy& copy) noexcept {
  const auto isEven = [](std::int64_t value) { return value % 2 == 0; };
  return copy.numberBytes == sizeof(float) && copy.rows == 2 && copy.columns == 2 &&
         copy.padY == 0 && copy.padX == 0 && copy.numbers == 4 * copy.channels &&
         2 * copy.across == copy.width && copy.across <= kLanes * kMostThreadBlocks &&
         (2 * copy.down == copy.height || 2 * copy.down == copy.height + 1) &&
         copy.strides[3] == 1 &&
         std::all_of(std::begin(copy.strides), std::end(copy.strides) - 1, isEven) &&
         isAligned(copy.tensor, 2 * sizeof(float)) && isAligned(copy.blocks, 4 * sizeof(float));
}

/// Whether each pixel of the tensor is a block that is moved four channels at a time.
bool movesPixels(const BlockCopy& copy) noexcept {
  return copy.rows == 1 && copy.columns == 1 && copy.padY >= 0 && copy.padX >= 0 &&
         copy.down - copy.padY >= copy.height && copy.across - copy.padX >= copy.width &&
         copy.numbers % 4 == 0 && copy.numbers >= copy.channels &&
         copy.numbers <= kMostThreadBlocks && copy.samples <= kMostThreadBlocks &&
         isAligned(copy.blocks, 4 * static_cast<std::size_t>(copy.numberBytes));
}

/// Whether pixels are moved in pairs: numbers of two bytes, whose neighbours are neighbours in the
/// tensor too. Both of a pair lie within the tensor, or both beyond it.
bool movesPairs(const BlockCopy& copy) noexcept {
  const auto isEven = [](std::int64_t value) { return value % 2 == 0; };
  return copy.numberBytes == 2 && movesPixels(copy) && copy.numbers % 8 == 0 &&
         copy.strides[3] == 1 &&
         std::all_of(std::begin(copy.strides), std::end(copy.strides) - 1, isEven) &&
         isEven(copy.width) && isEven(copy.across) && isEven(copy.padX) &&
         isAligned(copy.tensor, 4) && isAligned(copy.blocks, 16);
}

std::int32_t tilesOf(std::int32_t size, std::int32_t most) noexcept {
  return (size - 1) / most + 1;
}

/// Makes one line of pixels that follow one another, so that they mostly aren't divided by the
/// line's length.
BlockCopy inOneLine(BlockCopy copy) noexcept {
  if (copy.strides[2] == copy.width * copy.strides[3] && copy.across == copy.width) {
    copy.padX = copy.padY * copy.width;
    copy.across *= copy.down;
    copy.width *= copy.height;
    copy.padY = 0;
    copy.down = copy.height = 1;
  }
  return copy;
}

/// Pixels that are side by side in a tile: more if they have few channels.
std::int32_t tileWidth(const BlockCopy& copy) noexcept {
  if (copy.down * copy.across <= kFewPixels) return kFewPixels;
  std::int32_t width = 4 * kLanes;
  while (width > kLanes && copy.numbers > kTileNumbers / width) width /= 2;
  return width;
}

dim3 pixelTilesOf(const BlockCopy& copy) noexcept {
  const std::int32_t width = tileWidth(copy);
  return {static_cast<unsigned>(tilesOf(copy.down * copy.across, width)),
          static_cast<unsigned>(tilesOf(copy.numbers, kTileNumbers / width)),
          static_cast<unsigned>(copy.samples)};
}

cudaError_t launchPixels(cudaKernel_t Kernels::*kernel,
                         const BlockCopy& pixels,
                         cudaStream_t stream) noexcept {
  const BlockCopy copy = inOneLine(pixels);
  const auto width = static_cast<unsigned>(tileWidth(copy));
  return launch(kernel, copy, pixelTilesOf(copy), dim3(width, kThreads / width), stream);
}

dim3 pairTilesOf(const BlockCopy& copy) noexcept {
  const std::int32_t channels = copy.numbers <= 16 ? 16 : copy.numbers <= 32 ? 32 : 64;
  return {static_cast<unsigned>(tilesOf(copy.down * copy.across, kPairNumbers / channels)),
          static_cast<unsigned>(tilesOf(copy.numbers, channels)),
          static_cast<unsigned>(copy.samples)};
}

cudaError_t launchPairs(cudaKernel_t Kernels::*kernel,
                        const BlockCopy& pixels,
                        cudaStream_t stream) noexcept {
  const BlockCopy copy = inOneLine(pixels);
  return launch(kernel, copy, pairTilesOf(copy), dim3(kThreads), stream);
}

/// The filters as a tensor, each filter a sample. REQUIRES: they have one shift.
BlockCopy tensorOf(const FilterCopy& filters) noexcept {
  BlockCopy copy{};
  copy.tensor = filters.filters;
  copy.blocks = filters.blocks;
  std::copy_n(filters.strides, std::size(copy.strides), copy.strides);
  copy.samples = filters.count;
  copy.channels = filters.channels;
  copy.height = filters.height;
  copy.width = filters.width;
  copy.rows = filters.rows;
  copy.columns = filters.columns;
  copy.down = filters.down;
  copy.across = filters.across;
  copy.numbers = filters.numbers;
  copy.adds = filters.adds;
  copy.numberBytes = filters.numberBytes;
  return copy;
}
bool movesPixels(const FilterCopy& copy) noexcept {
  return copy.shiftsY == 1 && copy.shiftsX == 1 && copy.hasFloats == 0 &&
         movesPixels(tensorOf(copy));
}

/// Whether the cost of a launch is small beside the copy.
bool isLarge(const BlockCopy& copy) noexcept {
  constexpr std::int64_t kNumbers = 1 << 20;
  return std::int64_t{copy.samples} * copy.numbers * copy.down * copy.across > kNumbers;
}

/// Copies by one launch, and its kernel.
struct OneLaunch {
  cudaKernel_t Kernels::*kernel;
  PixelCopies all;
};

/// A sum without copies.
OneLaunch oneLaunchOf(const WideSum& sum) noexcept {
  OneLaunch one{&Kernels::pairs, {}};
  constexpr std::int64_t kInTile = std::int64_t{kThreads} * kSummedAtOnce;
  one.all.numberBytes = 2;
  one.all.sumTiles = static_cast<std::int32_t>((sum.count + kInTile - 1) / kInTile);
  one.all.sum = sum;
  return one;
}

/// Empty if there is less than two to do, if a copy has blocks of several pixels or other numbers,
/// or if one is faster alone.
std::optional<OneLaunch> oneLaunchOf(const CopyList& list) noexcept {
  OneLaunch one = list.sum() ? oneLaunchOf(*list.sum()) : OneLaunch{&Kernels::pairs, {}};
  std::size_t count = 0;
  bool hasLargePairs = false;
  for (const CopyList::Entry& each : list) {
    const auto* const filters = std::get_if<FilterCopy>(&each.copy);
    if (filters != nullptr && !movesPixels(*filters)) return std::nullopt;
    BlockCopy& copy = one.all.copies[count];
    copy = inOneLine(filters != nullptr ? tensorOf(*filters) : *std::get_if<BlockCopy>(&each.copy));
    std::int32_t& numberBytes = one.all.numberBytes;
    if (numberBytes == 0) numberBytes = copy.numberBytes;
    if (!movesPixels(copy) || copy.numberBytes != numberBytes) return std::nullopt;
    one.all.toBlocks[count++] = each.toBlocks ? 1 : 0;
    if (movesPairs(copy))
      hasLargePairs = hasLargePairs || isLarge(copy);
    else
      one.kernel = &Kernels::pixels;
  }
  const bool arePixels = one.kernel == &Kernels::pixels;
  if (arePixels && hasLargePairs) return std::nullopt;
  if (count + (list.sum() ? 1 : 0) < 2) return std::nullopt;
  std::int64_t tiles = one.all.sumTiles;
  for (std::size_t i = 0; i < count; ++i) {
    const BlockCopy& copy = one.all.copies[i];
    const dim3 grid = arePixels ? pixelTilesOf(copy) : pairTilesOf(copy);
    const std::int64_t own = std::int64_t{grid.x} * grid.y * grid.z;
    if ((tiles += own) > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    one.all.tiles[i] = static_cast<std::int32_t>(own);
    one.all.pixelTiles[i] = static_cast<std::int32_t>(grid.x);
    one.all.channelTiles[i] = static_cast<std::int32_t>(grid.y);
  }
  return one;
}

cudaError_t launchAtOnce(const OneLaunch& one, cudaStream_t stream) noexcept {
  const PixelCopies& all = one.all;
  const std::int32_t tiles =
      std::accumulate(std::begin(all.tiles), std::end(all.tiles), all.sumTiles);
  return launch(one.kernel, all, dim3(static_cast<unsigned>(tiles)), dim3(kThreads), stream);
}

cudaError_t launchQuads(cudaKernel_t Kernels::*kernel,
                        const BlockCopy& copy,
                        cudaStream_t stream) noexcept {
  const auto tiles = [](std::int32_t size) { return static_cast<unsigned>(tilesOf(size, kLanes)); };
  const dim3 threadBlocks(static_cast<unsigned>(copy.samples) * static_cast<unsigned>(copy.down),
                          tiles(copy.channels),
                          tiles(copy.across));
  return launch(kernel, copy, threadBlocks, dim3(kLanes, kWarps), stream);
}

/// Divides each row of blocks into parts that fit into shared memory: into some of its channels,
/// and, if its thread blocks are few, also into some of its blocks. A signal in time is one row.
cudaError_t launch(cudaKernel_t Kernels::*kernel,
                   const BlockCopy& copy,
                   std::int32_t rows,
                   cudaStream_t stream) noexcept {
  const auto partsOf = [&](std::int64_t numbers) {
    return ((numbers + 1) * copy.across + kTile - 1) / kTile;
  };
  const std::int64_t inChannels = std::min<std::int64_t>(partsOf(copy.numbers), copy.channels);
  const std::int64_t inRows = std::int64_t{copy.samples} * rows;
  const std::int64_t missing = kEnoughThreadBlocks / (inRows * inChannels);
  const std::int64_t along =
      std::clamp<std::int64_t>(missing, 1, partsOf(copy.numbers / inChannels));
  const dim3 threadBlocks(static_cast<unsigned>(inRows),
                          static_cast<unsigned>(inChannels),
                          static_cast<unsigned>(along));
  return launch(kernel, copy, threadBlocks, dim3(kLanes, kWarps), stream);
}

/// Each line of each channel gets as many threads as it has pixels, at most a warp.
cudaError_t launchPlanes(cudaKernel_t Kernels::*kernel,
                         const BlockCopy& copy,
                         std::int32_t height,
                         std::int32_t width,
                         cudaStream_t stream) noexcept {
  dim3 threads(1);
  while (static_cast<int>(threads.x) < std::min(width, kLanes)) threads.x *= 2;
  threads.y = kThreads / threads.x;
  const std::int64_t lines = std::int64_t{copy.samples} * copy.channels * height;
  const dim3 threadBlocks(static_cast<unsigned>((lines + threads.y - 1) / threads.y));
  return launch(kernel, copy, threadBlocks, threads, stream);
}

/// A thread for each number.
cudaError_t launch(cudaKernel_t Kernels::*kernel,
                   const FilterCopy& copy,
                   std::int64_t numbers,
                   cudaStream_t stream) noexcept {
  const dim3 threadBlocks(static_cast<unsigned>((numbers + kThreads - 1) / kThreads));
  return launch(kernel, copy, threadBlocks, dim3(kThreads), stream);
}

}  // namespace

bool hasBlockCopies() {
  AllKernels kernels;
  const cudaError_t error = loaded(kernels);
  if (mayPass(error)) throwCudaError(error, "cudaLibraryLoadData", __FILE__, __LINE__);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error == cudaSuccess;
}

cudaError_t toBlocks(const BlockCopy& copy, cudaStream_t stream) noexcept {
  if (movesPairs(copy)) return launchPairs(&Kernels::pairsToBlocks, copy, stream);
  if (movesPixels(copy)) return launchPixels(&Kernels::pixelsToBlocks, copy, stream);
  if (movesQuads(copy)) return launchQuads(&Kernels::quadsToBlocks, copy, stream);
  return launch(&Kernels::toBlocks, copy, copy.down, stream);
}

cudaError_t fromBlocks(const BlockCopy& copy, cudaStream_t stream) noexcept {
  const std::int32_t rows = (copy.height + copy.padY + copy.rows - 1) / copy.rows;
  if (movesPairs(copy)) return launchPairs(&Kernels::pairsFromBlocks, copy, stream);
  if (movesPixels(copy)) return launchPixels(&Kernels::pixelsFromBlocks, copy, stream);
  if (movesQuads(copy)) return launchQuads(&Kernels::quadsFromBlocks, copy, stream);
  return launch(&Kernels::fromBlocks, copy, rows, stream);
}

cudaError_t toBlocks(const FilterCopy& copy, cudaStream_t stream) noexcept {
  if (movesPixels(copy)) return toBlocks(tensorOf(copy), stream);
  const std::int64_t inShift = copy.inShift > 0 ? copy.inShift : copy.count;
  const std::int64_t filters = inShift * copy.shiftsY * copy.shiftsX;
  const std::int64_t numbers = filters * copy.down * copy.across * copy.numbers;
  return launch(&Kernels::filtersToBlocks, copy, numbers, stream);
}

cudaError_t fromBlocks(const FilterCopy& copy, cudaStream_t stream) noexcept {
  if (movesPixels(copy)) return fromBlocks(tensorOf(copy), stream);
  const std::int64_t numbers = std::int64_t{copy.count} * copy.channels * copy.height * copy.width;
  const auto kernel =
      copy.hasFloats != 0 ? &Kernels::filtersFromFloats : &Kernels::filtersFromBlocks;
  return launch(kernel, copy, numbers, stream);
}

cudaError_t copyAll(const CopyList& copies, cudaStream_t stream) noexcept {
  if (const auto one = oneLaunchOf(copies)) return launchAtOnce(*one, stream);
  if (copies.sum())
    if (const cudaError_t error = launchAtOnce(oneLaunchOf(*copies.sum()), stream)) return error;
  const auto run = [&](const auto* copy, bool isToBlocks) {
    return copy == nullptr ? cudaSuccess
           : isToBlocks    ? toBlocks(*copy, stream)
                           : fromBlocks(*copy, stream);
  };
  for (const CopyList::Entry& each : copies) {
    cudaError_t error = run(std::get_if<BlockCopy>(&each.copy), each.toBlocks);
    if (error == cudaSuccess) error = run(std::get_if<FilterCopy>(&each.copy), each.toBlocks);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t toPlanes(const BlockCopy& copy, cudaStream_t stream) noexcept {
  return launchPlanes(
      &Kernels::toPlanes, copy, copy.down * copy.rows, copy.across * copy.columns, stream);
}

cudaError_t fromPlanes(const BlockCopy& copy, cudaStream_t stream) noexcept {
  return launchPlanes(&Kernels::fromPlanes, copy, copy.height, copy.width, stream);
}

#endif

}  // namespace ucudnn
