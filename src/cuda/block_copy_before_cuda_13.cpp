// Replaces block_copy.cpp before CUDA 13: there are no block copies.
#include "cuda/block_copy.hpp"

namespace ucudnn {

#if CUDART_VERSION < 13000

bool hasBlockCopies() {
  return false;
}
cudaError_t toBlocks(const BlockCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t toBlocks(const FilterCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t fromBlocks(const BlockCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t fromBlocks(const FilterCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t copyAll(const CopyList&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t toPlanes(const BlockCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}
cudaError_t fromPlanes(const BlockCopy&, cudaStream_t) noexcept {
  return cudaErrorNotSupported;
}

#endif

}  // namespace ucudnn
