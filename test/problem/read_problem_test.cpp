// Problems read from descriptors.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cuda/owners.hpp"
#include "problem/problem.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::sampleProblem;

/// Descriptors that a test sets as a client does.
struct Descriptors {
  TensorDescriptor x = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
  FilterDescriptor w = makeOwned<FilterDescriptor>(cudnnCreateFilterDescriptor);
  ConvolutionDescriptor convolution =
      makeOwned<ConvolutionDescriptor>(cudnnCreateConvolutionDescriptor);
  TensorDescriptor y = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);

  ConvolutionDescriptors get() const { return {x.get(), w.get(), convolution.get(), y.get()}; }
};

void setTensor(const TensorDescriptor& tensor,
               cudnnDataType_t type,
               const std::vector<int>& sizes,
               const std::vector<int>& strides) {
  UCUDNN_CHECK_CUDNN(cudnnSetTensorNdDescriptor(
      tensor.get(), type, static_cast<int>(sizes.size()), sizes.data(), strides.data()));
}

void setFilter(const FilterDescriptor& filter,
               cudnnDataType_t type,
               cudnnTensorFormat_t format,
               const std::vector<int>& sizes) {
  UCUDNN_CHECK_CUDNN(cudnnSetFilterNdDescriptor(
      filter.get(), type, format, static_cast<int>(sizes.size()), sizes.data()));
}

/// Pads, strides and dilations of `spatial` dimensions: 1 each.
void setConvolution(const ConvolutionDescriptor& convolution,
                    int spatial,
                    cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
  const std::vector<int> ones(static_cast<std::size_t>(spatial), 1);
  UCUDNN_CHECK_CUDNN(cudnnSetConvolutionNdDescriptor(convolution.get(),
                                                     spatial,
                                                     ones.data(),
                                                     ones.data(),
                                                     ones.data(),
                                                     CUDNN_CROSS_CORRELATION,
                                                     compute));
}

/// Sets the values of sampleProblem().
void setSample(const Descriptors& d,
               cudnnDataType_t type = CUDNN_DATA_FLOAT,
               cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
  setTensor(d.x, type, {8, 4, 9, 8}, {288, 72, 8, 1});
  setFilter(d.w, type, CUDNN_TENSOR_NCHW, {4, 4, 3, 3});
  setTensor(d.y, type, {8, 4, 9, 8}, {288, 72, 8, 1});
  setConvolution(d.convolution, 2, compute);
  UCUDNN_CHECK_CUDNN(cudnnSetConvolutionMathType(d.convolution.get(), CUDNN_FMA_MATH));
}

TEST(ReadProblemTest, EveryOperationAndDataTypeIsRead) {
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const cudnnDataType_t type :
         {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE}) {
      Descriptors d;
      setSample(d, type, type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
      Problem problem;
      ASSERT_TRUE(readProblem(operation, d.get(), problem)) << toText(operation) << type;
      EXPECT_EQ(problem, sampleProblem(operation, 8, 4, type)) << problem.text();
    }
}

TEST(ReadProblemTest, ThreeSpatialDimensionsAreRead) {
  Descriptors d;
  setTensor(d.x, CUDNN_DATA_FLOAT, {8, 4, 5, 9, 7}, {1260, 315, 63, 7, 1});
  setFilter(d.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, {6, 4, 3, 2, 1});
  setTensor(d.y, CUDNN_DATA_FLOAT, {8, 6, 4, 5, 3}, {360, 60, 15, 3, 1});
  const int pads[] = {0, 1, 2}, strides[] = {1, 2, 3}, dilations[] = {3, 2, 1};
  ASSERT_EQ(
      CUDNN_STATUS_SUCCESS,
      cudnnSetConvolutionNdDescriptor(
          d.convolution.get(), 3, pads, strides, dilations, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  EXPECT_EQ(problem.dimensions, 5);
  EXPECT_EQ(problem.xSizes, (Problem::Sizes{8, 4, 5, 9, 7}));
  EXPECT_EQ(problem.xStrides, (Problem::Strides{1260, 315, 63, 7, 1}));
  EXPECT_EQ(problem.wSizes, (Problem::Sizes{6, 4, 3, 2, 1}));
  EXPECT_EQ(problem.ySizes, (Problem::Sizes{8, 6, 4, 5, 3}));
  EXPECT_EQ(problem.yStrides, (Problem::Strides{360, 60, 15, 3, 1}));
  EXPECT_EQ(problem.pads, (Problem::Spatial{0, 1, 2}));
  EXPECT_EQ(problem.strides, (Problem::Spatial{1, 2, 3}));
  EXPECT_EQ(problem.dilations, (Problem::Spatial{3, 2, 1}));
  EXPECT_EQ(problem.mode, CUDNN_CONVOLUTION);
}

TEST(ReadProblemTest, ChannelsLastIsReadAsStridesAndFilterFormat) {
  Descriptors d;
  setSample(d);
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetTensor4dDescriptor(d.x.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 8, 4, 9, 8));
  setFilter(d.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, {4, 4, 3, 3});
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  Problem expected = sampleProblem();
  expected.xStrides = {288, 1, 32, 4, 0};
  expected.wFormat = CUDNN_TENSOR_NHWC;
  EXPECT_EQ(problem, expected) << problem.text();
}

// Caffe's groups: one call for each, on tensors whose batch stride covers all of them.
TEST(ReadProblemTest, ABatchStrideLongerThanTheSampleIsKept) {
  Descriptors d;
  setSample(d);
  setTensor(d.x, CUDNN_DATA_FLOAT, {8, 4, 9, 8}, {576, 72, 8, 1});
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  EXPECT_EQ(problem.xBatchStrideBytes(), 576u * 4);
  EXPECT_NE(problem, sampleProblem());
}

TEST(ReadProblemTest, TheConvolutionsOwnSettingsAreRead) {
  Descriptors d;
  setSample(d);
  setFilter(d.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, {4, 2, 3, 3});
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetConvolutionGroupCount(d.convolution.get(), 2));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetConvolutionMathType(d.convolution.get(), CUDNN_TENSOR_OP_MATH));
  Problem expected = sampleProblem();
  expected.wSizes[1] = 2;
  expected.groups = 2;
  expected.mathType = CUDNN_TENSOR_OP_MATH;
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  EXPECT_EQ(problem, expected) << problem.text();
}

