// The rules that lay out a total: arithmetic, without a device.
#include <gtest/gtest.h>

#include <limits>

#include "workspace/arena_count.hpp"
#include "workspace/overlap.hpp"

namespace ucudnn {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
const int kArena = 0;
const int kOther = 0;

TEST(OverlapTest, UsesThatTheirStreamsOrderAreOneGroup) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kArena, 10, 25}, {3, &kArena, 25, 30}});
  EXPECT_DOUBLE_EQ(30, seen.elapsedMs);
  EXPECT_EQ(1U, seen.groups);
}

TEST(OverlapTest, UsesThatWaitForTheirRegionAreGroupsOfTheirOwn) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kArena, 0, 20}, {3, &kArena, 0, 30}});
  EXPECT_DOUBLE_EQ(30, seen.elapsedMs);
  EXPECT_DOUBLE_EQ(30, seen.serialMs);
  EXPECT_EQ(3U, seen.groups);
}

TEST(OverlapTest, UsesOfSeveralRegionsRunSideBySide) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kOther, 2, 12}, {3, nullptr, 20, 21}});
  EXPECT_DOUBLE_EQ(21, seen.elapsedMs);
  EXPECT_DOUBLE_EQ(21, seen.serialMs);
  EXPECT_EQ(2U, seen.groups);
  EXPECT_EQ(seen.groupOf.at(1), seen.groupOf.at(3));
}

ArenaCount::Window window(double elapsedMs, std::size_t groups, double plannedMs) {
  ArenaCount::Window result;
  result.overlap.elapsedMs = elapsedMs;
  result.overlap.serialMs = 100;
  result.overlap.groups = groups;
  for (std::size_t stream = 0; stream < 4; ++stream)
    result.overlap.groupOf[stream] = stream % groups;
  result.referenceMs = 100;
  result.plannedMs = plannedMs;
  return result;
}

/// The count after two windows alike.
template <typename PlannedMs>
std::size_t nextOfTwo(ArenaCount& count,
                      const ArenaCount::Window& window,
                      const PlannedMs& plannedMs) {
  const std::size_t before = count.current();
  EXPECT_EQ(before, count.next(window, plannedMs)) << "one window may deceive";
  return count.next(window, plannedMs);
}

TEST(ArenaCountTest, WithoutOverlapOneArenaStays) {
  ArenaCount count;
  EXPECT_EQ(1U, count.next(window(100, 1, 100), [](std::size_t) { return 50.0; }));
  EXPECT_FALSE(count.isComparing());
  EXPECT_TRUE(count.hasDecided());
}

TEST(ArenaCountTest, WhatCannotPayIsNotTried) {
  ArenaCount count;
  // If all three groups overlapped at any time, 107 ms were the least.
  EXPECT_EQ(1U, count.next(window(100, 3, 100), [](std::size_t) { return 320.0; }));
  EXPECT_FALSE(count.isComparing());
}

TEST(ArenaCountTest, AsManyAsThereAreGroupsAreKeptWhereTheyGain) {
  for (const bool gains : {false, true}) {
    ArenaCount count;
    const auto planned = [](std::size_t) { return 105.0; };
    ASSERT_EQ(3U, nextOfTwo(count, window(100, 3, 100), planned));
    EXPECT_TRUE(count.isTentative());
    ASSERT_EQ(gains ? 3U : 1U, nextOfTwo(count, window(gains ? 50 : 110, 3, 105), planned));
    EXPECT_FALSE(count.isTentative());
    EXPECT_FALSE(count.isComparing());
  }
}

// A part of the program: elsewhere its streams overlap.
TEST(ArenaCountTest, AWindowOnOneStreamChangesNothing) {
  ArenaCount count;
  const auto planned = [](std::size_t arenas) { return arenas == 1 ? 50.0 : 100.0; };
  ASSERT_EQ(2U, nextOfTwo(count, window(100, 2, 100), planned));
  ASSERT_EQ(2U, nextOfTwo(count, window(50, 2, 100), planned));
  ArenaCount::Window alone = window(100, 1, 100);
  alone.overlap.groupOf = {{1, 0}};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(2U, count.next(alone, planned));
  EXPECT_FALSE(count.isComparing());
}

// The client paused in one of two windows, or the host was held up.
TEST(ArenaCountTest, APauseDecidesNothing) {
  ArenaCount count;
  const auto planned = [](std::size_t) { return 105.0; };
  ASSERT_EQ(2U, nextOfTwo(count, window(100, 2, 100), planned));
  EXPECT_EQ(2U, count.next(window(900, 2, 105), planned));
  EXPECT_EQ(2U, count.next(window(60, 2, 105), planned));
  EXPECT_FALSE(count.isComparing());
}

// Small kernels do not fill the device: side by side they take less than they are predicted to.
TEST(ArenaCountTest, WhatOverlapMayMakeUpForIsTried) {
  ArenaCount count;
  EXPECT_EQ(2U, nextOfTwo(count, window(100, 2, 100), [](std::size_t) { return 150.0; }));
}

TEST(ArenaCountTest, ANumberThatIsNotPossibleIsNotTried) {
  ArenaCount count;
  EXPECT_EQ(1U, count.next(window(100, 3, 100), [](std::size_t) { return kImpossible; }));
}

TEST(ArenaCountTest, MoreGroupsGetMoreArenas) {
  ArenaCount count;
  const auto planned = [](std::size_t) { return 100.0; };
  ASSERT_EQ(2U, nextOfTwo(count, window(100, 2, 100), planned));
  ASSERT_EQ(2U, nextOfTwo(count, window(60, 2, 100), planned));
  ASSERT_EQ(4U, nextOfTwo(count, window(60, 4, 100), planned));
  EXPECT_EQ(4U, nextOfTwo(count, window(30, 4, 100), planned));
}

TEST(ArenaCountTest, SeveralArenasGoBackToOneWhenNothingOverlapsAnyMore) {
  ArenaCount count;
  const auto planned = [](std::size_t arenas) { return arenas == 1 ? 100.0 : 130.0; };
  ASSERT_EQ(2U, nextOfTwo(count, window(100, 2, 100), planned));
  ASSERT_EQ(2U, nextOfTwo(count, window(65, 2, 130), planned));
  const auto rest = count.windowsOfRest();
  ASSERT_EQ(1U, nextOfTwo(count, window(130, 1, 130), planned));
  EXPECT_EQ(1U, nextOfTwo(count, window(100, 1, 100), planned));
  EXPECT_LT(rest, count.windowsOfRest());
}

}  // namespace
}  // namespace ucudnn
