#include "problem/numbers.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace ucudnn {
namespace {

TEST(NumbersTest, AreReadOfEachType) {
  const std::uint16_t halves[] = {0x3C00, 0xC000, 0x0001, 0x8400, 0x7C00, 0x3555};
  const double expected[] = {1, -2, 0x1p-24, -0x1p-14, INFINITY, 0x1.554p-2};
  const std::vector<double> numbers = toDoubles(halves, 6, CUDNN_DATA_HALF);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(expected[i], numbers[i]) << i;
  const std::uint16_t nan = 0x7C01, brains[] = {0x3F80, 0xC040};
  EXPECT_TRUE(std::isnan(toDoubles(&nan, 1, CUDNN_DATA_HALF)[0]));
  EXPECT_EQ((std::vector<double>{1, -3}), toDoubles(brains, 2, CUDNN_DATA_BFLOAT16));
  const float floats[] = {0.5F, -3};
  EXPECT_EQ((std::vector<double>{0.5, -3}), toDoubles(floats, 2, CUDNN_DATA_FLOAT));
  const double doubles[] = {0x1.000001p-30, -3};
  EXPECT_EQ((std::vector<double>{0x1.000001p-30, -3}), toDoubles(doubles, 2, CUDNN_DATA_DOUBLE));
}

template <typename Number>
std::uint64_t wordOf(Number number) {
  std::uint64_t word = 0;
  std::memcpy(&word, &number, sizeof number);
  return word;
}

TEST(NumbersTest, AreRoundedAsByCuda) {
  std::vector<float> values = {
      0, -0.0F, 1, -1, 0x1p-14F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1.ffep0F, 0x1.ffdp0F};
  std::mt19937 generator(1);
  for (int i = 0; i < 100000; ++i) {
    const auto random = static_cast<float>(generator());
    values.push_back(std::ldexp(random, -48 + i % 30) * (i % 2 == 0 ? 1.0F : -1.0F));
  }
  for (const float value : values) {
    EXPECT_EQ(wordOf(__float2half_rn(value)), bitsOf(value, CUDNN_DATA_HALF)) << value;
    EXPECT_EQ(wordOf(__float2bfloat16_rn(value)), bitsOf(value, CUDNN_DATA_BFLOAT16)) << value;
    EXPECT_EQ(wordOf(value), bitsOf(value, CUDNN_DATA_FLOAT)) << value;
    EXPECT_EQ(wordOf(static_cast<double>(value)), bitsOf(value, CUDNN_DATA_DOUBLE)) << value;
  }
}

}  // namespace
}  // namespace ucudnn
