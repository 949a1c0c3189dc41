// The device code on a CPU, one thread after another, against copies that go pixel by pixel. Under
// AddressSanitizer (-DUCUDNN_SANITIZE) nothing beyond a tensor may be touched.
#include "cuda/block_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
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

template <typename Number>
std::vector<Number> numbers(std::size_t count) {
  std::vector<Number> all(count);
  for (Number& number : all) number = static_cast<Number>(between(1, 1000));
  return all;
}

/// What has been written nowhere.
template <typename Number>
constexpr Number kNothing = std::numeric_limits<Number>::has_quiet_NaN
                                ? std::numeric_limits<Number>::quiet_NaN()
                                : std::numeric_limits<Number>::max();

/// What is added to, and the number that adds or, if it is no float, is the sum.
template <typename Number>
Number sumOf(Number before, Number number) {
  return std::is_same_v<Number, float> ? static_cast<Number>(before + number) : number;
}

/// Packed, in one order of dimensions or the other, with a gap between samples.
template <typename Number>
BlockCopy randomCopy() {
  BlockCopy copy{};
  copy.numberBytes = sizeof(Number);
  copy.samples = between(1, 2);
  copy.rows = between(1, 8);
  copy.columns = between(0, 6) == 0 ? kMostColumns : between(1, 8);
  copy.channels = between(1, std::min(64, std::max(1, kMostInBlock / copy.rows / copy.columns)));
  if (copy.channels * copy.rows * copy.columns > kMostInBlock) copy.rows = 1;
  const int pixels = copy.channels * copy.rows * copy.columns;
  copy.numbers = between(pixels, std::min(pixels + 7, kMostInBlock));
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
  return static_cast<std::size_t>(copy.samples * copy.down * copy.across * copy.numbers);
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
            isInBlock ? block * copy.numbers + number : -1);
        }
}

/// A launch: what lies between two __syncthreads is done by all threads, then the next.
template <typename Number, typename Steps>
void launch(const BlockCopy& copy, int rows, int across, Steps steps) {
  const std::int64_t needed = std::int64_t{copy.numbers + 1} * copy.across;
  gridDim.y =
      static_cast<unsigned>(std::min<std::int64_t>((needed + kTile - 1) / kTile, copy.channels));
  const auto allThreads = [](auto f) {
    for (threadIdx.y = 0; threadIdx.y < kWarps; ++threadIdx.y)
      for (threadIdx.x = 0; threadIdx.x < kLanes; ++threadIdx.x) f();
  };
  for (blockIdx.x = 0; blockIdx.x < static_cast<unsigned>(copy.samples * rows); ++blockIdx.x)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
      std::vector<Number> memory(kTile, kNothing<Number>);
      const Tile<Number> tile(copy, memory.data(), rows);
      if (tile.lines == 0) continue;
      for (int first = 0; first < across; first += tile.most) steps(tile, first, allThreads);
    }
}

template <typename Number>
class BlockCopyTest : public ::testing::Test {};
using Numbers = ::testing::Types<float, std::uint16_t>;
struct NumberName {
  template <typename Number>
  static std::string GetName(int) {
    return std::is_same_v<Number, float> ? "Floats" : "TwoBytes";
  }
};
TYPED_TEST_SUITE(BlockCopyTest, Numbers, NumberName);

TYPED_TEST(BlockCopyTest, ToBlocksTakesEachPixelAndFillsWithZeros) {
  using Number = TypeParam;
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomCopy<Number>();
    std::vector<Number> tensor = numbers<Number>(tensorSize(copy));
    std::vector<Number> blocks(numbersIn(copy), kNothing<Number>);
    std::vector<Number> expected(blocks.size());
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t from, std::int64_t to) {
      if (to >= 0) expected[static_cast<std::size_t>(to)] = tensor[static_cast<std::size_t>(from)];
    });
    launch<Number>(
        copy, copy.down, copy.across, [&](const Tile<Number>& tile, int first, auto allThreads) {
          const int some = std::min(tile.most, copy.across - first);
          allThreads([&] { tile.readPixels(first, some); });
          allThreads([&] { tile.writeBlocks(first, some); });
        });
    ASSERT_EQ(blocks, expected) << i;
  }
}