// Clients change descriptors in place.
TEST(ReadProblemTest, NothingIsLeftOfWhatWasReadBefore) {
  Descriptors d;
  setTensor(d.x, CUDNN_DATA_FLOAT, {8, 4, 5, 9, 7}, {1260, 315, 63, 7, 1});
  setFilter(d.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, {4, 4, 3, 3, 3});
  setTensor(d.y, CUDNN_DATA_FLOAT, {8, 4, 5, 9, 7}, {1260, 315, 63, 7, 1});
  setConvolution(d.convolution, 3);
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  setSample(d);
  std::memset(static_cast<void*>(&problem), 0x5A, sizeof(problem));
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  EXPECT_EQ(problem, sampleProblem()) << problem.text();
}

struct Refused {
  const char* why;
  std::function<void(const Descriptors&)> set;
};

const Refused kRefused[] = {
    {"INT8",
     [](const Descriptors& d) {
       setTensor(d.x, CUDNN_DATA_INT8, {8, 4, 9, 8}, {288, 72, 8, 1});
       setFilter(d.w, CUDNN_DATA_INT8, CUDNN_TENSOR_NCHW, {4, 4, 3, 3});
     }},
    {"an INT8 result",
     [](const Descriptors& d) {
       setTensor(d.y, CUDNN_DATA_INT8, {8, 4, 9, 8}, {288, 72, 8, 1});
     }},
    {"vectorized tensors",
     [](const Descriptors& d) {
       UCUDNN_CHECK_CUDNN(cudnnSetTensor4dDescriptor(
           d.x.get(), CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 8, 4, 9, 8));
     }},
    {"a vectorized filter",
     [](const Descriptors& d) {
       setFilter(d.w, CUDNN_DATA_INT8x4, CUDNN_TENSOR_NCHW_VECT_C, {4, 4, 3, 3});
     }},
    {"six dimensions",
     [](const Descriptors& d) {
       setTensor(d.x, CUDNN_DATA_FLOAT, {8, 4, 2, 2, 2, 2}, {64, 16, 8, 4, 2, 1});
     }},
    {"an image in three dimensions, a result in two",
     [](const Descriptors& d) {
       setTensor(d.x, CUDNN_DATA_FLOAT, {8, 4, 5, 9, 7}, {1260, 315, 63, 7, 1});
     }},
    {"a filter in three dimensions",
     [](const Descriptors& d) {
       setFilter(d.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, {4, 4, 3, 3, 3});
     }},
    {"a convolution in three dimensions",
     [](const Descriptors& d) { setConvolution(d.convolution, 3); }},
    {"batches that differ",
     [](const Descriptors& d) {
       setTensor(d.y, CUDNN_DATA_FLOAT, {7, 4, 9, 8}, {288, 72, 8, 1});
     }},
};

TEST(ReadProblemTest, WhatCannotBeSplitIsLeftToCudnn) {
  for (const Refused& refused : kRefused) {
    Descriptors d;
    setSample(d);
    refused.set(d);
    Problem problem;
    EXPECT_FALSE(readProblem(Operation::kForward, d.get(), problem)) << refused.why;
  }
}

TEST(ReadProblemTest, NullDescriptorsAreLeftToCudnn) {
  Descriptors d;
  setSample(d);
  Problem problem;
  ASSERT_TRUE(readProblem(Operation::kForward, d.get(), problem));
  ConvolutionDescriptors missing[4] = {d.get(), d.get(), d.get(), d.get()};
  missing[0].x = nullptr;
  missing[1].w = nullptr;
  missing[2].convolution = nullptr;
  missing[3].y = nullptr;
  for (const ConvolutionDescriptors& descriptors : missing)
    EXPECT_FALSE(readProblem(Operation::kForward, descriptors, problem));
}

TEST(ReadProblemTest, DescriptorsThatWereNeverSetAreLeftToCudnn) {
  Problem problem;
  EXPECT_FALSE(readProblem(Operation::kForward, Descriptors().get(), problem));
}

}  // namespace
}  // namespace ucudnn
