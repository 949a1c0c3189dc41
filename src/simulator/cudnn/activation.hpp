#pragma once

#include <algorithm>
#include <cmath>

#include "simulator/cudnn/descriptors.hpp"

namespace ucudnn::simulator {

/// max(0, x) and its like let a NaN through only when the descriptor says so, as cuDNN documents.
inline double relu(double x, const cudnnActivationStruct& activation) {
  if (std::isnan(x)) return activation.nanPropagation == CUDNN_PROPAGATE_NAN ? x : 0;
  return x > 0 ? x : activation.slope == 0 ? 0 : activation.slope * x;
}

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

inline double activate(double x, const cudnnActivationStruct& activation) {
  switch (activation.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return sigmoid(x);
    case CUDNN_ACTIVATION_RELU:
      return relu(x, activation);
    case CUDNN_ACTIVATION_TANH:
      return std::tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return std::min(relu(x, activation), activation.coefficient);
    case CUDNN_ACTIVATION_ELU:
      return x >= 0 || std::isnan(x) ? x : activation.coefficient * std::expm1(x);
    case CUDNN_ACTIVATION_SWISH:
      return x * sigmoid(x);
    default:
      return x;
  }
}

/// d activate / dx from the output y and the input x.
inline double activationSlope(double x, double y, const cudnnActivationStruct& activation) {
  switch (activation.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return y * (1 - y);
    case CUDNN_ACTIVATION_RELU:
      return x > 0 ? 1 : 0;
    case CUDNN_ACTIVATION_TANH:
      return 1 - y * y;
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return x > 0 && x < activation.coefficient ? 1 : 0;
    case CUDNN_ACTIVATION_ELU:
      return x >= 0 ? 1 : y + activation.coefficient;
    case CUDNN_ACTIVATION_SWISH: {
      const double s = sigmoid(x);
      return s + x * s * (1 - s);
    }
    default:
      return 1;
  }
}

}  // namespace ucudnn::simulator
