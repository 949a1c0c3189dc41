// cuDNN's scaling factors: float, but double for double tensors (cuDNN
// developer guide, "Scaling Parameters").
#pragma once

#include "problem/problem.hpp"

namespace ucudnn {

class Factor {
 public:
  Factor(double value, const Problem& problem) noexcept
      : Factor(value, problem.xType == CUDNN_DATA_DOUBLE) {}
  static const Factor& one(const Problem& problem) noexcept { return of(problem.xType, kOnes); }
  /// For tensors of a type.
  static const Factor& one(std::int32_t type) noexcept { return of(type, kOnes); }
  static const Factor& zero(std::int32_t type) noexcept { return of(type, kZeros); }
  static const Factor& zero(const Problem& problem) noexcept { return of(problem.xType, kZeros); }

  /// The pointer that cuDNN takes as alpha or beta.
  const void* get() const noexcept {
    return isDouble_ ? static_cast<const void*>(&double_) : &float_;
  }

 private:
  constexpr Factor(double value, bool isDouble) noexcept
      : double_(value), float_(static_cast<float>(value)), isDouble_(isDouble) {}

  static const Factor kOnes[2];
  static const Factor kZeros[2];
  static const Factor& of(std::int32_t type, const Factor (&factors)[2]) noexcept {
    return factors[type == CUDNN_DATA_DOUBLE ? 1 : 0];
  }

  double double_;
  float float_;
  bool isDouble_;
};

inline constexpr Factor Factor::kOnes[2] = {Factor(1, false), Factor(1, true)};
inline constexpr Factor Factor::kZeros[2] = {Factor(0, false), Factor(0, true)};

/// The value of a client's alpha or beta. REQUIRES: not null.
inline double valueOf(const void* factor, std::int32_t xType) noexcept {
  return xType == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(factor)
                                    : *static_cast<const float*>(factor);
}

}  // namespace ucudnn
