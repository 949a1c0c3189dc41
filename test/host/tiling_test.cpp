#include "host/tiling.hpp"

#include <gtest/gtest.h>

#include "host/schedule.hpp"
#include "problems.hpp"
#include "support/operations.hpp"

namespace ucudnn {
namespace {

Problem randomProblem(std::mt19937& random, Operation operation) {
  const auto pick = [&](unsigned least, unsigned most) {
    return static_cast<std::int32_t>(least + random() % (most - least + 1));
  };
  for (;;) {
    Problem problem;
    problem.operation = operation;
    problem.xSizes = {1, 1, pick(1, 40), pick(4, 8)};
    problem.wSizes = {1, 1, pick(1, 5), 1};
    problem.pads = {pick(0, 4), 0};
    problem.strides = {pick(1, 4), 1};
    problem.dilations = {pick(1, 3), 1};
    problem.xType = problem.wType = problem.yType = CUDNN_DATA_FLOAT;
    test::complete(problem);
    if (problem.ySizes[2] > 0 && problem.pads[0] < problem.wSizes[2] * problem.dilations[0])
      return problem;
  }
}

/// The rows of x that a row of y reads, in the whole problem, for each tap; -1: padding.
std::int32_t rowOfX(const Problem& problem, std::int32_t y, std::int32_t tap) {
  const std::int32_t x = y * problem.strides[0] - problem.pads[0] + tap * problem.dilations[0];
  return x >= 0 && x < problem.xSizes[2] ? x : -1;
}

// Each tile computes its output rows from the rows that the whole problem reads for them.
TEST(TilesTest, BandsReadTheRowsOfTheWholeOrZeros) {
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    for (const Operation operation : kOperations) {
      const Problem whole = randomProblem(random, operation);
      const bool isBackwardData = operation == Operation::kBackwardData;
      Tiling tiling;
      tiling.size = {1, 1, 1, 1};
      const std::int32_t all = sizeAlong(whole, kBand, 0);
      tiling.size[kBand] = 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(all));
      if (isBackwardData)
        tiling.size[kBand] =
            (tiling.size[kBand] + whole.strides[0] - 1) / whole.strides[0] * whole.strides[0];
      const Tiles tiles(whole, tiling);
      std::vector<int> pairs;  // y, x, tap: as often as the tiles have them
      for (std::int32_t band = 0; band < tiles.count(kBand); ++band) {
        const Tile tile = tiles.tile({0, band, 0, 0});
        const Tiles::BandRows rows = tiles.bandRows(band);
        const Range out = tiles.range(kBand, band);
        ASSERT_EQ(rows.count(), isBackwardData ? tile.problem.ySizes[2] : tile.problem.xSizes[2]);
        ASSERT_EQ(out.count, isBackwardData ? tile.problem.xSizes[2] : tile.problem.ySizes[2]);
        const std::int32_t firstX = isBackwardData ? out.first : rows.rows.first - rows.before;
        const std::int32_t firstY = isBackwardData ? rows.rows.first - rows.before : out.first;
        for (std::int32_t y = 0; y < tile.problem.ySizes[2]; ++y)
          for (std::int32_t tap = 0; tap < whole.wSizes[2]; ++tap) {
            const std::int32_t x = rowOfX(tile.problem, y, tap);
            const std::int32_t wholeY = y + firstY, wholeX = x + firstX;
            if (x < 0 || wholeY < 0 || wholeY >= whole.ySizes[2]) continue;  // zeros
            if (wholeX < 0 || wholeX >= whole.xSizes[2]) continue;
            ASSERT_EQ(wholeX, rowOfX(whole, wholeY, tap)) << whole.text();
            pairs.push_back((wholeY * 1000 + wholeX) * 10 + tap);
          }
        // cuDNN computes y's size from x's.
        const std::int32_t reach = (whole.wSizes[2] - 1) * whole.dilations[0];
        EXPECT_EQ(
            tile.problem.ySizes[2],
            (tile.problem.xSizes[2] + 2 * tile.problem.pads[0] - reach - 1) / whole.strides[0] + 1);
      }
      std::vector<int> expected;
      for (std::int32_t y = 0; y < whole.ySizes[2]; ++y)
        for (std::int32_t tap = 0; tap < whole.wSizes[2]; ++tap)
          if (rowOfX(whole, y, tap) >= 0)
            expected.push_back((y * 1000 + rowOfX(whole, y, tap)) * 10 + tap);
      std::sort(pairs.begin(), pairs.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(expected, pairs) << toText(operation) << ' ' << whole.text() << " bands of "
                                 << tiling.size[kBand];
    }
  }
}

TEST(TilesTest, EachPartFitsItsSlot) {
  std::mt19937 random(5);
  HostOperands operands;
  operands.places = {Place::kPinned, Place::kPinned, Place::kPinned};
  int larger = 0;  // last bands
  for (int i = 0; i < 3000; ++i) {
    const Problem whole = randomProblem(random, kOperations[i % 3]);
    const std::int32_t all = sizeAlong(whole, kBand, 0);
    const std::int32_t unit = i % 3 == 1 ? whole.strides[0] : 1;
    Tiling tiling;
    tiling.size = {1, 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(all)), 1, 1};
    tiling.size[kBand] = (tiling.size[kBand] + unit - 1) / unit * unit;
    tiling.slots = {2, 2, 2};
    const Tiles tiles(whole, tiling);
    const SlotLayout slots(tiles, operands);
    const auto bytesOf = [](const Problem& tile, Tensor tensor) {
      return tensor == kTensorX   ? tile.xBytes()
             : tensor == kTensorW ? tile.wBytes()
                                  : tile.yBytes();
    };
    for (std::int32_t band = 0; band < tiles.count(kBand); ++band)
      for (const Tensor tensor : {kTensorX, kTensorW, kTensorY}) {
        const std::size_t bytes = bytesOf(tiles.tile({0, band, 0, 0}).problem, tensor);
        ASSERT_LE(bytes, slots.offset(tensor, 1) - slots.offset(tensor, 0)) << whole.text();
        larger += bytes > bytesOf(tiles.tile({}).problem, tensor) ? 1 : 0;
      }
  }
  EXPECT_LT(0, larger);
}

