#include "tool/placement_bound.hpp"

#include <gtest/gtest.h>

namespace ucudnn::tool {
namespace {

Layer layerOf(int channels, int filters, int size, int stride = 1) {
  Layer layer;
  layer.batch = 2;
  layer.inputChannels = channels;
  layer.outputChannels = filters;
  layer.size = {size, size};
  layer.kernel = {3, 3};
  layer.pad = {1, 1};
  layer.stride = {stride, stride};
  layer.dilation = {1, 1};
  return layer;
}

// The second layer's input is the first one's output; before the third something makes it smaller.
TEST(PlacementBound, ALayersOutputIsTheNextOnesInput) {
  const PlacementProblem step =
      trainingStep({layerOf(3, 8, 16), layerOf(8, 8, 16), layerOf(8, 4, 8)},
                   {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}},
                   4,
                   1000,
                   {2, 3});
  EXPECT_EQ((std::vector<double>{2 * 3 * 256 * 4,
                                 8 * 3 * 9 * 4,
                                 2 * 8 * 256 * 4,
                                 8 * 8 * 9 * 4,
                                 2 * 8 * 64 * 4,
                                 4 * 8 * 9 * 4}),
            step.tensorBytes);
  ASSERT_EQ(9U, step.calls.size());
  EXPECT_EQ((std::vector<std::size_t>{2}), step.calls[0].writes);
  EXPECT_TRUE(step.calls[1].writes.empty());
  EXPECT_EQ((std::vector<std::size_t>{2, 3}), step.calls[1].reads);
  EXPECT_EQ(45, step.ms(std::vector<double>(6, 1)));
}

TEST(PlacementBound, IsBetweenAllAndNothingOnTheDevice) {
  const auto at = [](std::size_t deviceBytes) {
    return describePlacement(
        trainingStep({layerOf(3, 8, 16), layerOf(8, 8, 16)}, {{}, {}}, 4, deviceBytes, {1, 1}));
  };
  const PlacementReport none = at(1), half = at(12000), all = at(1 << 20);
  EXPECT_NEAR(none.inHostMemoryMs, none.leastMs, 1e-3 * none.inHostMemoryMs);
  EXPECT_LT(half.leastMs, 0.8 * none.leastMs);
  EXPECT_LT(0.1 * none.leastMs, half.leastMs);
  EXPECT_EQ(0, all.leastMs);
}

}  // namespace
}  // namespace ucudnn::tool
