#include "kernels/slices.hpp"

#include "kernels/factor.hpp"

namespace ucudnn {

const void* ConvolutionPointers::*outputOf(Operation operation) noexcept {
  return withNative(operation, [](auto row) { return decltype(row)::kOutput; });
}

void Slices::next(int samples) noexcept {
  const auto count = static_cast<std::size_t>(samples);
  pointers_.x = advance(pointers_.x, count * problem_.xBatchStrideBytes());
  pointers_.y = advance(pointers_.y, count * problem_.yBatchStrideBytes());
  if (fused_.z != nullptr) fused_.z = advance(fused_.z, count * problem_.yBatchStrideBytes());
  if (problem_.operation == Operation::kBackwardFilter)
    pointers_.beta = Factor::one(problem_).get();
}

}  // namespace ucudnn
