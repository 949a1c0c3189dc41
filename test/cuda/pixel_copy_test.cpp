// Copies of tensors channels last, and back.
#include <gtest/gtest.h>

#include "block_copies.hpp"

namespace ucudnn {
namespace {

/// Each pixel a block; in the tensor one behind another, or some apart. Often with zeros around it,
/// and behind its channels.
template <typename Number>
BlockCopy randomPixels() {
  BlockCopy copy{};
  copy.numberBytes = sizeof(Number);
  copy.samples = between(1, 3);
  copy.channels = copy.numbers = 4 * between(1, 80);
  copy.rows = copy.columns = 1;
  copy.height = copy.down = between(1, 12);
  copy.width = copy.across = between(0, 10) == 0 ? between(1, 200) : between(1, 12);
  if (between(0, 1) == 0) {
    copy.channels -= between(0, std::min(7, copy.channels - 1));
    copy.padY = between(0, 2), copy.padX = between(0, 2);
    copy.down += copy.padY + between(0, 2), copy.across += copy.padX + between(0, 2);
  }
  copy.strides[3] = between(1, 3);
  copy.strides[2] = copy.strides[3] * copy.width * between(1, 2) + between(0, 1);
  copy.strides[1] = copy.strides[2] * copy.height + between(0, 3);
  copy.strides[0] = copy.strides[1] * copy.channels + between(0, 3);
  return copy;
}

/// Of each thread block the steps in turn.
template <typename Tile, typename Number, typename... Steps>
void launchPixels(const BlockCopy& copy, int width, Number* memory, Steps... steps) {
  const auto tiles = [](int size, int most) {
    return static_cast<unsigned>((size + most - 1) / most);
  };
  blockDim.x = static_cast<unsigned>(width);
  const auto allThreads = [&](auto step) {
    for (threadIdx.y = 0; threadIdx.y < static_cast<unsigned>(kThreads / width); ++threadIdx.y)
      for (threadIdx.x = 0; threadIdx.x < static_cast<unsigned>(width); ++threadIdx.x)
        (Tile(copy,
              memory,
              static_cast<int>(blockIdx.x),
              static_cast<int>(blockIdx.y),
              static_cast<int>(blockIdx.z)).*
         step)();
  };
  for (blockIdx.z = 0; blockIdx.z < static_cast<unsigned>(copy.samples); ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < tiles(copy.numbers, Tile::kChannels); ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < tiles(copy.down * copy.across, width); ++blockIdx.x)
        (allThreads(steps), ...);
}

template <typename Number, int kPixels>
void launchPixels(const BlockCopy& copy, bool toBlocks) {
  using Tile = PixelTile<Number, kPixels>;
  std::vector<Number> memory(PixelTile<Number, kFewPixels>::kNumbers);
  if (toBlocks)
    launchPixels<Tile>(copy, kPixels, memory.data(), &Tile::readPixels, &Tile::writeBlocks);
  else
    launchPixels<Tile>(copy, kPixels, memory.data(), &Tile::readBlocks, &Tile::writePixels);
}

/// With rows of either width.
template <typename Number>
void launchPixels(const BlockCopy& copy, bool toBlocks) {
  if (between(0, 1) == 0)
    launchPixels<Number, kLanes>(copy, toBlocks);
  else
    launchPixels<Number, kFewPixels>(copy, toBlocks);
}

template <typename Number>
class PixelCopyTest : public ::testing::Test {};
TYPED_TEST_SUITE(PixelCopyTest, Numbers, NumberName);

TYPED_TEST(PixelCopyTest, ToBlocksTakesEachPixel) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomPixels<TypeParam>();
    std::vector<TypeParam> tensor = numbers<TypeParam>(tensorSize(copy));
    std::vector<Four<TypeParam>> blocks(numbersIn(copy) / 4);
    for (auto& four : blocks) std::fill_n(four.numbers, 4, kNothing<TypeParam>);
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    launchPixels<TypeParam>(copy, true);
    std::vector<TypeParam> expected(numbersIn(copy));
    forEachPixel(copy, [&](std::int64_t from, std::int64_t to) {
      expected[static_cast<std::size_t>(to)] = tensor[static_cast<std::size_t>(from)];
    });
    for (std::size_t j = 0; j < expected.size(); ++j)
      ASSERT_EQ(blocks[j / 4].numbers[j % 4], expected[j]) << i;
  }
}

/// Numbers that are not floats are only copied, whoever adds.
TYPED_TEST(PixelCopyTest, FromBlocksWritesEachPixelOrAddsToIt) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomPixels<TypeParam>();
    copy.adds = i % 2;
    std::vector<TypeParam> tensor = numbers<TypeParam>(tensorSize(copy)), expected = tensor;
    const std::vector<TypeParam> from = numbers<TypeParam>(numbersIn(copy));
    std::vector<Four<TypeParam>> blocks(from.size() / 4);
    for (std::size_t j = 0; j < from.size(); ++j) blocks[j / 4].numbers[j % 4] = from[j];
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t place) {
      TypeParam& number = expected[static_cast<std::size_t>(to)];
      const bool adds = copy.adds != 0 && sizeof(TypeParam) == sizeof(float);
      number = static_cast<TypeParam>((adds ? number : 0) + from[static_cast<std::size_t>(place)]);
    });
    launchPixels<TypeParam>(copy, false);
    ASSERT_EQ(tensor, expected) << i;
  }
}

}  // namespace
}  // namespace ucudnn
