// cudaLibrary* and cudaLaunchKernelExC, for the only device code that μ-cuDNN has: src/cuda/
// block_copy.hpp says what its kernels do. Only with all arithmetic: a sample of what lies in
// blocks is none of the tensor.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/thread_state.hpp"

#if CUDART_VERSION >= 13000  // as in src/cuda/block_copy.cpp

using namespace ucudnn::simulator;

namespace {

using Strides = std::int64_t[4];

// The kernels' arguments, as they lie in memory.
struct BlockCopy {
  void *tensor, *blocks;
  Strides strides;
  std::int32_t samples, channels, height, width, rows, columns, padY, padX, down, across;
  std::int32_t numbers, adds, numberBytes;
};

struct FilterCopy {
  void *filters, *blocks;
  Strides strides;
  std::int32_t count, channels, height, width, rows, columns, shiftsY, shiftsX, stepY, stepX;
  std::int32_t down, across, numbers, adds, numberBytes, inPixel, inShift, hasFloats;
  std::int32_t isBfloat16;
};

struct WideSum {
  const void* numbers;
  void* sums;
  std::int64_t count;
  std::int32_t adds, isBfloat16;
};

struct PixelCopies {
  BlockCopy copies[3];
  std::int32_t toBlocks[3], tiles[3], pixelTiles[3], channelTiles[3], numberBytes, sumTiles;
  WideSum sum;
};

std::int64_t placeOf(const Strides& strides, const std::array<std::int32_t, 4>& index) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < index.size(); ++i) place += strides[i] * index[i];
  return place;
}

/// In numbers.
std::size_t spanOf(const Strides& strides, const std::array<std::int32_t, 4>& sizes) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) last += strides[i] * (sizes[i] - 1);
  return static_cast<std::size_t>(last + 1);
}

template <typename Function>
void forEach(const std::array<std::int32_t, 4>& sizes, Function f) {
  std::array<std::int32_t, 4> i{};
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) f(i);
}

/// How many.
std::size_t countOf(const std::array<std::int32_t, 4>& sizes) {
  std::size_t count = 1;
  for (const std::int32_t size : sizes) count *= static_cast<std::size_t>(size);
  return count;
}

/// The memory that a kernel copies between, and how the kernel runs.
struct Copy {
  void* tensor;
  std::size_t tensorBytes;  ///< gaps included
  void* blocks;
  std::size_t blockBytes;
  std::size_t movedBytes;  ///< of the tensor
  std::function<void()> toBlocks, fromBlocks;
};

/// The number of a block's pixel: of channel, row and column there.
template <typename Whole>
std::int64_t inBlock(const Whole& copy, std::int32_t channel, std::int32_t y, std::int32_t x) {
  return (std::int64_t{channel} * copy.rows + y % copy.rows) * copy.columns + x % copy.columns;
}

template <typename Whole>
std::size_t numbersOf(const Whole& copy, std::size_t packed) {
  return packed * static_cast<std::size_t>(copy.down) * static_cast<std::size_t>(copy.across) *
         static_cast<std::size_t>(copy.numbers);
}

/// For numbers that are not floats the blocks hold the sum.
template <typename Number>
Number sumOf(Number before, Number number) {
  if constexpr (std::is_same_v<Number, float>) return before + number;
  return number;
}

