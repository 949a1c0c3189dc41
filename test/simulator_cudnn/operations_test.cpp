// Arithmetic on whole tensors, checked by eye.
#include <cmath>

#include "operations_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

TEST_F(OperationsTest, AddTensorBroadcasts) {
  const Tensor bias({1, 2, 1, 1}, {10, 20});
  const Tensor c({1, 2, 1, 2}, {1, 2, 3, 4});
  ASSERT_CUDNN(cudnnAddTensor(handle_, &kTwo, bias.desc(), bias.data(), &kOne, c.desc(), c.data()));
  EXPECT_EQ((Values{21, 22, 43, 44}), c.values());
}

TEST_F(OperationsTest, ScaleSetAndTransform) {
  const Tensor a({1, 1, 1, 3}, {1, 2, 3});
  const Tensor b({1, 1, 1, 3}, {kNan, kNan, kNan});
  ASSERT_CUDNN(cudnnScaleTensor(handle_, a.desc(), a.data(), &kTwo));
  EXPECT_EQ((Values{2, 4, 6}), a.values());
  ASSERT_CUDNN(
      cudnnTransformTensor(handle_, &kTwo, a.desc(), a.data(), &kZero, b.desc(), b.data()));
  EXPECT_EQ((Values{4, 8, 12}), b.values());
  const float seven = 7;
  ASSERT_CUDNN(cudnnSetTensor(handle_, b.desc(), b.data(), &seven));
  EXPECT_EQ((Values{7, 7, 7}), b.values());
}

TEST_F(OperationsTest, OpTensor) {
  const struct {
    cudnnOpTensorOp_t op;
    Values expected;  // of (2a) op b + 1 * c
  } cases[] = {{CUDNN_OP_TENSOR_ADD, {104, 112}},
               {CUDNN_OP_TENSOR_MUL, {104, 132}},
               {CUDNN_OP_TENSOR_MIN, {102, 104}},
               {CUDNN_OP_TENSOR_MAX, {102, 108}},
               {CUDNN_OP_TENSOR_SQRT, {100 + std::sqrt(2.0F), 100 + std::sqrt(8.0F)}},
               {CUDNN_OP_TENSOR_NOT, {99, 93}}};
  cudnnOpTensorDescriptor_t op;
  ASSERT_CUDNN(cudnnCreateOpTensorDescriptor(&op));
  const Tensor a({1, 1, 1, 2}, {1, 4});
  const Tensor b({1, 1, 1, 2}, {2, 4});
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.op);
    const Tensor c({1, 1, 1, 2}, {100, 100});
    ASSERT_CUDNN(
        cudnnSetOpTensorDescriptor(op, expected.op, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN));
    ASSERT_CUDNN(cudnnOpTensor(handle_,
                               op,
                               &kTwo,
                               a.desc(),
                               a.data(),
                               &kOne,
                               b.desc(),
                               b.data(),
                               &kOne,
                               c.desc(),
                               c.data()));
    expectNear(expected.expected, c.values());
  }
  EXPECT_CUDNN(cudnnDestroyOpTensorDescriptor(op));
}

// cuDNN's manual: if B is the same tensor as C, so must A be.
TEST_F(OperationsTest, OpTensorWritesInPlaceOfItsFirstOperandOnly) {
  cudnnOpTensorDescriptor_t op;
  ASSERT_CUDNN(cudnnCreateOpTensorDescriptor(&op));
  ASSERT_CUDNN(cudnnSetOpTensorDescriptor(
      op, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN));
  const Tensor a({1, 1, 1, 2}, {1, 4});
  const Tensor b({1, 1, 1, 2}, {2, 4});
  const auto add = [&](const Tensor& first, const Tensor& second, const Tensor& result) {
    return cudnnOpTensor(handle_,
                         op,
                         &kOne,
                         first.desc(),
                         first.data(),
                         &kOne,
                         second.desc(),
                         second.data(),
                         &kZero,
                         result.desc(),
                         result.data());
  };
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, add(a, b, b));
  EXPECT_EQ((Values{2, 4}), b.values());
  EXPECT_CUDNN(add(a, b, a));
  EXPECT_EQ((Values{3, 8}), a.values());
  EXPECT_CUDNN(add(b, b, b));
  EXPECT_EQ((Values{4, 8}), b.values());
  EXPECT_CUDNN(cudnnDestroyOpTensorDescriptor(op));
}

TEST_F(OperationsTest, BackwardBiasSumsOverAllButChannels) {
  const Tensor dy({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor db({1, 2, 1, 1}, {100, 200});
  ASSERT_CUDNN(cudnnConvolutionBackwardBias(
      handle_, &kTwo, dy.desc(), dy.data(), &kOne, db.desc(), db.data()));
  EXPECT_EQ((Values{128, 244}), db.values());
}

// Each mode's forward values, and its gradient against a central difference.

}  // namespace
}  // namespace ucudnn::simulator::test
