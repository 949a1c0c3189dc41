// What decides how a total is laid out: arithmetic, without a device.
#include <gtest/gtest.h>

#include <limits>

#include "workspace/arena_streams.hpp"
#include "workspace/layout_search.hpp"
#include "workspace/overlap.hpp"

namespace ucudnn {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
const int kArena = 0;
const int kOther = 0;

TEST(OverlapTest, UsesThatTheirStreamsOrderAreOneGroup) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kArena, 10, 25}, {3, &kArena, 25, 30}});
  EXPECT_DOUBLE_EQ(30, seen.spanMs);
  EXPECT_DOUBLE_EQ(30, seen.leastMs);
  EXPECT_EQ(1U, seen.groups);
}

TEST(OverlapTest, UsesThatWaitForTheirRegionAreGroupsOfTheirOwn) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kArena, 0, 20}, {3, &kArena, 0, 30}});
  EXPECT_DOUBLE_EQ(30, seen.spanMs);
  EXPECT_DOUBLE_EQ(30, seen.serialMs);
  EXPECT_DOUBLE_EQ(10, seen.leastMs);  // no stream is busy for longer
  EXPECT_EQ(3U, seen.groups);
}

TEST(OverlapTest, UsesOfSeveralRegionsRunSideBySide) {
  const Overlap seen = overlapOf({{1, &kArena, 0, 10}, {2, &kOther, 2, 12}, {3, nullptr, 20, 21}});
  EXPECT_DOUBLE_EQ(13, seen.spanMs);
  EXPECT_DOUBLE_EQ(21, seen.serialMs);
  EXPECT_EQ(2U, seen.groups);
  EXPECT_EQ(seen.groupOf.at(1), seen.groupOf.at(3));
}

LayoutSearch::Window window(double elapsedMs,
                            double leastMs,
                            std::size_t groups,
                            double plannedMs) {
  LayoutSearch::Window result;
  result.overlap.elapsedMs = elapsedMs;
  result.overlap.serialMs = 100;
  result.overlap.leastMs = leastMs;
  result.overlap.groups = groups;
  result.referenceMs = 100;
  result.plannedMs = plannedMs;
  return result;
}

/// What comes after two windows alike.
template <typename PlannedMs>
LayoutKind nextOfTwo(LayoutSearch& search,
                     const LayoutSearch::Window& window,
                     bool mayDivide,
                     const PlannedMs& plannedMs) {
  const LayoutKind before = search.current();
  EXPECT_EQ(before, search.next(window, mayDivide, plannedMs)) << "one window may deceive";
  return search.next(window, mayDivide, plannedMs);
}

TEST(LayoutSearchTest, WithoutOverlapOneArenaStays) {
  LayoutSearch search;
  EXPECT_EQ((LayoutKind{1, false}),
            search.next(window(100, 100, 1, 100), true, [](const auto&) { return 50.0; }));
  EXPECT_FALSE(search.isSearching());
  EXPECT_TRUE(search.hasDecided());
}

TEST(LayoutSearchTest, WhatCannotPayIsNotTried) {
  LayoutSearch search;
  // If all three groups overlapped at any time, 107 ms were the least.
  EXPECT_EQ((LayoutKind{1, false}),
            search.next(window(100, 90, 3, 100), false, [](const auto&) { return 320.0; }));
  EXPECT_FALSE(search.isSearching());
}

TEST(LayoutSearchTest, TheBestOfThoseTriedIsKept) {
  for (const bool threeWin : {false, true}) {
    LayoutSearch search;
    const auto planned = [](const LayoutKind&) { return 105.0; };
    ASSERT_EQ((LayoutKind{3, false}), nextOfTwo(search, window(100, 40, 3, 100), true, planned));
    ASSERT_EQ((LayoutKind{2, false}),
              nextOfTwo(search, window(threeWin ? 50 : 110, 40, 3, 105), true, planned));
    ASSERT_EQ((LayoutKind{1, true}), nextOfTwo(search, window(105, 40, 3, 105), true, planned));
    EXPECT_TRUE(search.isSearching());
    EXPECT_EQ((LayoutKind{threeWin ? 3U : 1U, false}),
              nextOfTwo(search, window(102, 40, 3, 105), true, planned));
    EXPECT_FALSE(search.isSearching());
  }
}

// The client paused in one of two windows, or the host was held up.
TEST(LayoutSearchTest, APauseDecidesNothing) {
  LayoutSearch search;
  const auto planned = [](const LayoutKind&) { return 105.0; };
  ASSERT_EQ((LayoutKind{2, false}), nextOfTwo(search, window(100, 40, 2, 100), false, planned));
  EXPECT_EQ((LayoutKind{2, false}), search.next(window(900, 40, 2, 105), false, planned));
  EXPECT_EQ((LayoutKind{2, false}), search.next(window(60, 40, 2, 105), false, planned));
  EXPECT_FALSE(search.isSearching());
}

// Small kernels do not fill the device: side by side they take less than they are predicted to.
TEST(LayoutSearchTest, WhatOverlapMayMakeUpForIsTried) {
  LayoutSearch search;
  const auto planned = [](const LayoutKind&) { return 150.0; };
  EXPECT_EQ((LayoutKind{2, false}), nextOfTwo(search, window(100, 95, 2, 100), false, planned));
}

TEST(LayoutSearchTest, ALayoutThatIsNotPossibleIsNotTried) {
  LayoutSearch search;
  EXPECT_EQ((LayoutKind{1, false}),
            search.next(window(100, 10, 3, 100), true, [](const auto&) { return kImpossible; }));
}

TEST(LayoutSearchTest, SeveralArenasGoBackToOneWhenNothingOverlapsAnyMore) {
  LayoutSearch search;
  const auto planned = [](const LayoutKind& kind) { return kind.arenas == 1 ? 100.0 : 130.0; };
  ASSERT_EQ((LayoutKind{2, false}), nextOfTwo(search, window(100, 40, 2, 100), false, planned));
  ASSERT_EQ((LayoutKind{2, false}), nextOfTwo(search, window(65, 65, 2, 130), false, planned));
  const auto rest = search.windowsOfRest();
  ASSERT_EQ((LayoutKind{1, false}), nextOfTwo(search, window(130, 130, 1, 130), false, planned));
  EXPECT_EQ((LayoutKind{1, false}), nextOfTwo(search, window(100, 100, 1, 100), false, planned));
  EXPECT_LT(rest, search.windowsOfRest());
}

TEST(ArenaStreamsTest, IdleStreamsAreForgottenHoweverManyThereAre) {
  ArenaStreams streams;
  streams.assign({{1, 0}, {2, 1}}, 0);
  for (std::uint64_t now = 1; now <= 2000; ++now) {
    streams.arenaOf(1, 1, now);
    streams.arenaOf(100 + now, now % 2, now);
    ASSERT_LE(streams.size(), ArenaStreams::kMostStreams);
  }
  EXPECT_TRUE(streams.knows(1));
  EXPECT_FALSE(streams.knows(2));
  streams.forgetIdleStreams(1990);
  EXPECT_EQ(12U, streams.size());  // 1990 to 2000, and the one that is always in use
  EXPECT_EQ(0U, streams.arenaOf(1, 1, 2001)) << "another arena than before";
  EXPECT_EQ(1U, streams.arenaOf(5, 1, 2001));
}

}  // namespace
}  // namespace ucudnn
