// The values of Problem::activation: cuDNN's modes, and others that only its graph API knows.
#pragma once

#include <cudnn.h>

#include <cstring>

#include "problem/problem.hpp"

// RELU's treatment of NaNs is marked deprecated, but cuDNN has no other name for it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {

/// Beyond cuDNN's modes. Its fused call refuses all of these (its manual), so no algorithm has
/// them.
constexpr std::int16_t kOfGraphs = 0x100;
/// A RELU that lets NaNs through, as cudnn-frontend always sets it.
constexpr std::int16_t kReluKeepingNans = kOfGraphs + CUDNN_ACTIVATION_RELU;
/// These let NaNs through, too. Problem::activationValue is the upper clip, or alpha.
constexpr std::int16_t kClippedRelu = kOfGraphs + CUDNN_ACTIVATION_CLIPPED_RELU;
constexpr std::int16_t kElu = kOfGraphs + CUDNN_ACTIVATION_ELU;
/// Below 0 it multiplies by Problem::activationValue. cuDNN's call has no such mode.
constexpr std::int16_t kLeakyRelu = 2 * kOfGraphs + CUDNN_ACTIVATION_RELU;

constexpr bool isOfGraphs(const Problem& problem) noexcept {
  return problem.activation >= kOfGraphs;
}
constexpr bool isRelu(const Problem& problem) noexcept {
  return problem.activation == CUDNN_ACTIVATION_RELU || problem.activation == kReluKeepingNans;
}
/// Whether there is anything behind the bias in a graph.
constexpr bool activates(const Problem& problem) noexcept {
  return problem.activation != CUDNN_ACTIVATION_IDENTITY;
}
constexpr cudnnNanPropagation_t nansOf(const Problem& problem) noexcept {
  return isOfGraphs(problem) ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
}
constexpr cudnnActivationMode_t modeOf(const Problem& problem) noexcept {
  return static_cast<cudnnActivationMode_t>(problem.activation % kOfGraphs);
}

inline float activationValueOf(const Problem& problem) noexcept {
  float value = 0;
  std::memcpy(&value, &problem.activationValue, sizeof value);
  return value;
}
inline void setActivationValue(Problem& problem, float value) noexcept {
  std::memcpy(&problem.activationValue, &value, sizeof value);
}

}  // namespace ucudnn

#pragma GCC diagnostic pop
