#include "cuda/captured_calls.hpp"

#include "cuda/calling_threads.hpp"

namespace ucudnn {
namespace {

/// Gives a handle another stream for as long as it lives.
class StreamScope {
 public:
  StreamScope(cudnnHandle_t handle, cudaStream_t stream) : handle_(handle) {
    UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &former_));
    UCUDNN_CHECK_CUDNN(cudnn().setStream(handle, stream));
  }
  /// The client's next call must not go to our stream: a failure is not taken for an answer.
  ~StreamScope() {
    for (int attempt = 0; attempt < kAttempts; ++attempt)
      if (cudnn().setStream(handle_, former_) == CUDNN_STATUS_SUCCESS) return;
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  static constexpr int kAttempts = 3;

  cudnnHandle_t handle_;
  cudaStream_t former_ = nullptr;
};

/// A capture that ends with its scope.
class CaptureScope {
 public:
  explicit CaptureScope(cudaStream_t stream) : stream_(stream) {
    UCUDNN_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  ~CaptureScope() {
    if (ended_) return;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess)
      static_cast<void>(cudaGraphDestroy(graph));
    else
      static_cast<void>(cudaGetLastError());
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  Graph end() {
    cudaGraph_t graph = nullptr;
    UCUDNN_CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
    ended_ = true;
    return Graph(graph);
  }

 private:
  cudaStream_t stream_;
  bool ended_ = false;
};

/// Work on the legacy default stream does not wait for it. Kernels of a graph keep the priority of
/// the stream that they were captured on: it has the handle's.
Stream makeStreamOfItsOwn(cudnnHandle_t handle) {
  cudaStream_t clients = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &clients));
  int priority = 0;
  UCUDNN_CHECK_CUDA(cudaStreamGetPriority(clients, &priority));
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  return Stream(stream);
}

}  // namespace

std::optional<CapturedCalls> captureCalls(cudnnHandle_t handle,
                                          const std::function<cudnnStatus_t()>& enqueue) {
  int device = 0;
  UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
  const CallingThreads::Capture alone(callingThreads(device));
  if (!alone.isAllowed()) return std::nullopt;
  const RelaxedCapture relaxed;
  const Stream stream = makeStreamOfItsOwn(handle);
  const StreamScope scope(handle, stream.get());
  CaptureScope capture(stream.get());
  UCUDNN_CHECK_CUDNN(enqueue());
  CapturedCalls calls{capture.end()};
  UCUDNN_CHECK_CUDA(cudaGraphGetNodes(calls.graph.get(), nullptr, &calls.nodes));
  return calls;
}

GraphExec instantiate(const CapturedCalls& calls) {
  const RelaxedCapture relaxed;
  cudaGraphExec_t exec = nullptr;
  UCUDNN_CHECK_CUDA(cudaGraphInstantiateWithFlags(&exec, calls.graph.get(), 0));
  return GraphExec(exec);
}

}  // namespace ucudnn
