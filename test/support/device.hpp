// Whether there is a device: tests that need one are skipped without.
#pragma once

#include <cuda_runtime_api.h>

namespace ucudnn::test {

/// Leaves no error in the runtime.
inline bool hasDevice() noexcept {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

}  // namespace ucudnn::test
