// Which tiles, folded columns and sums this cuDNN's engines are offered for.
#include <algorithm>

#include "engines_fixture.hpp"
#include "kernels/built_engine.hpp"
#include "kernels/folds.hpp"
#include "kernels/tiles.hpp"
#include "support/operations.hpp"

namespace ucudnn {
namespace {

using namespace test;

using EnginePartsTest = EnginesTest;

int tilesOf(const KernelOffer& offer) {
  return engineConfigurationOf(offer.kernel.id).tiles;
}

/// ResNet-18's last layers: their filters take 9 MiB, which each sample's engine copies.
TEST_F(EnginePartsTest, LargeFiltersHaveTilesThatNeedTheirShare) {
  for (const Operation operation : kOperations)
    for (const int batch : {1, 16, 64}) {
      const Problem problem = convolution(operation, batch, 512, 512, 7, 3);
      const auto found = offers(problem);
      for (const int tiles : {2, 4}) {
        const Problem tile = cutInTiles(problem, tiles).front().problem;
        const std::size_t least = tile.xBytes() + tile.wBytes();
        std::vector<KernelOffer> tiled;
        for (const KernelOffer& offer : found)
          if (tilesOf(offer) == tiles) tiled.push_back(offer);
        ASSERT_EQ(tiled.size(), 3U) << toText(operation) << " N=" << batch;
        EXPECT_TRUE(std::any_of(tiled.begin(),
                                tiled.end(),
                                [&](const KernelOffer& offer) {
                                  return offer.workspaceBytes <= least + problem.yBytes();
                                }))
            << toText(operation) << " N=" << batch;
        expectBuilt(tile, tiled);
      }
    }
}

/// AlexNet's fourth layer. For a filter gradient's tile cuDNN first proposes an engine that takes
/// several times the tensors.
TEST_F(EnginePartsTest, TilesNeedLessThanTheWholeFilter) {
  for (const Operation operation : kOperations)
    for (const int batch : {4, 8, 16}) {
      const Problem problem = convolution(operation, batch, 384, 384, 13, 3);
      std::size_t least = SIZE_MAX, mostTiled = 0;
      for (const KernelOffer& offer : offers(problem)) {
        if (tilesOf(offer) > 1)
          mostTiled = std::max(mostTiled, offer.workspaceBytes);
        else if (offer.workspaceBytes >= problem.wBytes())
          least = std::min(least, offer.workspaceBytes);
      }
      EXPECT_LT(0U, mostTiled);
      EXPECT_LT(mostTiled, least) << toText(operation) << " N=" << batch;
    }
}

/// ResNet-50's last expansion. Another engine that copies the filter needs half as much as the
/// best, but what is best may be the fastest as tiles as well.
TEST_F(EnginePartsTest, TheBestEnginesTilesAreAmongThem) {
  const Problem problem = convolution(Operation::kForward, 32, 512, 2048, 7, 1);
  const auto found = offers(problem);
  ASSERT_FALSE(found.empty());
  ASSERT_LT(problem.wBytes(), found.front().workspaceBytes);
  const auto engineOf = [](const KernelOffer& offer) {
    return engineConfigurationOf(offer.kernel.id).engine;
  };
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const KernelOffer& offer) {
    return tilesOf(offer) == 2 && engineOf(offer) == engineOf(found.front()) &&
           offer.workspaceBytes < found.front().workspaceBytes;
  }));
}

TEST_F(EnginePartsTest, OthersHaveNoTiles) {
  for (const Operation operation : kOperations) {
    const Problem manySamples = convolution(operation, 128, 512, 512, 7, 3);
    const Problem smallFilter = convolution(operation, 4, 256, 256, 14, 3);
    const Problem oddFilters = convolution(operation, 4, 512, 509, 7, 3);
    Problem rounded = convolution(operation, 4, 1024, 1024, 7, 3);
    rounded.xType = rounded.wType = rounded.yType = CUDNN_DATA_HALF;
    for (const Problem& problem : {manySamples, smallFilter, oddFilters, rounded}) {
      const auto found = offers(problem);
      const auto isTiled = [](const KernelOffer& offer) { return tilesOf(offer) > 1; };
      EXPECT_EQ(std::any_of(found.begin(), found.end(), isTiled),
                problem == rounded && operation != Operation::kBackwardData)
          << problem.text();
    }
  }
}

int foldsOf(const KernelOffer& offer) {
  return engineConfigurationOf(offer.kernel.id).folds;
}

