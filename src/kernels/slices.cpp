#include "kernels/slices.hpp"

#include "kernels/kernel.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

const void* ConvolutionPointers::*outputOf(Operation operation) noexcept {
  return withNative(operation, [](auto row) { return decltype(row)::kOutput; });
}

cudnnStatus_t BuiltKernel::enqueueRun(
    cudnnHandle_t handle, Slices& slices, int batch, int count, int* enqueued) const noexcept {
  for (int i = 0; i < count; ++i) {
    const cudnnStatus_t status = enqueue(handle, slices.pointers(), slices.fused());
    if (status != CUDNN_STATUS_SUCCESS) return status;
    ++*enqueued;
    slices.next(batch);
  }
  return CUDNN_STATUS_SUCCESS;
}

void* Slices::behind(std::size_t bytes, std::size_t alignment) const noexcept {
  const auto left = static_cast<std::size_t>(problem_.batch() - done_);
  const void* const output = pointers_.*outputOf(problem_.operation);
  return borrowedPlace(advance(output, left * problem_.overwrittenSampleBytes()), bytes, alignment);
}

void Slices::borrow(std::size_t workspaceBytes) noexcept {
  pointers_.workspace = behind(workspaceBytes, kMemoryAlignment);
  pointers_.workspaceBytes = workspaceBytes;
}

void Slices::placeOutputCopy(std::size_t bytes) noexcept {
  pointers_.outputCopy = bytes == 0 ? nullptr : behind(bytes, kEngineAlignment);
}

void Slices::giveBack() noexcept {
  pointers_.workspace = workspace_;
  pointers_.workspaceBytes = workspaceBytes_;
}

void Slices::next(int samples) noexcept {
  done_ += samples;
  const Offsets next = offsetsOfSample(problem_, samples);
  pointers_ = pointersOf(next, problem_, pointers_);
  if (fused_.z != nullptr) fused_.z = advance(fused_.z, next.y);
}

}  // namespace ucudnn