TEST(TilesTest, FullBandsAreOneProblem) {
  for (const Operation operation : kOperations) {
    const Problem whole = test::planeProblem(operation, 4, 40);
    Tiling tiling;
    tiling.size = {1, 10, 4, 4};
    const Tiles tiles(whole, tiling);
    ASSERT_EQ(4, tiles.count());
    for (std::int32_t band = 1; band < 4; ++band)
      EXPECT_EQ(tiles.tile({}).problem, tiles.tile({0, band, 0, 0}).problem);
    EXPECT_EQ(operation == Operation::kBackwardFilter, tiles.tile({0, 1, 0, 0}).adds);
  }
}

TEST(TilesTest, ChannelsAddForwardAndFiltersBackward) {
  Tiling tiling;
  tiling.size = {1, 40, 2, 2};
  const auto adds = [&](Operation operation, TileIndex index) {
    return Tiles(test::planeProblem(operation, 4, 40), tiling).tile(index).adds;
  };
  EXPECT_FALSE(adds(Operation::kForward, {0, 0, 1, 0}));
  EXPECT_TRUE(adds(Operation::kForward, {0, 0, 0, 1}));
  EXPECT_TRUE(adds(Operation::kBackwardData, {0, 0, 1, 0}));
  EXPECT_FALSE(adds(Operation::kBackwardData, {0, 0, 0, 1}));
  EXPECT_FALSE(adds(Operation::kBackwardFilter, {0, 0, 1, 1}));
}

// Groups have outputs of their own, which nothing else adds to.
TEST(TilesTest, EachPartOfTheOutputIsCompleteOnce) {
  for (const Operation operation : kOperations)
    for (const std::int32_t groups : {1, 4}) {
      Problem whole = test::planeProblem(operation, 8, 16);
      whole.groups = groups;
      whole.wSizes[1] = 8 / groups;
      Tiling tiling;
      tiling.size = {1, 4, groups > 1 ? 1 : 2, groups > 1 ? 1 : 4};
      tiling.slots = {2, 2, 2};
      const Tiles tiles(whole, tiling);
      std::int64_t complete = 0;
      bool begins = true;  // a part of the output
      forEachVisit(tiles, [&](const Visit& visit) {
        EXPECT_NE(begins, tiles.tile(visit.index).adds);
        begins = visit.isLast;
        if (visit.isLast) ++complete;
        return true;
      });
      EXPECT_TRUE(begins);
      EXPECT_EQ(tiles.partsOf(outputTensorOf(operation)), complete) << groups << " groups";
    }
}

TEST(TilesTest, UncutTensorsAreWhole) {
  const Problem whole = test::planeProblem(Operation::kForward, 8, 40);
  Tiling tiling;
  tiling.size = {1, 40, 4, 8};
  const Tiles tiles(whole, tiling);
  EXPECT_FALSE(tiles.isCut(kTensorX));
  EXPECT_TRUE(tiles.isCut(kTensorW));
  EXPECT_TRUE(tiles.isCut(kTensorY));
  const Tile tile = tiles.tile({0, 0, 1, 0});
  EXPECT_EQ(0U, tile.parts[kTensorX].offset);
  EXPECT_EQ(4U * 8 * 9 * 4, tile.parts[kTensorW].offset);
  EXPECT_EQ(4U * 40 * 40 * 4, tile.parts[kTensorY].offset);
}

}  // namespace
}  // namespace ucudnn
