// The library's own BatchSizePolicy and the published one, in one file: in ours the library's wins,
// in a client there is only one.
#include <gtest/gtest.h>
#include <ucudnn/ucudnn.h>

#include <type_traits>

namespace {

using Published = ucudnn::BatchSizePolicy;
static_assert(std::is_same<Published, ucudnn_published::BatchSizePolicy>::value, "a client's view");

}  // namespace

#include "optimizer/policy.hpp"

namespace ucudnn {
namespace {

TEST(InternalNamesTest, HaveTheValuesOfThePublishedOnes) {
  static_assert(!std::is_same<Published, BatchSizePolicy>::value, "the library's own view");
  EXPECT_EQ(static_cast<int>(Published::undivided), static_cast<int>(BatchSizePolicy::kUndivided));
  EXPECT_EQ(static_cast<int>(Published::powerOfTwo),
            static_cast<int>(::ucudnn::BatchSizePolicy::kPowerOfTwo));
  EXPECT_EQ(static_cast<int>(Published::all), static_cast<int>(BatchSizePolicy::kAll));
}

}  // namespace
}  // namespace ucudnn
