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

/// Filters with up to `mostShifts` shifts each way.
FilterCopy randomFilters(int mostShifts) {
  FilterCopy copy{};
  copy.count = between(1, 5);
  copy.channels = between(1, 4);
  copy.height = between(1, 11);
  copy.width = between(1, 11);
  copy.shiftsY = between(1, mostShifts);
  copy.shiftsX = between(1, mostShifts);
  copy.stepY = between(1, 4);
  copy.stepX = between(1, 4);
  copy.rows = copy.stepY * copy.shiftsY;
  copy.columns = copy.stepX * copy.shiftsX;
  copy.down = (copy.height + (copy.shiftsY - 1) * copy.stepY + copy.rows - 1) / copy.rows;
  copy.across = (copy.width + (copy.shiftsX - 1) * copy.stepX + copy.columns - 1) / copy.columns;
  if (between(0, 1) == 0) copy.inPixel = copy.channels + between(0, 3);
  if (between(0, 1) == 0) copy.inShift = copy.count + between(0, 3);
  copy.numbers = std::max(copy.inPixel, copy.channels) * copy.rows * copy.columns;
  if (copy.inPixel == 0) copy.numbers += between(0, 7);
  copy.strides[3] = 1;
  copy.strides[2] = copy.width;
  copy.strides[1] = copy.strides[2] * copy.height;
  copy.strides[0] = copy.strides[1] * copy.channels;
  return copy;
}

std::size_t numbersIn(const FilterCopy& copy) {
  return static_cast<std::size_t>(std::max(copy.inShift, copy.count) * copy.shiftsY * copy.shiftsX *
                                  copy.down * copy.across * copy.numbers);
}

/// The first number of a pixel's channels in a filter's block, and from one channel to the next.
std::size_t placeOf(const FilterCopy& copy, int filter, int shiftY, int shiftX, int y, int x) {
  const int shift = shiftY * copy.shiftsX + shiftX, shifts = copy.shiftsY * copy.shiftsX;
  const int shifted = copy.inShift > 0 ? shift * copy.inShift + filter : filter * shifts + shift;
  const int row = y + shiftY * copy.stepY, column = x + shiftX * copy.stepX;
  const int block = (shifted * copy.down + row / copy.rows) * copy.across + column / copy.columns;
  const int pixel = row % copy.rows * copy.columns + column % copy.columns;
  return static_cast<std::size_t>(block * copy.numbers + pixel * std::max(1, copy.inPixel));
}

/// Calls f(place in the filters, place in the blocks) for each tap and shift.
template <typename Function>
void forEachTap(const FilterCopy& copy, Function f) {
  for (int k = 0; k < copy.count; ++k)
    for (int c = 0; c < copy.channels; ++c)
      for (int y = 0; y < copy.height; ++y)
        for (int x = 0; x < copy.width; ++x)
          for (int shiftY = 0; shiftY < copy.shiftsY; ++shiftY)
            for (int shiftX = 0; shiftX < copy.shiftsX; ++shiftX) {
              const int next = copy.inPixel > 0 ? 1 : copy.rows * copy.columns;
              f(static_cast<std::size_t>(k * copy.strides[0] + c * copy.strides[1] +
                                         y * copy.strides[2] + x * copy.strides[3]),
                placeOf(copy, k, shiftY, shiftX, y, x) + static_cast<std::size_t>(c * next));
            }
}

/// A thread for each number.
template <typename Kernel>
void runThreads(const FilterCopy& copy, std::size_t count, Kernel kernel) {
  blockDim.x = kThreads;
  for (blockIdx.x = 0; blockIdx.x * kThreads < count; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < kThreads; ++threadIdx.x) kernel(copy);
}

TYPED_TEST(BlockCopyTest, EachShiftHasAllTapsAndGivesThemBack) {
  using Number = TypeParam;
  constexpr bool kIsFloat = std::is_same_v<Number, float>;
  for (int i = 0; i < 300; ++i) {
    FilterCopy copy = randomFilters(i % 2 == 0 && !kIsFloat ? 1 : 4);
    copy.numberBytes = sizeof(Number);
    copy.adds = between(0, 1);
    const auto taps = static_cast<std::size_t>(copy.count * copy.strides[0]);
    const std::vector<Number> filters = numbers<Number>(taps);
    std::vector<Number> given = filters, blocks(numbersIn(copy), kNothing<Number>);
    copy.filters = given.data();
    copy.blocks = blocks.data();
    std::vector<Number> expected(blocks.size());
    forEachTap(copy, [&](std::size_t tap, std::size_t place) { expected[place] = filters[tap]; });
    runThreads(copy, blocks.size(), kIsFloat ? ucudnnFiltersToBlocks : ucudnnFiltersToBlocks16);
    ASSERT_EQ(blocks, expected) << i;
    const int shifts = copy.shiftsY * copy.shiftsX;
    if (!kIsFloat && shifts > 1) continue;
    if (!kIsFloat)
      for (Number& tap : given) tap = kNothing<Number>;
    runThreads(copy, taps, kIsFloat ? ucudnnFiltersFromBlocks : ucudnnFiltersFromBlocks16);
    const int times = kIsFloat ? shifts + copy.adds : 1;
    for (std::size_t tap = 0; tap < taps; ++tap)
      ASSERT_EQ(given[tap], static_cast<Number>(filters[tap] * static_cast<Number>(times))) << tap;
  }
}

/// A sum of shifts that the type can't hold is rounded, once, with the gradient that it is added
/// to.
TEST(FilterSumTest, FloatsAreRoundedOnce) {
  for (int i = 0; i < 300; ++i) {
    FilterCopy copy = randomFilters(4);
    copy.numberBytes = 2;
    copy.hasFloats = 1;
    copy.isBfloat16 = between(0, 1);
    copy.adds = between(0, 1);
    const auto bits = [&](float number) { return rounded(number, copy.isBfloat16 != 0); };
    std::vector<std::uint16_t> given(static_cast<std::size_t>(copy.count * copy.strides[0]));
    for (std::uint16_t& number : given) number = bits(static_cast<float>(between(-999, 999)));
    std::vector<float> sums(given.size()), blocks = numbers<float>(numbersIn(copy));
    for (float& number : blocks) number += static_cast<float>(between(0, 63)) / 64;
    for (std::size_t j = 0; j < given.size() && copy.adds != 0; ++j)
      sums[j] = widened(given[j], copy.isBfloat16 != 0);
    copy.filters = given.data();
    copy.blocks = blocks.data();
    forEachTap(copy, [&](std::size_t tap, std::size_t place) { sums[tap] += blocks[place]; });
    runThreads(copy, given.size(), ucudnnFiltersFromFloats16);
    std::vector<std::uint16_t> expected;
    for (const float sum : sums) expected.push_back(bits(sum));
    ASSERT_EQ(given, expected) << i;
  }
}

}  // namespace
}  // namespace ucudnn
