// Copies of tensors channels last, and back.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <numeric>

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

/// Runs the steps of each thread block in turn.
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

/// With rows of any width.
template <typename Number>
void launchPixels(const BlockCopy& copy, bool toBlocks) {
  const int width = between(0, 3);
  if (width == 0)
    launchPixels<Number, kFewPixels>(copy, toBlocks);
  else if (width == 1)
    launchPixels<Number, kLanes>(copy, toBlocks);
  else if (width == 2)
    launchPixels<Number, 2 * kLanes>(copy, toBlocks);
  else
    launchPixels<Number, 4 * kLanes>(copy, toBlocks);
}

/// By twos: all are even, and neighbours.
BlockCopy randomPairs() {
  BlockCopy copy = randomPixels<std::uint16_t>();
  copy.numbers = (copy.numbers + 7) / 8 * 8;
  copy.width *= 2, copy.across *= 2, copy.padX *= 2;
  copy.strides[3] = 1;
  copy.strides[2] = copy.width + 2 * between(0, 1);
  copy.strides[1] = copy.strides[2] * copy.height + 2 * between(0, 3);
  copy.strides[0] = copy.strides[1] * copy.channels + 2 * between(0, 3);
  return copy;
}

template <int kChannels>
void launchPairs(const BlockCopy& copy, bool toBlocks) {
  using Tile = PairTile<kChannels>;
  std::vector<std::uint32_t> memory(Tile::kWords);
  const int tiles = (copy.down * copy.across + Tile::kPixels - 1) / Tile::kPixels;
  const int channelTiles = (copy.numbers + kChannels - 1) / kChannels;
  blockDim.x = kThreads;
  threadIdx.y = 0;
  const auto allThreads = [&](auto step, int tile, int channelTile, int sample) {
    for (threadIdx.x = 0; threadIdx.x < static_cast<unsigned>(kThreads); ++threadIdx.x)
      (Tile(copy, memory.data(), tile, channelTile, sample).*step)();
  };
  for (int sample = 0; sample < copy.samples; ++sample)
    for (int channelTile = 0; channelTile < channelTiles; ++channelTile)
      for (int tile = 0; tile < tiles; ++tile) {
        allThreads(toBlocks ? &Tile::readPixels : &Tile::readBlocks, tile, channelTile, sample);
        allThreads(toBlocks ? &Tile::writeBlocks : &Tile::writePixels, tile, channelTile, sample);
      }
}

/// In tiles of any width.
void launchPairs(const BlockCopy& copy, bool toBlocks) {
  const int width = between(0, 2);
  if (width == 0)
    launchPairs<16>(copy, toBlocks);
  else if (width == 1)
    launchPairs<32>(copy, toBlocks);
  else
    launchPairs<64>(copy, toBlocks);
}

/// Numbers in memory that is as aligned as what they are moved by.
class PairMemory {
 public:
  explicit PairMemory(const std::vector<std::uint16_t>& numbers)
      : size_(numbers.size()), eights_((numbers.size() + 7) / 8) {
    std::copy(numbers.begin(), numbers.end(), begin());
  }
  std::uint16_t* begin() { return reinterpret_cast<std::uint16_t*>(eights_.data()); }
  std::vector<std::uint16_t> numbers() { return {begin(), begin() + size_}; }

 private:
  std::size_t size_;
  std::vector<Eight> eights_;
};

TEST(PairCopyTest, ToBlocksTakesEachPixel) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomPairs();
    const std::vector<std::uint16_t> from = numbers<std::uint16_t>(tensorSize(copy));
    PairMemory tensor(from);
    PairMemory blocks(std::vector<std::uint16_t>(numbersIn(copy), kNothing<std::uint16_t>));
    copy.tensor = tensor.begin();
    copy.blocks = blocks.begin();
    launchPairs(copy, true);
    std::vector<std::uint16_t> expected(numbersIn(copy));
    forEachPixel(copy, [&](std::int64_t place, std::int64_t to) {
      expected[static_cast<std::size_t>(to)] = from[static_cast<std::size_t>(place)];
    });
    ASSERT_EQ(blocks.numbers(), expected) << i;
  }
}

