// One convolution with the values of all its descriptors, checked as cuDNN checks them.
#pragma once

#include "simulator/cudnn/descriptors.hpp"

namespace ucudnn::simulator {

enum class Operation { kForward, kBackwardData, kBackwardFilter };

/// x, w and y are the input, filter and output of the forward convolution, whatever the operation.
struct ConvolutionProblem {
  Operation operation = Operation::kForward;
  TensorShape x;
  TensorShape w;
  TensorShape y;
  cudnnTensorFormat_t filterFormat = CUDNN_TENSOR_NCHW;
  cudnnConvolutionStruct convolution;

  bool operator==(const ConvolutionProblem& other) const {
    return operation == other.operation && x == other.x && w == other.w && y == other.y &&
           filterFormat == other.filterFormat && convolution == other.convolution;
  }
  int batch() const { return x.dims[0]; }
  int spatialRank() const { return x.rank - 2; }
  int channels() const { return x.dims[1]; }
  int filters() const { return w.dims[0]; }
  /// Where the filter has all channels cuDNN 9.19 doesn't look at the count (an H200, forward,
  /// backward data and backward filter by every algorithm).
  int groups() const { return x.dims[1] == w.dims[1] ? 1 : convolution.groups; }
};

/// Throws Refusal: BAD_PARAM for descriptors that do not fit together, NOT_SUPPORTED for what cuDNN
/// does not compute by any algorithm.
ConvolutionProblem makeProblem(Operation operation,
                               cudnnTensorDescriptor_t xDesc,
                               cudnnFilterDescriptor_t wDesc,
                               cudnnConvolutionDescriptor_t convDesc,
                               cudnnTensorDescriptor_t yDesc);

/// The problem of cuDNN's function whose descriptors are of these types, in this order.
inline ConvolutionProblem problemOf(cudnnTensorDescriptor_t x,
                                    cudnnFilterDescriptor_t w,
                                    cudnnConvolutionDescriptor_t convolution,
                                    cudnnTensorDescriptor_t y) {
  return makeProblem(Operation::kForward, x, w, convolution, y);
}
inline ConvolutionProblem problemOf(cudnnFilterDescriptor_t w,
                                    cudnnTensorDescriptor_t dy,
                                    cudnnConvolutionDescriptor_t convolution,
                                    cudnnTensorDescriptor_t dx) {
  return makeProblem(Operation::kBackwardData, dx, w, convolution, dy);
}
inline ConvolutionProblem problemOf(cudnnTensorDescriptor_t x,
                                    cudnnTensorDescriptor_t dy,
                                    cudnnConvolutionDescriptor_t convolution,
                                    cudnnFilterDescriptor_t dw) {
  return makeProblem(Operation::kBackwardFilter, x, dw, convolution, dy);
}

/// As makeProblem checks: BAD_PARAM for dimensions that do not fit together.
void checkDims(const ConvolutionProblem& problem);

/// As makeProblem checks: NOT_SUPPORTED for data types without convolutions.
void checkTypes(const ConvolutionProblem& problem);

/// The tensor that the operation writes.
inline const TensorShape& outputShape(const ConvolutionProblem& problem) {
  switch (problem.operation) {
    case Operation::kForward:
      return problem.y;
    case Operation::kBackwardData:
      return problem.x;
    default:
      return problem.w;
  }
}

}  // namespace ucudnn::simulator
