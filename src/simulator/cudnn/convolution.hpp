// The arithmetic of the three convolutions, on host memory, in double, in one fixed order.
#pragma once

#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {

/// The operation on a finished sum: out = activation(alpha * sum + beta * source + bias[k]).
/// `source` is the output itself, or the tensor z of ConvolutionBiasActivationForward.
struct Epilogue {
  double alpha = 1;
  double error = 0;              ///< of the sum, relative (rounding.hpp)
  std::uint64_t kernelBits = 0;  ///< bitsOf (rounding.hpp)
  Lie lie = Lie::kNone;
  double lieFactor = 1;  ///< of what the lie is about
  double beta = 0;       ///< 0: `source` is not read
  const void* source = nullptr;
  TensorShape sourceShape;
  const void* bias = nullptr;  ///< one value for each output channel, `biasType`, forward only
  cudnnDataType_t biasType = CUDNN_DATA_FLOAT;
  std::int64_t biasStride = 1;
  cudnnActivationStruct activation{CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0};
};

struct ConvolutionData {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
};

/// The data in the order of cuDNN's function. Device pointers lose their const here and nowhere
/// else: x, w and y are inputs of one operation and outputs of another.
inline ConvolutionData dataOf(const ConvolutionProblem& problem,
                              const void* first,
                              const void* second,
                              void* output) {
  auto* const one = const_cast<void*>(first);
  auto* const other = const_cast<void*>(second);
  if (problem.operation == Operation::kForward) return {one, other, output};
  if (problem.operation == Operation::kBackwardData) return {output, one, other};
  return {one, output, other};
}

/// The tensor that the operation writes.
inline void* outputOf(const ConvolutionProblem& problem, const ConvolutionData& data) {
  return problem.operation == Operation::kForward        ? data.y
         : problem.operation == Operation::kBackwardData ? data.x
                                                         : data.w;
}

/// Computes every output. Forward and backward data give bit for bit the same for a sample whatever
/// the batch it is part of.
void convolveFull(const ConvolutionProblem& problem,
                  const ConvolutionData& data,
                  const Epilogue& epilogue);

/// Computes only the outputs that sampling.hpp chooses, with the sums of
/// convolveFull; all others keep their values. `allocationBase` and `allocationBytes` are those of
/// the output's allocation.
void convolveSampled(const ConvolutionProblem& problem,
                     const ConvolutionData& data,
                     const Epilogue& epilogue,
                     const void* allocationBase,
                     std::size_t allocationBytes);

}  // namespace ucudnn::simulator
