// Copies and fills: checked against the allocations, put on a stream, timed by the device model.
#pragma once

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

enum class Wait {
  kNo,
  kHost
};  ///< whether the host waits, as it does in the functions without Async

/// `height` rows of `width` bytes; pitch: the distance from one row to the next.
struct CopyShape {
  std::size_t width;
  std::size_t height;
  std::size_t targetPitch;
  std::size_t sourcePitch;
};

cudaError_t copy(void* target,
                 const void* source,
                 CopyShape shape,
                 cudaMemcpyKind kind,
                 cudaStream_t stream,
                 Wait wait);

struct FillShape {
  std::size_t width;
  std::size_t height = 1;
  std::size_t pitch = 0;
};

cudaError_t fill(void* target, int value, FillShape shape, cudaStream_t stream, Wait wait);

}  // namespace ucudnn::simulator
