// The device code on a CPU, one thread after another, against copies that go pixel by pixel. Under
// AddressSanitizer (-DUCUDNN_SANITIZE) nothing beyond a tensor may be touched.
#include "cuda/block_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#undef __device__
#undef __global__
#undef __shared__
#undef __launch_bounds__
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads()

namespace {
using std::max;
using std::min;

struct {
  unsigned x, y;
} threadIdx, blockIdx, gridDim, blockDim;
}  // namespace

#include "cuda/block_copy.cu"

namespace ucudnn {
namespace {

std::mt19937 generator(1);

int between(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(generator);
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> all(count);
  for (float& number : all) number = static_cast<float>(between(1, 1000));
  return all;
}

/// Packed, in one order of dimensions or the other, with a gap between samples.
BlockCopy randomCopy() {
  BlockCopy copy{};
  copy.samples = between(1, 2);
  copy.rows = between(1, 8);
  copy.columns = between(0, 6) == 0 ? kMostColumns : between(1, 8);
  copy.channels = between(1, std::min(64, std::max(1, kMostInBlock / copy.rows / copy.columns)));
  if (copy.channels * copy.rows * copy.columns > kMostInBlock) copy.rows = 1;
  copy.height = between(1, 30);
  copy.width = between(0, 10) == 0 ? between(1, 700) : between(1, 40);
  copy.padY = between(0, 9);
  copy.padX = between(0, 9);
  copy.down = between(1, (copy.height + 2 * copy.padY) / copy.rows + 2);
  copy.across = between(1, (copy.width + 2 * copy.padX) / copy.columns + 2);
  const bool isLast = between(0, 1) == 0;
  copy.strides[3] = isLast ? copy.channels : 1;
  copy.strides[2] = copy.strides[3] * copy.width;
  copy.strides[1] = isLast ? 1 : copy.strides[2] * copy.height;
  copy.strides[0] = std::int64_t{1} * copy.channels * copy.height * copy.width + between(0, 3);
  return copy;
}

std::size_t numbersIn(const BlockCopy& copy) {
  return static_cast<std::size_t>(copy.samples * copy.down * copy.across * copy.channels *
                                  copy.rows * copy.columns);
}

std::size_t tensorSize(const BlockCopy& copy) {
  return static_cast<std::size_t>(copy.strides[0] * (copy.samples - 1) +
                                  std::int64_t{1} * copy.channels * copy.height * copy.width);
}

/// Calls f(place in the tensor, place in the blocks or -1).
template <typename Function>
void forEachPixel(const BlockCopy& copy, Function f) {
  for (int n = 0; n < copy.samples; ++n)
    for (int c = 0; c < copy.channels; ++c)
      for (int y = 0; y < copy.height; ++y)
        for (int x = 0; x < copy.width; ++x) {
          const int row = y + copy.padY, column = x + copy.padX;
          const bool isInBlock = row / copy.rows < copy.down && column / copy.columns < copy.across;
          const std::int64_t block =
              (std::int64_t{n} * copy.down + row / copy.rows) * copy.across + column / copy.columns;
          const std::int64_t number =
              (c * copy.rows + row % copy.rows) * copy.columns + column % copy.columns;
          f(n * copy.strides[0] + c * copy.strides[1] + y * copy.strides[2] + x * copy.strides[3],
            isInBlock ? block * copy.channels * copy.rows * copy.columns + number : -1);
        }
}

/// A launch: what lies between two __syncthreads is done by all threads, then the next.
template <typename Steps>
void launch(const BlockCopy& copy, int rows, int across, Steps steps) {
  const std::int64_t needed =
      (std::int64_t{1} * copy.channels * copy.rows * copy.columns + 1) * copy.across;
  gridDim.y =
      static_cast<unsigned>(std::min<std::int64_t>((needed + kTile - 1) / kTile, copy.channels));
  const auto allThreads = [](auto f) {
    for (threadIdx.y = 0; threadIdx.y < kWarps; ++threadIdx.y)
      for (threadIdx.x = 0; threadIdx.x < kLanes; ++threadIdx.x) f();
  };
  for (blockIdx.x = 0; blockIdx.x < static_cast<unsigned>(copy.samples * rows); ++blockIdx.x)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
      std::vector<float> memory(kTile, NAN);
      const Tile tile(copy, memory.data(), rows);
      if (tile.lines == 0) continue;
      for (int first = 0; first < across; first += tile.most) steps(tile, first, allThreads);
    }
}

TEST(BlockCopyTest, ToBlocksTakesEachPixelAndFillsWithZeros) {
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomCopy();
    std::vector<float> tensor = numbers(tensorSize(copy)), blocks(numbersIn(copy), NAN);
    std::vector<float> expected(blocks.size(), 0.0F);
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t from, std::int64_t to) {
      if (to >= 0) expected[static_cast<std::size_t>(to)] = tensor[static_cast<std::size_t>(from)];
    });
    launch(copy, copy.down, copy.across, [&](const Tile& tile, int first, auto allThreads) {
      const int some = std::min(tile.most, copy.across - first);
      allThreads([&] { tile.readPixels(first, some); });
      allThreads([&] { tile.writeBlocks(first, some); });
    });
    ASSERT_EQ(blocks, expected) << i;
  }
}

