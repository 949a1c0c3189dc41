#include "host/pass.hpp"

#include <gtest/gtest.h>

namespace ucudnn {
namespace {

/// Half of `batch` x 3 x `rows` x 7, packed.
PassTensor halfTensor(std::int32_t batch, std::int32_t rows, Place place) {
  PassTensor tensor;
  tensor.type = CUDNN_DATA_HALF;
  tensor.layout.dimensions = 4;
  tensor.layout.elementBytes = 2;
  tensor.layout.sizes = {batch, 3, rows, 7};
  tensor.layout.strides = {std::int64_t{21} * rows, std::int64_t{7} * rows, 7, 1};
  tensor.isCut[0] = tensor.isCut[1] = true;
  tensor.place = place;
  return tensor;
}

/// From the host to the device.
Pass toDevice(std::int32_t rows) {
  Pass pass;
  pass.tensors = {halfTensor(4, rows, Place::kPinned), halfTensor(4, rows, Place::kDevice)};
  pass.tensors[0].isRead = pass.tensors[1].isWritten = true;
  pass.sizes = {4, 3, rows, 7};
  pass.axes = {0, 1};
  return pass;
}

bool isMoved(std::int32_t rows, const Problem::Sizes& size) {
  return PassPlan(toDevice(rows), PassTiling{size}, 0, 0).pass().tensors[1].isMoved;
}

// Kernels may read 16 bytes at once. A sample of 3 x 8 x 7 has 336 bytes, and one of 3 x 5 x 7 has
// 210.
TEST(PassPlan, UsesPartsOnTheDeviceWhereTheyAreIfTheyAreAligned) {
  EXPECT_FALSE(isMoved(8, {1, 3, 8, 7}));
  EXPECT_FALSE(isMoved(5, {4, 3, 5, 7}));  // one part
  EXPECT_TRUE(isMoved(5, {1, 3, 5, 7}));
  EXPECT_TRUE(isMoved(5, {4, 1, 5, 7}));
}

// cuDNN refuses a gradient whose strides are not its tensor's.
TEST(PassPlan, ATensorOnTheDeviceHasTheStridesOfOneInSlots) {
  Pass pass = toDevice(8);
  EXPECT_TRUE(PassPlan(pass, PassTiling{{1, 1, 8, 7}}, 0, 0).pass().tensors[1].isMoved);
  pass.tensors[0].layout.strides[0] += 8;  // they differ anyway
  EXPECT_FALSE(PassPlan(pass, PassTiling{{1, 1, 8, 7}}, 0, 0).pass().tensors[1].isMoved);
}

TEST(PassPlan, PartsThatWouldNotBeAlignedHaveSlots) {
  const PassPlan used(toDevice(8), PassTiling{{1, 3, 8, 7}}, 0, 0);
  const PassPlan moved(toDevice(5), PassTiling{{1, 3, 5, 7}}, 0, 0);
  EXPECT_EQ(1, used.slotCount());
  EXPECT_EQ(2, moved.slotCount());
  for (const PassPlan::Step& step : moved.steps()) EXPECT_EQ(0, step.uses[1].slotOffset % 512);
  EXPECT_EQ(210, moved.steps()[1].uses[1].offset);
}

}  // namespace
}  // namespace ucudnn
