#include "optimizer/placement_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ucudnn {
namespace {

using Use = PlacementCall::Use;

double msOf(const std::vector<PlacementCall>& calls, const std::vector<bool>& chosen) {
  double all = 0;
  for (const PlacementCall& call : calls) {
    std::array<double, 2> copies = call.otherMs;
    for (const Use& use : call.uses)
      if (!chosen[use.block])
        for (const std::size_t direction : {0, 1}) copies[direction] += use.ms[direction];
    all += std::max({call.kernelMs, copies[0], copies[1]});
  }
  return all;
}

TEST(PlacementChoiceTest, WhatSavesMostForItsBytesIsChosen) {
  // Block 0 is read once, block 1 twice; block 2 is hidden behind kernels.
  const std::vector<PlacementCall> calls = {{0, {}, {Use{0, {10, 0}}, Use{1, {10, 0}}}},
                                            {0, {}, {Use{1, {10, 0}}}},
                                            {100, {}, {Use{2, {10, 0}}}}};
  EXPECT_EQ(std::vector<bool>({false, true, false}), choosePlacement({8, 8, 8}, calls, 8));
  EXPECT_EQ(std::vector<bool>({true, true, false}), choosePlacement({8, 8, 8}, calls, 16));
  EXPECT_EQ(std::vector<bool>({true, true, true}), choosePlacement({8, 8, 8}, calls, 24));
  EXPECT_EQ(std::vector<bool>({false, false, false}), choosePlacement({8, 8, 8}, calls, 7));
}

TEST(PlacementChoiceTest, ASmallBlockIsWorthMoreThanALargeOneOfTheSameTime) {
  const std::vector<PlacementCall> calls = {{0, {}, {Use{0, {4, 0}}}}, {0, {}, {Use{1, {0, 4}}}}};
  EXPECT_EQ(std::vector<bool>({false, true}), choosePlacement({4, 2}, calls, 5));
}

// Both directions take as long: only both blocks together save time.
TEST(PlacementChoiceTest, CopiesBehindOthersCount) {
  const std::vector<PlacementCall> calls = {{1, {}, {Use{0, {9, 0}}, Use{1, {0, 9}}}}};
  EXPECT_EQ(std::vector<bool>({true, true}), choosePlacement({1, 1}, calls, 2));
}

TEST(PlacementChoiceTest, ABlockThatNoCallUsesIsNotChosen) {
  EXPECT_EQ(std::vector<bool>({false}), choosePlacement({1}, {}, 2));
  const std::vector<PlacementCall> calls = {{0, {5, 5}, {Use{0, {0, 0}}}}};
  EXPECT_EQ(std::vector<bool>({false}), choosePlacement({1}, calls, 2));
}

// Against all subsets of eight blocks.
TEST(PlacementChoiceTest, RandomNetworksAreNearTheBest) {
  std::mt19937 random(5);
  double worst = 1;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::size_t> bytes(8);
    std::size_t all = 0;
    for (std::size_t& each : bytes) all += each = 1 + random() % 20;
    std::vector<PlacementCall> calls(10);
    for (PlacementCall& call : calls) {
      call.kernelMs = static_cast<double>(random() % 20);
      for (int j = 0; j < 3; ++j) {
        const std::size_t block = random() % bytes.size();
        const auto ms = static_cast<double>(bytes[block]);
        call.uses.push_back({block, {ms, random() % 3 == 0 ? ms : 0}});
      }
    }
    const std::size_t room = all / 2;
    const std::vector<bool> chosen = choosePlacement(bytes, calls, room);
    std::size_t taken = 0;
    for (std::size_t block = 0; block < bytes.size(); ++block)
      taken += chosen[block] ? bytes[block] : 0;
    ASSERT_LE(taken, room);
    double best = msOf(calls, std::vector<bool>(bytes.size(), false));
    for (unsigned subset = 0; subset < 256; ++subset) {
      std::vector<bool> other(bytes.size());
      std::size_t takes = 0;
      for (std::size_t block = 0; block < bytes.size(); ++block) {
        other[block] = (subset >> block & 1U) != 0;
        takes += other[block] ? bytes[block] : 0;
      }
      if (takes <= room) best = std::min(best, msOf(calls, other));
    }
    worst = std::max(worst, msOf(calls, chosen) / best);
  }
  EXPECT_LE(worst, 1.2);
}

}  // namespace
}  // namespace ucudnn
