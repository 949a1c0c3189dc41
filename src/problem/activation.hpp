// The values of Problem::activation: cuDNN's modes, and one more that only its graph API knows.
#pragma once

#include <cudnn.h>

#include "problem/problem.hpp"

// RELU's treatment of NaNs is marked deprecated, but cuDNN has no other name for it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {

/// A RELU that lets NaNs through, as cudnn-frontend always sets it. cuDNN's fused call refuses it
/// (its manual), so no algorithm has it. No mode of cuDNN's has this number.
constexpr std::int32_t kReluKeepingNans = 0x100 + CUDNN_ACTIVATION_RELU;

constexpr bool keepsNans(const Problem& problem) noexcept {
  return problem.activation == kReluKeepingNans;
}
constexpr bool isRelu(const Problem& problem) noexcept {
  return problem.activation == CUDNN_ACTIVATION_RELU || keepsNans(problem);
}
constexpr cudnnNanPropagation_t nansOf(const Problem& problem) noexcept {
  return keepsNans(problem) ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
}
constexpr cudnnActivationMode_t modeOf(const Problem& problem) noexcept {
  return keepsNans(problem) ? CUDNN_ACTIVATION_RELU
                            : static_cast<cudnnActivationMode_t>(problem.activation);
}

}  // namespace ucudnn

#pragma GCC diagnostic pop
