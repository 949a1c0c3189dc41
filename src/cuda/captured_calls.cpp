#include "cuda/captured_calls.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/calling_threads.hpp"
#include "cuda/graph_edges.hpp"

namespace ucudnn {
namespace {

/// Gives a handle another stream while the scope lives.
class StreamScope {
 public:
  StreamScope(cudnnHandle_t handle, cudaStream_t stream) : handle_(handle) {
    UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &former_));
    UCUDNN_CHECK_CUDNN(cudnn().setStream(handle, stream));
  }
  /// Tries again if it fails: the client's next call must not go to our stream.
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
  /// Captures a new graph.
  explicit CaptureScope(cudaStream_t stream) : stream_(stream), isNew_(true) {
    UCUDNN_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  /// Captures more nodes of a graph, which depend on `behind`.
  CaptureScope(cudaStream_t stream, cudaGraph_t graph, const std::vector<cudaGraphNode_t>& behind)
      : stream_(stream), isNew_(false) {
    UCUDNN_CHECK_CUDA(cudaStreamBeginCaptureToGraph(
        stream, graph, behind.data(), nullptr, behind.size(), cudaStreamCaptureModeRelaxed));
  }
  ~CaptureScope() {
    if (ended_) return;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) != cudaSuccess)
      static_cast<void>(cudaGetLastError());
    else if (isNew_)
      static_cast<void>(cudaGraphDestroy(graph));
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    UCUDNN_CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
    ended_ = true;
    return graph;
  }

 private:
  cudaStream_t stream_;
  bool isNew_;
  bool ended_ = false;
};

/// A stream for which work on the legacy default stream does not wait. It has the priority of the
/// handle's stream, because kernels of a graph keep the priority of the stream that they were
/// captured on.
Stream makeStreamOfItsOwn(cudnnHandle_t handle) {
  cudaStream_t clients = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &clients));
  int priority = 0;
  UCUDNN_CHECK_CUDA(cudaStreamGetPriority(clients, &priority));
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  return Stream(stream);
}

std::vector<cudaGraphNode_t> nodesOf(cudaGraph_t graph) {
  std::size_t count = 0;
  UCUDNN_CHECK_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  UCUDNN_CHECK_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

/// By graphNodeGetDependencies or -DependentNodes; empty if an edge is no ordinary one.
template <typename Function>
std::optional<std::vector<cudaGraphNode_t>> neighboursOf(cudaGraphNode_t node, Function function) {
  std::size_t count = 0;
  UCUDNN_CHECK_CUDA(function(node, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  std::vector<cudaGraphEdgeData> edges(count);
  UCUDNN_CHECK_CUDA(function(node, nodes.data(), edges.data(), &count));
  const auto isOrdinary = [](const cudaGraphEdgeData& edge) {
    return edge.type == cudaGraphDependencyTypeDefault && edge.from_port == 0 && edge.to_port == 0;
  };
  if (!std::all_of(edges.begin(), edges.end(), isOrdinary)) return std::nullopt;
  return nodes;
}

/// Replaces memset nodes that clear a few bytes with cuDNN's kernel; many of its kernels need such
/// a memset before them. CUDA launches a line of only kernels in constant time, and takes longer
/// for each memset among them (misc/RESULTS.md at 7ba7ca8, "Replay").
class ClearingKernels {
 public:
  /// REQUIRES: the handle is on the stream.
  ClearingKernels(cudnnHandle_t handle, cudaStream_t stream)
      : handle_(handle),
        stream_(stream),
        tensor_(makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor)) {}

  /// Throws Error: then the graph must not be launched.
  void replaceMemsets(cudaGraph_t graph) const {
    for (cudaGraphNode_t const node : nodesOf(graph)) {
      cudaGraphNodeType type;
      UCUDNN_CHECK_CUDA(cudaGraphNodeGetType(node, &type));
      if (type == cudaGraphNodeTypeMemset) replace(graph, node);
    }
  }

 private:
  // With cuDNN's kernel in the place of larger memsets too, two convolutions took an H200 0.52 ms
  // more for each 8 MiB, as if the kernel wrote 15 GB/s.
  static constexpr std::size_t kMostBytes = 4096;

  void replace(cudaGraph_t graph, cudaGraphNode_t memset) const {
    cudaMemsetParams params{};
    UCUDNN_CHECK_CUDA(cudaGraphMemsetNodeGetParams(memset, &params));
    const std::size_t bytes = params.width * params.elementSize;
    const auto before = neighboursOf(memset, graphNodeGetDependencies);
    const auto after = neighboursOf(memset, graphNodeGetDependentNodes);
    const auto address = reinterpret_cast<std::uintptr_t>(params.dst);
    if (params.value != 0 || params.height > 1 || bytes % sizeof(float) != 0 ||
        address % sizeof(float) != 0 || bytes > kMostBytes || !before || !after)
      return;
    auto former = nodesOf(graph);
    std::sort(former.begin(), former.end());
    CaptureScope capture(stream_, graph, *before);
    clear(params.dst, static_cast<int>(bytes / sizeof(float)));
    capture.end();
    for (cudaGraphNode_t const node : nodesOf(graph)) {
      if (std::binary_search(former.begin(), former.end(), node)) continue;
      const std::vector<cudaGraphNode_t> added(after->size(), node);
      UCUDNN_CHECK_CUDA(
          graphAddDependencies(graph, added.data(), after->data(), nullptr, after->size()));
    }
    UCUDNN_CHECK_CUDA(cudaGraphDestroyNode(memset));
  }

  void clear(void* data, int floats) const {
    const float zero = 0;
    UCUDNN_CHECK_CUDNN(cudnn().setTensor4dDescriptor(
        tensor_.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, floats));
    UCUDNN_CHECK_CUDNN(cudnn().setTensor(handle_, tensor_.get(), data, &zero));
  }

  cudnnHandle_t handle_;
  cudaStream_t stream_;
  TensorDescriptor tensor_;
};

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
  CapturedCalls calls{Graph(capture.end())};
  ClearingKernels(handle, stream.get()).replaceMemsets(calls.graph.get());
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
