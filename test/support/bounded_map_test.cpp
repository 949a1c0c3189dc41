#include "support/bounded_map.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace ucudnn {
namespace {

using Map = BoundedMap<int, int, std::hash<int>>;

TEST(BoundedMapTest, ForgetsWhatWasNotUsedForLongest) {
  Map map(3);
  for (int key = 1; key <= 3; ++key) map[key] = 10 * key;
  ASSERT_NE(map.find(1), nullptr);
  map[4] = 40;
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map.find(2), nullptr) << "1 has been used since";
  ASSERT_NE(map.find(1), nullptr);
  EXPECT_EQ(*map.find(1), 10);
  EXPECT_EQ(*map.find(4), 40);
}

TEST(BoundedMapTest, APeekIsNoUse) {
  Map map(2);
  map[1] = 10;
  map[2] = 20;
  ASSERT_NE(map.peek(1), nullptr);
  EXPECT_EQ(*map.peek(1), 10);
  map[3] = 30;
  EXPECT_EQ(map.peek(1), nullptr);
  EXPECT_NE(map.peek(2), nullptr);
}

TEST(BoundedMapTest, ErasesOneAndKeepsTheOthers) {
  Map map(2);
  map[1] = 10;
  map[2] = 20;
  EXPECT_TRUE(map.erase(1));
  EXPECT_FALSE(map.erase(1));
  EXPECT_EQ(map.find(1), nullptr);
  map[3] = 30;
  EXPECT_EQ(map.size(), 2u);
  ASSERT_NE(map.find(2), nullptr) << "there was a place again";
  EXPECT_EQ(*map.find(2), 20);
}

TEST(BoundedMapTest, IsEmptyAfterClear) {
  Map map(2);
  map[1] = 10;
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(1), nullptr);
  EXPECT_EQ(map[1], 0);
}

}  // namespace
}  // namespace ucudnn
