#include "host/place.hpp"

#include "cuda/error.hpp"
#include "cuda/movable_memory.hpp"

namespace ucudnn {

Place placeOf(const void* pointer) {
  if (const auto home = homeOf(pointer))
    return *home == Home::kDevice ? Place::kDevice : Place::kPinned;
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
