// The first and the last step of every simulated function.
#pragma once

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// Counts the call. Not cudaSuccess when it must fail: `injected` when it was chosen to, or when it
/// is made from within a host function, where CUDA permits no calls.
cudaError_t enter(const char* function, cudaError_t injected = cudaErrorUnknown);

/// For functions that give something back: those destroy even when they are chosen to fail, as the
/// real ones do, whose errors are of earlier work. Returns the injected error if there is one, else
/// `result`.
template <typename Destroy>
cudaError_t enterDestroying(const char* function, Destroy destroy) {
  const cudaError_t injected = enter(function);
  if (injected == cudaErrorNotPermitted) return injected;
  const cudaError_t result = destroy();
  return injected != cudaSuccess ? injected : result;
}

/// Remembers an error for cudaGetLastError and returns it.
cudaError_t finish(cudaError_t error);

bool isDevice(int device);

}  // namespace ucudnn::simulator

#define UCUDNN_SIMULATED_CALL()                                              \
  if (const cudaError_t enterError = ::ucudnn::simulator::enter(__func__)) { \
    return ::ucudnn::simulator::finish(enterError);                          \
  }

#define UCUDNN_SIMULATED_ALLOCATION()                                        \
  if (const cudaError_t enterError =                                         \
          ::ucudnn::simulator::enter(__func__, cudaErrorMemoryAllocation)) { \
    return ::ucudnn::simulator::finish(enterError);                          \
  }
