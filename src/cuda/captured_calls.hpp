// cuDNN calls as a CUDA graph: captured once, launched as often as wanted.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "cuda/owners.hpp"

namespace ucudnn {

/// The work that calls on a handle have put on its stream, as a graph that can't be launched yet.
struct CapturedCalls {
  Graph graph;
  std::size_t nodes = 0;
};

/// Captures the work that `enqueue` puts on the handle's stream; none of it runs. The capture uses
/// its own stream, which waits for no other, and relaxed mode. So it doesn't affect the client's
/// captures, and among other threads' calls only cudaDeviceSynchronize affects it. Empty if another
/// thread uses the device as well (CallingThreads). Afterwards the handle has its stream again.
/// Throws Error if CUDA or cuDNN refuses. REQUIRES: the handle's device is current, and the
/// handle's stream is not being captured.
std::optional<CapturedCalls> captureCalls(cudnnHandle_t handle,
                                          const std::function<cudnnStatus_t()>& enqueue);

/// Makes the graph ready to launch; waits for no device. Throws Error.
GraphExec instantiate(const CapturedCalls& calls);

}  // namespace ucudnn
