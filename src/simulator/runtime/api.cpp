#include "simulator/runtime/api.hpp"

#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/thread_state.hpp"

namespace ucudnn::simulator {

cudaError_t enter(const char* function, cudaError_t injected) {
  const bool fails = callFails(function);
  if (!thisThread().executing) Machine::instance().runDestructors();
  if (fails) return injected;
  return thisThread().executing ? cudaErrorNotPermitted : cudaSuccess;
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) thisThread().lastError = error;
  return error;
}

bool isDevice(int device) {
  return device >= 0 && device < static_cast<int>(devices().size());
}

}  // namespace ucudnn::simulator