/// With `inPlanes` a plane for each number of a block.
template <typename Number>
Copy copyOf(const BlockCopy& copy, bool inPlanes = false) {
  const std::array<std::int32_t, 4> sizes{copy.samples, copy.channels, copy.height, copy.width};
  const std::size_t numbers = numbersOf(copy, static_cast<std::size_t>(copy.samples));
  auto* const tensor = static_cast<Number*>(copy.tensor);
  auto* const blocks = static_cast<Number*>(copy.blocks);
  // Negative: beyond the blocks.
  const auto blockedAt = [copy, inPlanes](const auto& index) -> std::int64_t {
    const std::int32_t y = index[2] + copy.padY, x = index[3] + copy.padX;
    if (y / copy.rows >= copy.down || x / copy.columns >= copy.across) return -1;
    const std::int64_t inSample = std::int64_t{copy.down} * copy.across;
    const std::int64_t block = y / copy.rows * std::int64_t{copy.across} + x / copy.columns;
    const std::int64_t number = inBlock(copy, index[1], y, x);
    return index[0] * inSample * copy.numbers +
           (inPlanes ? number * inSample + block : block * copy.numbers + number);
  };
  const auto take = [=] {
    std::fill_n(blocks, numbers, Number{});
    forEach(sizes, [&](const auto& index) {
      const std::int64_t to = blockedAt(index);
      if (to >= 0) blocks[to] = tensor[placeOf(copy.strides, index)];
    });
  };
  const auto give = [=] {
    forEach(sizes, [&](const auto& index) {
      const std::int64_t from = blockedAt(index);
      Number& to = tensor[placeOf(copy.strides, index)];
      if (copy.adds == 0)
        to = from >= 0 ? blocks[from] : Number{};
      else if (from >= 0)
        to = sumOf(to, blocks[from]);
    });
  };
  return {tensor,
          spanOf(copy.strides, sizes) * sizeof(Number),
          blocks,
          numbers * sizeof(Number),
          countOf(sizes) * sizeof(Number),
          take,
          give};
}

float widened(std::uint16_t number, bool isBfloat16) {
  return isBfloat16 ? __bfloat162float(__ushort_as_bfloat16(number))
                    : __half2float(__ushort_as_half(number));
}
std::uint16_t rounded(float number, bool isBfloat16) {
  return isBfloat16 ? __bfloat16_as_ushort(__float2bfloat16(number))
                    : __half_as_ushort(__float2half(number));
}

/// Of the filters' numbers: `Number`. Of the blocks': `Block`.
template <typename Number, typename Block = Number>
Copy copyOf(const FilterCopy& copy) {
  const std::array<std::int32_t, 4> sizes{copy.count, copy.channels, copy.height, copy.width};
  const auto shifts =
      static_cast<std::size_t>(copy.shiftsY) * static_cast<std::size_t>(copy.shiftsX);
  const std::int32_t inShift = copy.inShift > 0 ? copy.inShift : copy.count;
  const std::size_t numbers = numbersOf(copy, static_cast<std::size_t>(inShift) * shifts);
  auto* const filters = static_cast<Number*>(copy.filters);
  auto* const blocks = static_cast<Block*>(copy.blocks);
  const auto forEachShift = [copy, blocks](const auto& index, auto f) {
    for (std::int32_t down = 0; down < copy.shiftsY; ++down)
      for (std::int32_t across = 0; across < copy.shiftsX; ++across) {
        const std::int32_t y = index[2] + down * copy.stepY, x = index[3] + across * copy.stepX;
        const std::int64_t shift = down * copy.shiftsX + across;
        const std::int64_t ofShift = shift * copy.inShift + index[0];
        const std::int64_t ofFilter = index[0] * copy.shiftsY * copy.shiftsX + shift;
        std::int64_t block = copy.inShift > 0 ? ofShift : ofFilter;
        block = (block * copy.down + y / copy.rows) * copy.across + x / copy.columns;
        const std::int64_t pixel = y % copy.rows * copy.columns + x % copy.columns;
        const std::int64_t byPixel = pixel * copy.inPixel + index[1];
        const std::int64_t number = copy.inPixel > 0 ? byPixel : inBlock(copy, index[1], y, x);
        f(blocks[block * copy.numbers + number]);
      }
  };
  const auto take = [=] {
    std::fill_n(blocks, numbers, Number{});
    forEach(sizes, [&](const auto& index) {
      const Number tap = filters[placeOf(copy.strides, index)];
      forEachShift(index, [&](Block& to) { to = static_cast<Block>(tap); });
    });
  };
  const auto give = [=] {
    forEach(sizes, [&](const auto& index) {
      Block sum{};
      forEachShift(index, [&](Block& from) { sum = sumOf(sum, from); });
      Number& to = filters[placeOf(copy.strides, index)];
      if constexpr (std::is_same_v<Number, Block>) {
        to = copy.adds != 0 ? sumOf(to, sum) : sum;
      } else {
        const bool isBfloat16 = copy.isBfloat16 != 0;
        to = rounded(copy.adds != 0 ? widened(to, isBfloat16) + sum : sum, isBfloat16);
      }
    });
  };
  return {filters,
          spanOf(copy.strides, sizes) * sizeof(Number),
          blocks,
          numbers * sizeof(Block),
          countOf(sizes) * sizeof(Number),
          take,
          give};
}

