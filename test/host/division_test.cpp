#include "host/division.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "cuda/error.hpp"
#include "problems.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

HostOperands allPinned() {
  HostOperands operands;
  operands.places = {Place::kPinned, Place::kPinned, Place::kPinned};
  return operands;
}

/// Kernels at so many multiply-adds a ms, which need so much workspace.
TileKernels kernelsAt(double rate, std::size_t workspaceBytes = 0) {
  return {[rate](const Problem& tile, std::size_t) { return tile.multiplyAdds() / rate; },
          [workspaceBytes](const Problem&) { return workspaceBytes; }};
}

/// Without costs beside bytes.
Link linkAt(double bytesPerMs) {
  Link link;
  link.bytesPerMs[0] = link.bytesPerMs[1] = bytesPerMs;
  link.copyMs = link.rowMs = 0;
  return link;
}

TEST(PredictionTest, OneTileIsCopiedComputedAndCopied) {
  const Problem whole = test::planeProblem(Operation::kForward, 4, 64);
  Tiling tiling;
  tiling.size = {1, 64, 4, 4};
  const double ms =
      predictedMs(Tiles(whole, tiling), allPinned(), linkAt(1000), [](auto&) { return 7.0; });
  const auto bytes = static_cast<double>(whole.xBytes() + whole.wBytes() + whole.yBytes());
  EXPECT_NEAR(bytes / 1000 + 7, ms, 1e-9);
}

TEST(PredictionTest, CopiesHideBehindKernels) {
  const Problem whole = test::planeProblem(Operation::kForward, 4, 64);
  Tiling tiling;
  tiling.size = {1, 4, 4, 4};
  tiling.slots = {2, 1, 2};
  const Tiles tiles(whole, tiling);
  const double kernelMs = 100;
  const double ms = predictedMs(tiles, allPinned(), linkAt(1000), [&](auto&) { return kernelMs; });
  EXPECT_GT(ms, 16 * kernelMs);
  EXPECT_LT(ms, 16.2 * kernelMs) << "the first part in and the last out";
}

// Neighbours share two rows, which are copied once if both are on the device at a time.
TEST(PredictionTest, RowsThatBandsShareCrossTheLinkOnce) {
  const Problem whole = test::planeProblem(Operation::kForward, 4, 64);
  HostOperands operands;
  operands.places[kTensorX] = Place::kPinned;
  Tiling tiling;
  tiling.size = {1, 2, 4, 4};
  const auto ms = [&](int slots) {
    tiling.slots = {slots, 1, 2};
    Link link = linkAt(1000);
    link.deviceBytesPerMs = 1e12;
    return predictedMs(Tiles(whole, tiling), operands, link, [](auto&) { return 0.0; });
  };
  const double once = static_cast<double>(whole.xBytes()) / 1000;
  EXPECT_NEAR(once, ms(2), 1e-6);
  EXPECT_GT(ms(1), 1.8 * once);
}

TEST(DivisionTest, FitsTheBudgetAndIsNearTheBound) {
  const Problem whole = test::planeProblem(Operation::kForward, 64, 1024);
  const Link link = linkAt(5e7);
  for (const std::size_t budget : {64 * kMebibyte, 256 * kMebibyte, 4096 * kMebibyte}) {
    const Division division =
        chooseDivision(whole, allPinned(), link, {budget}, kernelsAt(whole.multiplyAdds() / 50));
    EXPECT_LE(division.bytes(), budget);
    EXPECT_LT(division.predictedMs, 1.1 * 50);
    EXPECT_GE(division.predictedMs, 50);
  }
}

TEST(DivisionTest, ASmallBudgetIsRefusedWithTheBytesThatAreNeeded) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
    const Problem whole = test::planeProblem(operation, 24, 30);
    const std::size_t workspaceBytes = operation == Operation::kForward ? 0 : 65536;
    const auto choose = [&](std::size_t budget) {
      return chooseDivision(
          whole, allPinned(), linkAt(1e6), {budget}, kernelsAt(1e6, workspaceBytes));
    };
    try {
      choose(1024);
      ADD_FAILURE() << "1 KiB is enough";
    } catch (const Error& error) {
      EXPECT_EQ(CUDNN_STATUS_ALLOC_FAILED, error.status());
      std::cmatch match;
      ASSERT_TRUE(std::regex_search(error.what(), match, std::regex("need ([0-9]+) bytes")));
      const std::size_t needed = std::stoull(match[1]);
      const Division division = choose(needed);
      EXPECT_EQ(needed, division.bytes());
      EXPECT_EQ(workspaceBytes, division.workspaceBytes);
      EXPECT_THROW(choose(needed - 1), Error);
    }
  }
}