TYPED_TEST(BlockCopyTest, FromBlocksWritesEachPixelOrAddsToIt) {
  using Number = TypeParam;
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomCopy<Number>();
    copy.adds = i % 2;
    std::vector<Number> tensor = numbers<Number>(tensorSize(copy));
    std::vector<Number> blocks = numbers<Number>(numbersIn(copy));
    std::vector<Number> expected = tensor;
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t from) {
      Number& number = expected[static_cast<std::size_t>(to)];
      if (copy.adds == 0) number = Number{};
      if (from >= 0) number = sumOf(number, blocks[static_cast<std::size_t>(from)]);
    });
    const int rows = (copy.height + copy.padY + copy.rows - 1) / copy.rows;
    const int across = (copy.width + copy.padX + copy.columns - 1) / copy.columns;
    launch<Number>(copy, rows, across, [&](const Tile<Number>& tile, int first, auto allThreads) {
      const int left = std::max(0, std::min(tile.most, copy.across - first));
      const int known = tile.row < copy.down ? left : 0;
      allThreads([&] { tile.readBlocks(first, known); });
      allThreads([&] { tile.writePixels(first, std::min(tile.most, across - first), known); });
    });
    ASSERT_EQ(tensor, expected) << i;
  }
}

TYPED_TEST(BlockCopyTest, EachShiftHasAllTapsAndGivesThemBack) {
  using Number = TypeParam;
  constexpr bool kIsFloat = std::is_same_v<Number, float>;
  for (int i = 0; i < 300; ++i) {
    FilterCopy copy{};
    copy.numberBytes = sizeof(Number);
    copy.count = between(1, 5);
    copy.channels = between(1, 4);
    copy.height = between(1, 11);
    copy.width = between(1, 11);
    copy.shifts = between(1, kIsFloat ? 4 : 1);
    copy.stepY = between(1, 4);
    copy.stepX = between(1, 4);
    copy.rows = copy.stepY * copy.shifts;
    copy.columns = copy.stepX * copy.shifts;
    copy.down = (copy.height + (copy.shifts - 1) * copy.stepY + copy.rows - 1) / copy.rows;
    copy.across = (copy.width + (copy.shifts - 1) * copy.stepX + copy.columns - 1) / copy.columns;
    copy.numbers = copy.channels * copy.rows * copy.columns + between(0, 7);
    copy.strides[3] = 1;
    copy.strides[2] = copy.width;
    copy.strides[1] = copy.strides[2] * copy.height;
    copy.strides[0] = copy.strides[1] * copy.channels;
    copy.adds = i % 2;
    const int shifted = copy.shifts * copy.shifts;
    const auto taps = static_cast<std::size_t>(copy.count * copy.strides[0]);
    const auto all =
        static_cast<std::size_t>(copy.count * shifted * copy.down * copy.across * copy.numbers);
    const std::vector<Number> filters = numbers<Number>(taps);
    std::vector<Number> given = filters, blocks(all, kNothing<Number>);
    copy.filters = given.data();
    copy.blocks = blocks.data();
    blockDim.x = kThreads;
    const auto run = [&](std::size_t count, auto kernel) {
      for (blockIdx.x = 0; blockIdx.x * kThreads < count; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < kThreads; ++threadIdx.x) kernel(copy);
    };
    run(all, kIsFloat ? ucudnnFiltersToBlocks : ucudnnFiltersToBlocks16);
    ASSERT_EQ(std::count_if(blocks.begin(), blocks.end(), [](Number tap) { return tap > 0; }),
              static_cast<std::ptrdiff_t>(taps) * shifted);
    ASSERT_TRUE(std::all_of(blocks.begin(), blocks.end(), [](Number tap) { return tap <= 1000; }));
    if (!kIsFloat)
      for (Number& tap : given) tap = kNothing<Number>;
    run(taps, kIsFloat ? ucudnnFiltersFromBlocks : ucudnnFiltersFromBlocks16);
    const int times = kIsFloat ? shifted + copy.adds : 1;
    for (std::size_t tap = 0; tap < taps; ++tap)
      ASSERT_EQ(given[tap], static_cast<Number>(filters[tap] * static_cast<Number>(times))) << tap;
  }
}

}  // namespace
}  // namespace ucudnn
