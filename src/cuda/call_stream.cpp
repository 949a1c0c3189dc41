#include "cuda/call_stream.hpp"

#include <memory>
#include <utility>

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
  // CUDA answers no question about the legacy default stream while another stream is captured. The
  // legacy stream itself is never captured. But nothing may wait for it meanwhile.
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

void callWhenGraphIsGone(const CallStream& stream, std::function<void()> gone) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  cudaGraph_t graph = nullptr;
  UCUDNN_CHECK_CUDA(cudaStreamGetCaptureInfo(stream.stream, &status, &capture, &graph));
  if (status != cudaStreamCaptureStatusActive || capture != stream.capture || graph == nullptr)
    throw Error(CUDNN_STATUS_EXECUTION_FAILED, "the capture has been voided");
  auto owned = std::make_unique<std::function<void()>>(std::move(gone));
  const auto call = [](void* data) {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(data));
    (*own)();
  };
  cudaUserObject_t object = nullptr;
  UCUDNN_CHECK_CUDA(
      cudaUserObjectCreate(&object, owned.get(), call, 1, cudaUserObjectNoDestructorSync));
  static_cast<void>(owned.release());
  const cudaError_t error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (error != cudaSuccess) static_cast<void>(cudaUserObjectRelease(object, 1));
  UCUDNN_CHECK_CUDA(error);
}

}  // namespace ucudnn