Copy copyOf(const WideSum& sum) {
  const auto give = [=] {
    const auto* const from = static_cast<const std::uint16_t*>(sum.numbers);
    auto* const to = static_cast<float*>(sum.sums);
    for (std::int64_t i = 0; i < sum.count; ++i) {
      const float number = widened(from[i], sum.isBfloat16 != 0);
      to[i] = sum.adds != 0 ? to[i] + number : number;
    }
  };
  const auto count = static_cast<std::size_t>(sum.count);
  // The sums are read and written.
  return {sum.sums,
          count * sizeof(float),
          const_cast<void*>(sum.numbers),
          count * sizeof(std::uint16_t),
          2 * count * sizeof(float),
          nullptr,
          give};
}

struct KernelOfOurs {
  const char* name;
  bool toBlocks;
  Copy (*copyOf)(const void* argument);  ///< null: its argument is PixelCopies
};

template <typename Whole, typename Number>
Copy read(const void* argument) {
  return copyOf<Number>(*static_cast<const Whole*>(argument));
}

/// The device code reads and writes each block's upper row wherever that is.
Copy readQuads(const void* argument) {
  BlockCopy copy = *static_cast<const BlockCopy*>(argument);
  copy.height = std::max(copy.height, 2 * copy.down - 1);
  return copyOf<float>(copy);
}

Copy readPlanes(const void* argument) {
  return copyOf<float>(*static_cast<const BlockCopy*>(argument), true);
}

using Half = std::uint16_t;

Copy readFloats(const void* argument) {
  return copyOf<Half, float>(*static_cast<const FilterCopy*>(argument));
}

constexpr KernelOfOurs kKernels[] = {{"ucudnnToBlocks", true, read<BlockCopy, float>},
                                     {"ucudnnFromBlocks", false, read<BlockCopy, float>},
                                     {"ucudnnPixelsToBlocks", true, read<BlockCopy, float>},
                                     {"ucudnnPixelsFromBlocks", false, read<BlockCopy, float>},
                                     {"ucudnnFiltersToBlocks", true, read<FilterCopy, float>},
                                     {"ucudnnFiltersFromBlocks", false, read<FilterCopy, float>},
                                     {"ucudnnQuadsToBlocks", true, readQuads},
                                     {"ucudnnQuadsFromBlocks", false, readQuads},
                                     {"ucudnnToPlanes", true, readPlanes},
                                     {"ucudnnFromPlanes", false, readPlanes},
                                     {"ucudnnToBlocks16", true, read<BlockCopy, Half>},
                                     {"ucudnnFromBlocks16", false, read<BlockCopy, Half>},
                                     {"ucudnnPixelsToBlocks16", true, read<BlockCopy, Half>},
                                     {"ucudnnPixelsFromBlocks16", false, read<BlockCopy, Half>},
                                     {"ucudnnPairsToBlocks16", true, read<BlockCopy, Half>},
                                     {"ucudnnPairsFromBlocks16", false, read<BlockCopy, Half>},
                                     {"ucudnnFiltersToBlocks16", true, read<FilterCopy, Half>},
                                     {"ucudnnFiltersFromBlocks16", false, read<FilterCopy, Half>},
                                     {"ucudnnFiltersFromFloats16", false, readFloats},
                                     {"ucudnnPixels", true, nullptr},
                                     {"ucudnnPixels16", true, nullptr},
                                     {"ucudnnPairs16", true, nullptr}};

cudaError_t launch(const KernelOfOurs& kernel,
                   const Copy& copy,
                   bool toBlocks,
                   bool isFirst,
                   cudaStream_t stream) {
  if (!checkRange(copy.tensor, copy.tensorBytes, "a kernel's tensor") ||
      !checkRange(copy.blocks, copy.blockBytes, "a kernel's blocks"))
    return cudaErrorIllegalAddress;
  const DeviceModel& model = deviceModel(thisThread().device);
  const double gigabytes = static_cast<double>(copy.movedBytes + copy.blockBytes) / 1e9;
  // Where times are random, those of the convolutions are: copies take no time, or they would be
  // hardly ever worth it on a device that is slow on purpose.
  const double launchMs = isFirst ? model.launchMs : 0;
  const double ms = launchMs + gigabytes / model.memoryGigabytesPerSecond * 1e3;
  Work work{kernel.name, randomTimesSeed() == 0 ? ms : 0, [] {}};
  if (isAnythingComputed()) work.execute = toBlocks ? copy.toBlocks : copy.fromBlocks;
  work.accesses = {{copy.tensor, copy.tensorBytes, !toBlocks},
                   {copy.blocks, copy.blockBytes, toBlocks}};
  return enqueue(stream, std::move(work));
}