TEST(PairCopyTest, FromBlocksWritesEachPixel) {
  for (int i = 0; i < 300; ++i) {
    BlockCopy copy = randomPairs();
    std::vector<std::uint16_t> expected = numbers<std::uint16_t>(tensorSize(copy));
    const std::vector<std::uint16_t> from = numbers<std::uint16_t>(numbersIn(copy));
    PairMemory tensor(expected), blocks(from);
    copy.tensor = tensor.begin();
    copy.blocks = blocks.begin();
    forEachPixel(copy, [&](std::int64_t to, std::int64_t place) {
      expected[static_cast<std::size_t>(to)] = from[static_cast<std::size_t>(place)];
    });
    launchPairs(copy, false);
    ASSERT_EQ(tensor.numbers(), expected) << i;
  }
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

/// Addresses, of which only those that are written take memory.
class Addresses {
 public:
  explicit Addresses(std::size_t bytes)
      : bytes_(bytes),
        begin_(mmap(nullptr,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1,
                    0)) {}
  ~Addresses() { munmap(begin_, bytes_); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  void* begin() const { return begin_ != MAP_FAILED ? begin_ : nullptr; }

 private:
  std::size_t bytes_;
  void* begin_;
};

// Beyond what an int counts, in numbers.
constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 8;

/// Two samples, channels and rows, of which those of one dimension are far from each other.
BlockCopy farApart(int dimension, int numberBytes) {
  BlockCopy copy{};
  copy.numberBytes = numberBytes;
  copy.samples = copy.channels = copy.height = copy.down = 2;
  copy.width = copy.across = 6;
  copy.rows = copy.columns = 1;
  copy.numbers = 8;
  const std::int64_t strides[] = {24, 12, 6, 1};
  std::copy_n(strides, 4, copy.strides);
  copy.strides[dimension] = kFar;
  return copy;
}

/// To blocks and back.
template <typename Number, typename Launch>
void expectCopied(BlockCopy copy, Launch launch) {
  const Addresses addresses(tensorSize(copy) * sizeof(Number));
  ASSERT_NE(addresses.begin(), nullptr);
  auto* const tensor = static_cast<Number*>(addresses.begin());
  std::vector<Eight> eights(numbersIn(copy) * sizeof(Number) / sizeof(Eight));
  auto* const blocks = reinterpret_cast<Number*>(eights.data());
  const std::vector<Number> from = numbers<Number>(numbersIn(copy));
  forEachPixel(copy, [&](std::int64_t place, std::int64_t block) { tensor[place] = from[block]; });
  copy.tensor = tensor;
  copy.blocks = blocks;
  launch(copy, true);
  int wrong = 0;
  forEachPixel(copy, [&](std::int64_t place, std::int64_t block) {
    wrong += blocks[block] == from[block] ? 0 : 1;
    tensor[place] = Number{};
  });
  launch(copy, false);
  forEachPixel(copy, [&](std::int64_t place, std::int64_t block) {
    wrong += tensor[place] == from[block] ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(PixelCopyTest, StridesHave64Bits) {
  for (const int dimension : {0, 1, 2})
    expectCopied<TypeParam>(farApart(dimension, sizeof(TypeParam)), launchPixels<TypeParam>);
}

TEST(PairCopyTest, StridesHave64Bits) {
  for (const int dimension : {0, 1, 2})
    expectCopied<std::uint16_t>(farApart(dimension, 2),
                                [](const BlockCopy& copy, bool to) { launchPairs(copy, to); });
}

/// Every number of both types, NaNs too: the sum begins with it, then it is added once more.
TEST(WideSumTest, NumbersOfTwoBytesAreAddedUpInFloat) {
  constexpr int kNumbers = 1 << 16, kOthers = kSummedAtOnce;
  std::vector<std::uint16_t> numbers(kNumbers);
  std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
  const float guard = 7;
  for (const bool isBfloat16 : {false, true}) {
    std::vector<float> sums(kNumbers + kOthers, guard);
    const auto run = [&](bool adds) {
      const WideSum sum{numbers.data(), sums.data(), kNumbers, adds ? 1 : 0, isBfloat16 ? 1 : 0};
      constexpr int kTiles = kNumbers / (kThreads * kSummedAtOnce) + 1;  // one too many
      for (int tile = 0; tile < kTiles; ++tile)
        for (threadIdx.x = 0; threadIdx.x < kThreads; ++threadIdx.x) addUp(sum, tile);
    };
    run(false);
    run(true);
    for (int i = 0; i < kNumbers; ++i) {
      const float once =
          isBfloat16 ? __bfloat162float(__ushort_as_bfloat16(numbers[static_cast<std::size_t>(i)]))
                     : __half2float(__ushort_as_half(numbers[static_cast<std::size_t>(i)]));
      const float sum = sums[static_cast<std::size_t>(i)];
      ASSERT_TRUE(sum == 2 * once || (std::isnan(sum) && std::isnan(once))) << i;
    }
    EXPECT_EQ(std::count(sums.end() - kOthers, sums.end(), guard), kOthers);
  }
}

}  // namespace
}  // namespace ucudnn
