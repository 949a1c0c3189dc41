#include "optimizer/policy.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace ucudnn {
namespace {

struct SizesCase {
  BatchSizePolicy policy;
  int miniBatch;
  std::vector<int> sizes;
};

TEST(PolicyTest, SizesAscendToTheMiniBatch) {
  const SizesCase cases[] = {
      {BatchSizePolicy::kUndivided, 1, {1}},
      {BatchSizePolicy::kUndivided, 100, {100}},
      {BatchSizePolicy::kPowerOfTwo, 1, {1}},
      {BatchSizePolicy::kPowerOfTwo, 2, {1, 2}},
      {BatchSizePolicy::kPowerOfTwo, 3, {1, 2, 3}},
      {BatchSizePolicy::kPowerOfTwo, 8, {1, 2, 4, 8}},
      {BatchSizePolicy::kPowerOfTwo, 9, {1, 2, 4, 8, 9}},
      {BatchSizePolicy::kPowerOfTwo, 15, {1, 2, 4, 8, 15}},
      {BatchSizePolicy::kPowerOfTwo, 100, {1, 2, 4, 8, 16, 32, 64, 100}},
      {BatchSizePolicy::kAll, 1, {1}},
      {BatchSizePolicy::kAll, 5, {1, 2, 3, 4, 5}},
  };
  for (const SizesCase& c : cases) {
    EXPECT_EQ(microBatchSizes(c.policy, c.miniBatch), c.sizes)
        << toText(c.policy) << " of " << c.miniBatch;
  }
}

TEST(PolicyTest, PowersOfTwoReachTheLargestMiniBatch) {
  const int most = std::numeric_limits<int>::max();
  const std::vector<int> sizes = microBatchSizes(BatchSizePolicy::kPowerOfTwo, most);
  ASSERT_EQ(sizes.size(), 32u);
  EXPECT_EQ(sizes[30], 1 << 30);
  EXPECT_EQ(sizes[31], most);
}

TEST(PolicyTest, TextNamesEachPolicyBothWays) {
  for (const char* text : {"undivided", "powerOfTwo", "all"}) {
    EXPECT_STREQ(toText(batchSizePolicyFromText(text)), text);
  }
}

TEST(PolicyTest, OtherTextIsRefused) {
  for (const char* text : {"", "ALL", "poweroftwo", "all "})
    EXPECT_THROW(batchSizePolicyFromText(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace ucudnn
