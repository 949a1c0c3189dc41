// Where the memory of a pointer is.
#pragma once

namespace ucudnn {

enum class Place {
  kDevice,    ///< or managed memory
  kPinned,    ///< host memory that the device copies by itself
  kPageable,  ///< other host memory
};

/// Asks CUDA, at each call: memory that is freed and allocated again may be of another kind, and
/// nobody is told. Takes a fraction of a microsecond. Throws Error.
Place placeOf(const void* pointer);

}  // namespace ucudnn
