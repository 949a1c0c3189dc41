// Copies of blocks by way of shared memory, and of filters.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "block_copies.hpp"

namespace ucudnn {
namespace {

/// The sum of an output's old value and the number that is added; if it is no float, the number is
/// the sum.
template <typename Number>
Number sumOf(Number before, Number number) {
  return std::is_same_v<Number, float> ? static_cast<Number>(before + number) : number;
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
