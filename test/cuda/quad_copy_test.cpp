// Copies of blocks of two by two pixels, and of planes.
#include <gtest/gtest.h>

#include "block_copies.hpp"

namespace ucudnn {
namespace {

/// Two by two pixels, an even number of them in a line.
BlockCopy randomQuads() {
  BlockCopy copy = randomCopy<float>();
  copy.rows = copy.columns = 2;
  copy.padY = copy.padX = 0;
  copy.width += copy.width % 2;
  copy.down = (copy.height + 1) / 2;
  copy.across = copy.width / 2;
  copy.numbers = 4 * copy.channels;
  copy.strides[3] = 1;
  copy.strides[2] = copy.width;
  copy.strides[1] = copy.strides[2] * copy.height;
  copy.strides[0] = copy.strides[1] * copy.channels + 2 * between(0, 2);
  return copy;
}

/// Runs the steps of each thread block in turn.
template <typename... Steps>
void launchQuads(const BlockCopy& copy, Steps... steps) {
  std::vector<Quad> memory(QuadTile::kQuads);
  const auto tiles = [](int size) { return (static_cast<unsigned>(size) + kLanes - 1) / kLanes; };
  const auto allThreads = [](const QuadTile& tile, auto step) {
    for (threadIdx.y = 0; threadIdx.y < kWarps; ++threadIdx.y)
      for (threadIdx.x = 0; threadIdx.x < kLanes; ++threadIdx.x) (tile.*step)();
  };
  for (blockIdx.z = 0; blockIdx.z < tiles(copy.across); ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < tiles(copy.channels); ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < static_cast<unsigned>(copy.samples * copy.down);
           ++blockIdx.x) {
        const QuadTile tile(copy, memory.data());
        (allThreads(tile, steps), ...);
      }
}

TEST(QuadCopyTest, ToBlocksTakesEachPixelAndFillsWithZeros) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomQuads();
    std::vector<float> tensor = numbers<float>(tensorSize(copy));
    std::vector<Quad> blocks(numbersIn(copy) / 4);
    std::vector<float> expected(numbersIn(copy));
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t from, std::int64_t to) {
      expected[static_cast<std::size_t>(to)] = tensor[static_cast<std::size_t>(from)];
    });
    launchQuads(copy, &QuadTile::readPixels, &QuadTile::writeBlocks);
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      const auto& [upper, lower] = blocks[j];
      const std::vector<float> quad{upper.left, upper.right, lower.left, lower.right};
      ASSERT_TRUE(std::equal(quad.begin(), quad.end(), expected.begin() + 4 * std::ptrdiff_t(j)))
          << i;
    }
  }
}

TEST(QuadCopyTest, FromBlocksWritesEachPixelOrAddsToIt) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomQuads();
    copy.adds = i % 2;
    std::vector<float> tensor = numbers<float>(tensorSize(copy));
    std::vector<Quad> blocks(numbersIn(copy) / 4);
    std::vector<float> expected = tensor;
    for (auto& [upper, lower] : blocks) {
      upper = {static_cast<float>(between(1, 1000)), static_cast<float>(between(1, 1000))};
      lower = {static_cast<float>(between(1, 1000)), static_cast<float>(between(1, 1000))};
    }
    copy.tensor = tensor.data();
    copy.blocks = blocks.data();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t from) {
      const auto& [upper, lower] = blocks[static_cast<std::size_t>(from / 4)];
      const float of[] = {upper.left, upper.right, lower.left, lower.right};
      float& number = expected[static_cast<std::size_t>(to)];
      number = (copy.adds == 0 ? 0 : number) + of[from % 4];
    });
    launchQuads(copy, &QuadTile::readBlocks, &QuadTile::writePixels);
    ASSERT_EQ(tensor, expected) << i;
  }
}

/// Blocks without zeros behind their pixels.
BlockCopy randomPlanes() {
  BlockCopy copy = randomCopy<float>();
  copy.numbers = copy.channels * copy.rows * copy.columns;
  return copy;
}

/// The place of a block's number in planes.
std::size_t inPlanes(const BlockCopy& copy, std::int64_t place) {
  const std::int64_t number = place % copy.numbers, block = place / copy.numbers;
  const std::int64_t blocks = std::int64_t{copy.down} * copy.across;
  return static_cast<std::size_t>((block / blocks * copy.numbers + number) * blocks +
                                  block % blocks);
}

template <typename Kernel>
void launchPlanes(const BlockCopy& copy, int lines, Kernel kernel) {
  blockDim.x = static_cast<unsigned>(1 << between(0, 5));
  blockDim.y = kThreads / blockDim.x;
  const auto all = static_cast<unsigned>(copy.samples * copy.channels * lines);
  for (blockIdx.x = 0; blockIdx.x * blockDim.y < all; ++blockIdx.x)
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(copy);
}

TEST(PlaneCopyTest, ToPlanesTakesEachPixelAndFillsWithZeros) {
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomPlanes();
    std::vector<float> tensor = numbers<float>(tensorSize(copy));
    std::vector<float> planes(numbersIn(copy), kNothing<float>), expected(planes.size());
    copy.tensor = tensor.data();
    copy.blocks = planes.data();
    forEachPixel(copy, [&](std::int64_t from, std::int64_t to) {
      if (to >= 0) expected[inPlanes(copy, to)] = tensor[static_cast<std::size_t>(from)];
    });
    launchPlanes(copy, copy.down * copy.rows, ucudnnToPlanes);
    ASSERT_EQ(planes, expected) << i;
  }
}

TEST(PlaneCopyTest, FromPlanesWritesEachPixelOrAddsToIt) {
  for (int i = 0; i < 500; ++i) {
    BlockCopy copy = randomPlanes();
    copy.adds = i % 2;
    std::vector<float> tensor = numbers<float>(tensorSize(copy));
    std::vector<float> planes = numbers<float>(numbersIn(copy)), expected = tensor;
    copy.tensor = tensor.data();
    copy.blocks = planes.data();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t from) {
      float& number = expected[static_cast<std::size_t>(to)];
      if (copy.adds == 0) number = 0;
      if (from >= 0) number += planes[inPlanes(copy, from)];
    });
    launchPlanes(copy, copy.height, ucudnnFromPlanes);
    ASSERT_EQ(tensor, expected) << i;
  }
}

}  // namespace
}  // namespace ucudnn
