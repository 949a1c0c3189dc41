#include "tool/device_data.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ucudnn::tool {
namespace {

TEST(Distance, IsTheNormalizedL2Distance) {
  const std::vector<double> reference = {3, 4};
  const std::vector<double> other = {3, 5};
  DistanceSum sum(CUDNN_DATA_DOUBLE);
  sum.add(other.data(), reference.data(), sizeof(double) * 2);
  EXPECT_DOUBLE_EQ(sum.value(), 1.0 / 5);
  // Chunks add up to the whole.
  DistanceSum parts(CUDNN_DATA_DOUBLE);
  parts.add(other.data(), reference.data(), sizeof(double));
  parts.add(other.data() + 1, reference.data() + 1, sizeof(double));
  EXPECT_DOUBLE_EQ(parts.value(), 1.0 / 5);
}

TEST(Distance, OfZerosIsZeroAndOfNanIsNan) {
  const std::vector<float> zeros(4, 0.0F);
  DistanceSum equal(CUDNN_DATA_FLOAT);
  equal.add(zeros.data(), zeros.data(), sizeof(float) * 4);
  EXPECT_EQ(equal.value(), 0);
  const std::vector<float> one = {1, 1, 1, 1};
  const std::vector<float> missing = {1, std::numeric_limits<float>::quiet_NaN(), 1, 1};
  DistanceSum sum(CUDNN_DATA_FLOAT);
  sum.add(missing.data(), one.data(), sizeof(float) * 4);
  EXPECT_TRUE(std::isnan(sum.value()));
}

TEST(Distance, ReadsHalfAndBfloat16) {
  const std::vector<__half> halves = {__float2half_rn(2), __float2half_rn(0)};
  const std::vector<__half> otherHalves = {__float2half_rn(2), __float2half_rn(1)};
  DistanceSum half(CUDNN_DATA_HALF);
  half.add(otherHalves.data(), halves.data(), sizeof(__half) * 2);
  EXPECT_DOUBLE_EQ(half.value(), 0.5);
  const std::vector<__nv_bfloat16> brains = {__float2bfloat16_rn(4)};
  const std::vector<__nv_bfloat16> otherBrains = {__float2bfloat16_rn(5)};
  DistanceSum brain(CUDNN_DATA_BFLOAT16);
  brain.add(otherBrains.data(), brains.data(), sizeof(__nv_bfloat16));
  EXPECT_DOUBLE_EQ(brain.value(), 0.25);
}

TEST(DeviceData, ElementSizes) {
  EXPECT_EQ(elementBytes(CUDNN_DATA_FLOAT), 4U);
  EXPECT_EQ(elementBytes(CUDNN_DATA_DOUBLE), 8U);
  EXPECT_EQ(elementBytes(CUDNN_DATA_HALF), 2U);
  EXPECT_EQ(elementBytes(CUDNN_DATA_BFLOAT16), 2U);
  EXPECT_ANY_THROW(elementBytes(CUDNN_DATA_INT8));
}

}  // namespace
}  // namespace ucudnn::tool
