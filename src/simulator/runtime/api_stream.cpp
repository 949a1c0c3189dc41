// cudaStream*, but for captures.
#include <utility>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"

using namespace ucudnn::simulator;

namespace {

cudaError_t createStream(cudaStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr || (flags & ~cudaStreamNonBlocking) != 0) return cudaErrorInvalidValue;
  *stream = Machine::instance().createStream(flags, priority);
  return cudaSuccess;
}

// Host functions take no virtual time.
cudaError_t enqueueOnHost(cudaStream_t stream, std::function<void()> function) {
  return Machine::instance().enqueue(
      stream, Work{"host function", 0, std::move(function)}, Machine::From::kAnyDevice);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(createStream(stream, cudaStreamDefault, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  return finish(createStream(stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  UCUDNN_SIMULATED_CALL();
  return finish(createStream(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return finish(
      enterDestroying(__func__, [&] { return Machine::instance().destroyStream(stream); }));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().synchronizeStream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().queryStream(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (flags != cudaEventWaitDefault) return finish(cudaErrorNotSupported);
  return finish(Machine::instance().waitEvent(stream, event));
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  UCUDNN_SIMULATED_CALL();
  if (priority == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().inspectStream(
      handle, [&](const Stream& stream) { *priority = stream.priority; }));
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  UCUDNN_SIMULATED_CALL();
  if (id == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().streamId(handle, id));
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  UCUDNN_SIMULATED_CALL();
  if (device == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().inspectStream(
      handle, [&](const Stream& stream) { *device = stream.device; }));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  UCUDNN_SIMULATED_CALL();
  if (function == nullptr) return finish(cudaErrorInvalidValue);
  return finish(enqueueOnHost(stream, [=] { function(data); }));
}

}  // extern "C"