/// Copies with channels in eights, unless they are; and a problem with a prime number of channels.
TileKernels paddingKernels() {
  TileKernels kernels = kernelsAt(1e6);
  kernels.leastWorkspace = [](const Problem& tile) -> std::size_t {
    const std::int32_t channels = tile.xSizes[1], filters = tile.wSizes[0];
    if (channels % 13 == 0) return kNoWorkspace;
    if (channels % 8 == 0 && filters % 8 == 0) return 0;
    return 3 * (tile.xBytes() + tile.yBytes()) * 8 / static_cast<unsigned>(channels);
  };
  return kernels;
}

// Every tile has a kernel within the division's workspace, and what a refusal names is enough.
TEST(DivisionTest, EachTileHasAKernelWithinTheWorkspace) {
  std::mt19937 random(4);
  const TileKernels kernels = paddingKernels();
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    Problem whole = test::planeProblem(static_cast<Operation>(i % 3), 1, 20);
    whole.xSizes[0] = 1 + static_cast<std::int32_t>(random() % 3);
    whole.xSizes[1] = whole.wSizes[1] = 2 + static_cast<std::int32_t>(random() % 25);
    whole.wSizes[0] = 1 + static_cast<std::int32_t>(random() % 26);
    test::complete(whole);
    SCOPED_TRACE(whole.text() + " N=" + std::to_string(whole.xSizes[0]));
    DeviceBudget budget{std::size_t{1} << (10 + random() % 8), random() % 512 * 2};
    const auto choose = [&] {
      return chooseDivision(whole, allPinned(), linkAt(1e6), budget, kernels);
    };
    Division division;
    try {
      division = choose();
    } catch (const Error& error) {
      ++refused;
      std::cmatch match;
      ASSERT_TRUE(std::regex_search(error.what(), match, std::regex("need ([0-9]+) bytes")))
          << error.what();
      budget.bytes = std::stoull(match[1]);
      ASSERT_NO_THROW(division = choose());
    }
    EXPECT_LE(division.bytes(), budget.forTiles());
    const Tiles tiles(whole, division.tiling);
    const SlotLayout layout(tiles, allPinned());
    forEachVisit(tiles, [&](const Visit& visit) {
      const Problem tile = layout.inPlace(whole, tiles.tile(visit.index).problem);
      EXPECT_LE(kernels.leastWorkspace(tile), division.workspaceBytes) << tile.text();
      return !testing::Test::HasFailure();
    });
    if (HasFailure()) return;
  }
  EXPECT_LT(20, refused);
  EXPECT_GT(180, refused);
}

// Each addition to half would be rounded.
TEST(DivisionTest, NothingAddsInHalf) {
  Problem whole = test::planeProblem(Operation::kBackwardFilter, 24, 30);
  whole.xType = whole.wType = whole.yType = CUDNN_DATA_HALF;
  const std::size_t tensors = whole.xBytes() + whole.yBytes();
  EXPECT_THROW(chooseDivision(whole, allPinned(), linkAt(1e6), {tensors / 24}, kernelsAt(1e6)),
               Error);
  const Division division =
      chooseDivision(whole, allPinned(), linkAt(1e6), {tensors}, kernelsAt(1e6));
  EXPECT_EQ(whole.ySizes[2], division.tiling.size[kBand]);
}

TEST(DivisionTest, PinnedTensorsAreCutFinerWhereTheLinkIsSlow) {
  const Problem whole = test::planeProblem(Operation::kForward, 64, 512);
  HostOperands onDevice;
  onDevice.places[kTensorX] = Place::kPinned;
  Link link = linkAt(5e6);
  const auto tilesAt = [&](double copyMs) {
    link.copyMs = copyMs;
    const Division division = chooseDivision(
        whole, allPinned(), link, {4096 * kMebibyte}, kernelsAt(whole.multiplyAdds() / 5));
    return Tiles(whole, division.tiling).count();
  };
  EXPECT_GT(tilesAt(0.001), tilesAt(3)) << "where each copy costs much";
}

}  // namespace
}  // namespace ucudnn
