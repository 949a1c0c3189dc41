#include "kernels/slices.hpp"

#include "kernels/factor.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

const void* ConvolutionPointers::*outputOf(Operation operation) noexcept {
  return withNative(operation, [](auto row) { return decltype(row)::kOutput; });
}

ConvolutionPointers Slices::borrowing(std::size_t workspaceBytes) const noexcept {
  const auto left = static_cast<std::size_t>(problem_.batch() - done_);
  const void* const output = pointers_.*outputOf(problem_.operation);
  ConvolutionPointers pointers = pointers_;
  pointers.workspace =
      borrowedPlace(advance(output, left * problem_.overwrittenSampleBytes()), workspaceBytes);
  pointers.workspaceBytes = workspaceBytes;
  return pointers;
}

void Slices::next(int samples) noexcept {
  done_ += samples;
  const auto count = static_cast<std::size_t>(samples);
  pointers_.x = advance(pointers_.x, count * problem_.xBatchStrideBytes());
  pointers_.y = advance(pointers_.y, count * problem_.yBatchStrideBytes());
  if (fused_.z != nullptr) fused_.z = advance(fused_.z, count * problem_.yBatchStrideBytes());
  if (problem_.operation == Operation::kBackwardFilter)
    pointers_.beta = Factor::one(problem_).get();
}

}  // namespace ucudnn