cudaError_t launch(const KernelOfOurs& kernel, const void* argument, cudaStream_t stream) {
  if (kernel.copyOf != nullptr)
    return launch(kernel, kernel.copyOf(argument), kernel.toBlocks, true, stream);
  const auto& all = *static_cast<const PixelCopies*>(argument);
  cudaError_t error = cudaSuccess;
  constexpr std::int64_t kSummedAtOnce = 8;  // a real device would write beyond the sums
  if (all.sumTiles > 0 && all.sum.count % kSummedAtOnce != 0) return cudaErrorIllegalAddress;
  if (all.sumTiles > 0) error = launch(kernel, copyOf(all.sum), false, true, stream);
  for (std::size_t i = 0; i < std::size(all.copies) && error == cudaSuccess; ++i) {
    if (all.tiles[i] == 0) continue;
    const Copy copy = all.numberBytes == sizeof(float) ? copyOf<float>(all.copies[i])
                                                       : copyOf<Half>(all.copies[i]);
    error = launch(kernel, copy, all.toBlocks[i] != 0, i == 0 && all.sumTiles == 0, stream);
  }
  return error;
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library,
                                const void* code,
                                cudaJitOption*,
                                void**,
                                unsigned int,
                                cudaLibraryOption*,
                                void**,
                                unsigned int) {
  UCUDNN_SIMULATED_CALL();
  if (library == nullptr || code == nullptr) return finish(cudaErrorInvalidValue);
  // Without arithmetic times are those recorded on a real device, which these kernels have not.
  if (arithmetic() == Arithmetic::kSampled ||
      (arithmetic() == Arithmetic::kOff && deviceModel(thisThread().device).isReal))
    return finish(cudaErrorNotSupported);
  if (const cudaError_t error = unsafeCall()) return finish(error);
  *library = reinterpret_cast<cudaLibrary_t>(const_cast<void*>(code));
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  UCUDNN_SIMULATED_CALL();
  return finish(library == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  UCUDNN_SIMULATED_CALL();
  if (kernel == nullptr || library == nullptr || name == nullptr)
    return finish(cudaErrorInvalidValue);
  for (const KernelOfOurs& known : kKernels)
    if (std::strcmp(known.name, name) == 0) {
      *kernel = reinterpret_cast<cudaKernel_t>(const_cast<KernelOfOurs*>(&known));
      return cudaSuccess;
    }
  return finish(cudaErrorSymbolNotFound);
}

/// Knows one attribute, programmatic stream serialization, which changes no result; and no
/// programmatic edges of graphs.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration,
                                const void* function,
                                void** arguments) {
  UCUDNN_SIMULATED_CALL();
  if (function == nullptr) return finish(cudaErrorInvalidDeviceFunction);
  const dim3 blocks = configuration->gridDim, threads = configuration->blockDim;
  const cudaStream_t stream = configuration->stream;
  for (unsigned i = 0; i < configuration->numAttrs; ++i) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const bool mayOverlap =
        configuration->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
        deviceModel(thisThread().device).computeCapability >= 90 &&
        cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
        status == cudaStreamCaptureStatusNone;
    if (!mayOverlap) return finish(cudaErrorNotSupported);
  }
  const bool isGrid = blocks.x > 0 && blocks.y > 0 && blocks.z > 0 && blocks.x <= INT32_MAX &&
                      blocks.y <= UINT16_MAX && blocks.z <= UINT16_MAX;
  if (!isGrid || threads.x * threads.y * threads.z > 1024)
    return finish(cudaErrorInvalidConfiguration);
  return finish(launch(*static_cast<const KernelOfOurs*>(function), arguments[0], stream));
}

}  // extern "C"

#endif