/// ResNet's first filter gradient: engines copy its 3 channels to 8, and two columns' 6 to 8.
Problem stem(cudnnDataType_t type, int batch) {
  Problem problem = convolution(Operation::kBackwardFilter, batch, 3, 64, 224, 7);
  problem.xType = problem.wType = problem.yType = type;
  problem.wFormat = CUDNN_TENSOR_NHWC;
  problem.mathType = CUDNN_TENSOR_OP_MATH;
  problem.strides = {2, 2};
  problem.ySizes = {batch, 64, 112, 112};
  problem.xStrides = {224 * 224 * 3, 1, 224 * 3, 3};
  problem.yStrides = {112 * 112 * 64, 1, 112 * 64, 64};
  return problem;
}

TEST_F(EnginePartsTest, FoldedColumnsTakeHalfTheCopy) {
  constexpr int kBatch = 128;
  constexpr std::size_t kCopy = std::size_t{kBatch} * 224 * 224 * 8 * 2;
  for (const auto type : {CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF}) {
    const Problem problem = stem(type, kBatch);
    std::vector<KernelOffer> folded;
    std::size_t leastCopying = SIZE_MAX;
    for (const KernelOffer& offer : offers(problem)) {
      if (foldsOf(offer) == 2) folded.push_back(offer);
      if (foldsOf(offer) == 1 && offer.workspaceBytes > kCopy / 2)
        leastCopying = std::min(leastCopying, offer.workspaceBytes);
    }
    EXPECT_GE(leastCopying, kCopy);
    ASSERT_EQ(folded.size(), 8U);
    const auto fits = [](const KernelOffer& offer) { return offer.workspaceBytes <= 64U << 20; };
    EXPECT_TRUE(std::all_of(folded.begin(), folded.end(), fits));
    expectBuilt(Folding(problem).folded, folded);
  }
}

int sumsOf(const KernelOffer& offer) {
  return engineConfigurationOf(offer.kernel.id).sums;
}

/// In NCHW engines of half and bfloat16 copy x and y.
TEST_F(EnginePartsTest, WhereTensorsAreCopiedPartsAreSummed) {
  for (const auto type : {CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF}) {
    Problem problem = convolution(Operation::kBackwardFilter, 128, 64, 64, 56, 3);
    problem.xType = problem.wType = problem.yType = type;
    problem.mathType = CUDNN_TENSOR_OP_MATH;
    std::vector<int> parts;
    std::size_t least = SIZE_MAX;
    for (const KernelOffer& offer : offers(problem)) {
      if (sumsOf(offer) == 1) continue;
      parts.push_back(sumsOf(offer));
      EXPECT_LT(offer.workspaceBytes, problem.xBytes() + problem.yBytes());
      least = std::min(least, offer.workspaceBytes);
      EXPECT_TRUE(offer.deterministic);
      expectBuilt(EnginePart(problem, engineConfigurationOf(offer.kernel.id)).problem, {offer});
    }
    EXPECT_EQ(parts, (std::vector<int>{8, 16, 32}));
    EXPECT_LE(least, 16U << 20);
  }
}

TEST_F(EnginePartsTest, OthersAreNotSummed) {
  const auto none = [&](const Problem& problem) {
    for (const KernelOffer& offer : offers(problem))
      if (sumsOf(offer) != 1) return false;
    return true;
  };
  Problem half = convolution(Operation::kBackwardFilter, 32, 64, 64, 56, 3);
  EXPECT_TRUE(none(half)) << "float";
  half.xType = half.wType = half.yType = CUDNN_DATA_HALF;
  EXPECT_FALSE(none(half));
  half.operation = Operation::kForward;
  EXPECT_TRUE(none(half)) << "its batch can be split";
  half.operation = Operation::kBackwardFilter;
  EXPECT_TRUE(none(half.withBatch(31)));
  half.wFormat = CUDNN_TENSOR_NHWC;
  half.xStrides = half.yStrides = {64 * 56 * 56, 1, 56 * 64, 64};
  EXPECT_TRUE(none(half)) << "nothing is copied";
}

/// Nothing to gain, or a batch that can be split.
TEST_F(EnginePartsTest, OthersAreNotFolded) {
  Problem wide = stem(CUDNN_DATA_HALF, 4);
  wide.xSizes[1] = wide.wSizes[1] = 8;
  wide.xStrides = {224 * 224 * 8, 1, 224 * 8, 8};
  for (const Problem& problem : {stem(CUDNN_DATA_FLOAT, 4), wide})
    for (const KernelOffer& offer : offers(problem)) EXPECT_EQ(foldsOf(offer), 1);
}

}  // namespace
}  // namespace ucudnn
