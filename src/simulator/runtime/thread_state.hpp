// The runtime's state for each thread. Trivially destructible, so that it can be used until the
// very end.
#pragma once

#include <cmath>
#include <cstdint>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// Virtual time in picoseconds. Whole numbers, so that differences do not depend on when something
/// ran: the same program gets the same answers, whatever its other threads do. Overflows after 100
/// virtual days.
using Ticks = std::int64_t;

inline Ticks ticksFromMs(double ms) {
  return std::llround(ms * 1e9);
}
inline double msFromTicks(Ticks ticks) {
  return static_cast<double>(ticks) / 1e9;
}

struct ThreadState {
  int device = 0;
  cudaError_t lastError = cudaSuccess;
  Ticks now = 0;  ///< the host's clock: moves when this thread enqueues, or waits for a device
  cudaStreamCaptureMode captureMode = cudaStreamCaptureModeGlobal;
  bool executing = false;  ///< within a work, where CUDA allows no CUDA calls
  std::uint64_t id = 0;    ///< never used twice, unlike the system's; 0: not yet given
};

ThreadState& thisThread();

}  // namespace ucudnn::simulator
