#include "host/place.hpp"

#include "cuda/error.hpp"

namespace ucudnn {

Place placeOf(const void* pointer) {
  cudaPointerAttributes attributes{};
  UCUDNN_CHECK_CUDA(cudaPointerGetAttributes(&attributes, pointer));
  switch (attributes.type) {
    case cudaMemoryTypeHost:
      return Place::kPinned;
    case cudaMemoryTypeUnregistered:
      return Place::kPageable;
    default:
      return Place::kDevice;
  }
}

}  // namespace ucudnn
