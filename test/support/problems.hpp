// Convolution problems for tests of the rooms.
#pragma once

#include "problem/problem.hpp"

namespace ucudnn::test {

/// A 4-D convolution, packed NCHW, that keeps the image's size: `channels` to `channels`, 3x3,
/// pad 1.
inline Problem sampleProblem(Operation operation = Operation::kForward,
                             int batch = 8,
                             int channels = 4,
                             cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  constexpr int kHeight = 9, kWidth = 8;  // unequal, so that no two fields of the problem are alike
  Problem problem;
  problem.operation = operation;
  problem.dimensions = 4;
  problem.xType = problem.wType = problem.yType = type;
  problem.wFormat = CUDNN_TENSOR_NCHW;
  problem.xSizes = problem.ySizes = {batch, channels, kHeight, kWidth, 0};
  problem.xStrides =
      problem.yStrides = {channels * kHeight * kWidth, kHeight * kWidth, kWidth, 1, 0};
  problem.wSizes = {channels, channels, 3, 3, 0};
  problem.pads = {1, 1, 0};
  problem.strides = {1, 1, 0};
  problem.dilations = {1, 1, 0};
  problem.mode = CUDNN_CROSS_CORRELATION;
  problem.computeType = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  problem.mathType = CUDNN_FMA_MATH;
  return problem;
}

}  // namespace ucudnn::test
