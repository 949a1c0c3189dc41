// cuDNN calls as a CUDA graph: captured once, launched as often as wanted.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "cuda/owners.hpp"

namespace ucudnn {

/// What calls on a handle have put on its stream, as a graph that is not ready to be launched yet.
struct CapturedCalls {
  Graph graph;
  std::size_t nodes = 0;
};

/// Captures what `enqueue` puts on the handle's stream; nothing of it runs. The capture is on a
/// stream of its own, which waits for no other, and in relaxed mode: it touches no capture of the
/// client's, and of other threads' calls only cudaDeviceSynchronize touches it. Empty: another
/// thread uses the device as well (CallingThreads). Afterwards the handle has its stream again.
/// Throws Error where CUDA or cuDNN refuses. REQUIRES: the handle's device is current, and the
/// handle's stream is not being captured.
std::optional<CapturedCalls> captureCalls(cudnnHandle_t handle,
                                          const std::function<cudnnStatus_t()>& enqueue);

/// Makes it ready; waits for no device. Throws Error.
GraphExec instantiate(const CapturedCalls& calls);

}  // namespace ucudnn
