#include "tool/timing.hpp"

#include <gtest/gtest.h>

#include "tool/progress.hpp"

namespace ucudnn::tool {
namespace {

TEST(Timing, CallsFillFiveMilliseconds) {
  EXPECT_EQ(callsForTiming(0), 500);
  EXPECT_EQ(callsForTiming(0.001), 500);
  EXPECT_EQ(callsForTiming(0.02), 250);
  EXPECT_EQ(callsForTiming(3), 2);
  EXPECT_EQ(callsForTiming(80), 1);
}

TEST(Timing, Median) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 2, 100}), 3);
}

TEST(Progress, LineIsCutToTheTerminal) {
  EXPECT_EQ(progressLine(3, 6, "conv4 forward", 80),
            "[###############...............] 3/6  conv4 forward");
  EXPECT_EQ(progressLine(6, 6, "conv4 forward", 36), "[##############################] 6/6");
}

}  // namespace
}  // namespace ucudnn::tool
