#include "cuda/call_stream.hpp"

#include "cuda/cudnn.hpp"
#include "cuda/error.hpp"

namespace ucudnn {
namespace {

std::uint64_t idOf(cudaStream_t stream) {
#if CUDART_VERSION >= 12000
  unsigned long long id = 0;
  UCUDNN_CHECK_CUDA(cudaStreamGetId(stream, &id));
  return id;
#else
  // Before CUDA 12 a stream has no id of its own; the per-thread default stream is told apart by
  // the address of something that each thread has.
  static thread_local char mark = 0;
  if (stream == cudaStreamPerThread) return reinterpret_cast<std::uintptr_t>(&mark);
  return reinterpret_cast<std::uintptr_t>(stream);
#endif
}

/// The stream without its id.
CallStream capturedStreamOf(cudnnHandle_t handle) {
  CallStream call;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &call.stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  // The legacy default stream cannot be asked while another stream is captured, and is never
  // captured itself; but nothing may wait for it then either.
  if (cudaStreamGetCaptureInfo(call.stream, &status, &capture) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    call.capturing = true;
  } else if (status != cudaStreamCaptureStatusNone) {
    call.capturing = true;
    call.capture = capture;
  }
  return call;
}

}  // namespace

CallStream streamOf(cudnnHandle_t handle) {
  CallStream call = capturedStreamOf(handle);
  if (!call.capturing) call.id = idOf(call.stream);
  return call;
}

bool isCapturing(cudnnHandle_t handle) {
  return capturedStreamOf(handle).capturing;
}

}  // namespace ucudnn
