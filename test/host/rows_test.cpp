#include "host/rows.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

namespace ucudnn {
namespace {

/// A tensor of random sizes, order of dimensions, and gaps.
Layout randomLayout(std::mt19937& random) {
  Layout layout;
  layout.dimensions = 3 + static_cast<int>(random() % 3);
  layout.elementBytes = random() % 2 == 0 ? 4 : 2;
  std::vector<std::size_t> order(static_cast<std::size_t>(layout.dimensions));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::int64_t stride = 1;
  for (const std::size_t i : order) {
    layout.sizes[i] = 1 + static_cast<std::int32_t>(random() % 5);
    layout.strides[i] = stride;
    stride *= layout.sizes[i];
    if (random() % 3 == 0) stride += static_cast<std::int64_t>(random() % 3);
  }
  return layout;
}

TEST(RowsTest, CopyABoxAsItsElementsAre) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Layout tensor = randomLayout(random);
    ASSERT_FALSE(tensor.overlaps());
    Problem::Sizes sizes{}, first{};
    std::int64_t span = 1;
    std::size_t offset = 0;
    const auto dimensions = static_cast<std::size_t>(tensor.dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
      sizes[d] = 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(tensor.sizes[d]));
      first[d] = static_cast<std::int32_t>(random() %
                                           static_cast<unsigned>(tensor.sizes[d] - sizes[d] + 1));
      span += (tensor.sizes[d] - 1) * tensor.strides[d];
      offset += static_cast<std::size_t>(first[d] * tensor.strides[d]) * tensor.elementBytes;
    }
    std::vector<char> whole(static_cast<std::size_t>(span) * tensor.elementBytes);
    for (char& byte : whole) byte = static_cast<char>(random());
    const Problem::Strides packed = packedLike(tensor, sizes);
    Layout box{tensor.dimensions, sizes, packed, tensor.elementBytes};
    std::vector<char> slot(16 + box.bytes());
    for (const Rows& rows : rowsOf(sizes, tensor, offset, packed, 16))
      for (std::size_t row = 0; row < rows.height; ++row)
        std::memcpy(slot.data() + rows.slot + row * rows.slotPitch,
                    whole.data() + rows.tensor + row * rows.tensorPitch,
                    rows.width);
    for (std::size_t element = 0; element < box.elements(); ++element) {
      std::size_t rest = element, from = offset, to = 16;
      for (std::size_t d = 0; d < dimensions; ++d) {
        const std::size_t index = rest % static_cast<std::size_t>(sizes[d]);
        rest /= static_cast<std::size_t>(sizes[d]);
        from += index * static_cast<std::size_t>(tensor.strides[d]) * tensor.elementBytes;
        to += index * static_cast<std::size_t>(packed[d]) * tensor.elementBytes;
      }
      ASSERT_EQ(0, std::memcmp(&whole[from], &slot[to], tensor.elementBytes)) << "case " << i;
    }
  }
}

TEST(RowsTest, ABandOfAPlaneIsOneCopy) {
  const Layout tensor{4, {2, 8, 32, 16}, {4096, 512, 16, 1}, 4};
  const auto rows = rowsOf({2, 8, 5, 16}, tensor, 64, {640, 80, 16, 1}, 0);
  ASSERT_EQ(1U, rows.size());
  EXPECT_EQ(16U, rows[0].height);
  EXPECT_EQ(5 * 16 * 4U, rows[0].width);
  EXPECT_EQ(2048U, rows[0].tensorPitch);
}

TEST(RowsTest, OverlappingElementsAreSeen) {
  EXPECT_TRUE((Layout{3, {2, 3, 4}, {0, 4, 1}, 4}).overlaps());
  EXPECT_TRUE((Layout{3, {2, 3, 4}, {11, 4, 1}, 4}).overlaps());
  EXPECT_FALSE((Layout{3, {2, 3, 4}, {12, 4, 1}, 4}).overlaps());
  EXPECT_FALSE((Layout{3, {1, 3, 4}, {0, 4, 1}, 4}).overlaps());
}

TEST(RowsTest, AnEmptyBoxHasNone) {
  const Layout tensor{4, {2, 8, 32, 16}, {4096, 512, 16, 1}, 4};
  EXPECT_TRUE(rowsOf({2, 8, 0, 16}, tensor, 0, {640, 80, 16, 1}, 0).empty());
}

}  // namespace
}  // namespace ucudnn
