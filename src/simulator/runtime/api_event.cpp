// cudaEvent*.
#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr unsigned int kEventFlags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

cudaError_t createEvent(cudaEvent_t* event, unsigned int flags) {
  if (event == nullptr || (flags & ~kEventFlags) != 0) return cudaErrorInvalidValue;
  *event = Machine::instance().createEvent(flags);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  UCUDNN_SIMULATED_CALL();
  return finish(createEvent(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  return finish(createEvent(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return finish(enterDestroying(__func__, [&] { return Machine::instance().destroyEvent(event); }));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().recordEvent(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().queryEvent(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().synchronizeEvent(event));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  UCUDNN_SIMULATED_CALL();
  if (ms == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().elapsedTime(ms, start, end));
}

}  // extern "C"