TEST(BlockCopyTest, FromBlocksWritesEachPixelOrAddsToIt) {
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomCopy();
    copy.adds = i % 2;
    std::vector<float> tensor = numbers(tensorSize(copy)), blocks = numbers(numbersIn(copy));
    std::vector<float> expected = tensor;
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t from) {
      float& number = expected[static_cast<std::size_t>(to)];
      number = (from >= 0 ? blocks[static_cast<std::size_t>(from)] : 0.0F) +
               (copy.adds != 0 ? number : 0.0F);
    });
    const int rows = (copy.height + copy.padY + copy.rows - 1) / copy.rows;
    const int across = (copy.width + copy.padX + copy.columns - 1) / copy.columns;
    launch(copy, rows, across, [&](const Tile& tile, int first, auto allThreads) {
      const int left = std::max(0, std::min(tile.most, copy.across - first));
      const int known = tile.row < copy.down ? left : 0;
      allThreads([&] { tile.readBlocks(first, known); });
      allThreads([&] { tile.writePixels(first, std::min(tile.most, across - first), known); });
    });
    ASSERT_EQ(tensor, expected) << i;
  }
}

TEST(BlockCopyTest, EachShiftHasAllTapsAndGivesThemBack) {
  for (int i = 0; i < 300; ++i) {
    FilterCopy copy{};
    copy.count = between(1, 5);
    copy.channels = between(1, 4);
    copy.height = between(1, 11);
    copy.width = between(1, 11);
    copy.shifts = between(1, 4);
    copy.stepY = between(1, 4);
    copy.stepX = between(1, 4);
    copy.rows = copy.stepY * copy.shifts;
    copy.columns = copy.stepX * copy.shifts;
    copy.down = (copy.height + (copy.shifts - 1) * copy.stepY + copy.rows - 1) / copy.rows;
    copy.across = (copy.width + (copy.shifts - 1) * copy.stepX + copy.columns - 1) / copy.columns;
    copy.strides[3] = 1;
    copy.strides[2] = copy.width;
    copy.strides[1] = copy.strides[2] * copy.height;
    copy.strides[0] = copy.strides[1] * copy.channels;
    copy.adds = i % 2;
    const int shifted = copy.shifts * copy.shifts;
    const auto taps = static_cast<std::size_t>(copy.count * copy.strides[0]);
    const auto all = static_cast<std::size_t>(copy.count * shifted * copy.down * copy.across *
                                              copy.channels * copy.rows * copy.columns);
    const std::vector<float> filters = numbers(taps);
    std::vector<float> given = filters, blocks(all, NAN);
    copy.filters = given.data();
    copy.blocks = blocks.data();
    blockDim.x = kThreads;
    const auto run = [&](std::size_t count, auto kernel) {
      for (blockIdx.x = 0; blockIdx.x * kThreads < count; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < kThreads; ++threadIdx.x) kernel(copy);
    };
    run(all, ucudnnFiltersToBlocks);
    ASSERT_EQ(std::count_if(blocks.begin(), blocks.end(), [](float tap) { return tap > 0; }),
              static_cast<std::ptrdiff_t>(taps) * shifted);
    ASSERT_FALSE(std::any_of(blocks.begin(), blocks.end(), [](float tap) { return tap != tap; }));
    run(taps, ucudnnFiltersFromBlocks);
    for (std::size_t tap = 0; tap < taps; ++tap)
      ASSERT_EQ(given[tap], filters[tap] * static_cast<float>(shifted + copy.adds)) << tap;
  }
}

}  // namespace
}  // namespace ucudnn
