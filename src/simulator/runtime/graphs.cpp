// The machine's graphs.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/host_costs.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"

namespace ucudnn::simulator {

namespace {

// Kernels are counted, not works: a convolution of four kernels is four nodes of a real graph.
// host_costs.cpp has the cost of a call for any graph.
constexpr double kInstantiateMicroseconds = 2.5;  // a kernel
constexpr double kDestroyMicroseconds = 1;        // a kernel
constexpr double kUploadMicroseconds = 7;         // with cudaGraphLaunch's 3 the 10 of a first one
constexpr double kUploadKernelMicroseconds = 1;
constexpr double kLaunchMemsetMicroseconds = 1.1;  // a memset node, at each launch
constexpr double kBeginMs = 0.002;          // of a graph on the device, before its first node
constexpr double kShorterLaunchMs = 0.003;  // between nodes than on a stream
constexpr std::size_t kGraphBytes = 16 << 10;
constexpr std::size_t kKernelBytes = 2765;  // 2.7 KiB

int kernelCount(const GraphNodes& nodes) {
  int count = 0;
  for (const GraphNode& node : nodes) count += node.work.launches;
  return count;
}

std::size_t deviceBytes(const GraphNodes& nodes) {
  return kGraphBytes + kKernelBytes * static_cast<std::size_t>(kernelCount(nodes));
}

/// The time of a work as a node of a graph. Less than half of its own time was never seen.
Ticks durationInGraph(const Work& work) {
  const double shorter = work.durationMs - kShorterLaunchMs * work.launches;
  return ticksFromMs(std::max(shorter, work.durationMs / 2));
}

int memsetCount(const GraphNodes& nodes) {
  return static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(), [](const GraphNode& node) { return node.work.filledWith >= 0; }));
}

/// The calling thread's part of the first launch.
void uploadNow(GraphExec& exec) {
  if (exec.uploaded) return;
  exec.uploaded = true;
  hostSpends(kUploadMicroseconds + kUploadKernelMicroseconds * kernelCount(*exec.nodes));
}

}  // namespace

cudaError_t Machine::createGraph(cudaGraph_t* graph) {
  const std::lock_guard<std::mutex> lock(state_);
  *graph = graphs_.add(
      std::make_unique<Graph>(Graph{std::make_shared<const GraphNodes>(), thisThread().device}));
  countHandle("graph", 1);
  return cudaSuccess;
}

cudaError_t Machine::instantiate(cudaGraphExec_t* exec, cudaGraph_t handle) {
  const std::lock_guard<std::mutex> lock(state_);
  const Graph* const graph = graphs_.find(handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  hostSpends(kInstantiateMicroseconds * kernelCount(*graph->nodes));
  if (!Memory::instance().reserve(graph->device, deviceBytes(*graph->nodes))) {
    return cudaErrorMemoryAllocation;
  }
  *exec = graphExecs_.add(std::make_unique<GraphExec>(
      GraphExec{graph->nodes, graph->device, false, {}, copyOf(graph->references)}));
  countHandle("graphExec", 1);
  return cudaSuccess;
}

cudaError_t Machine::launch(cudaGraphExec_t handle, cudaStream_t streamHandle) {
  Turn turn(*this, streamHandle);
  GraphExec* const exec = graphExecs_.find(handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (stream.capturing) {
    stream.capturing->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = checkImplicit(stream)) return error;
  uploadNow(*exec);
  hostSpends(kLaunchMemsetMicroseconds * memsetCount(*exec->nodes));
  startWork(stream);
  stream.reached.join(exec->finished);
  stream.reached.order.advance(stream.id);
  stream.reached.time += ticksFromMs(kBeginMs);
  const Ticks start = stream.reached.time;
  const std::shared_ptr<const GraphNodes> nodes = exec->nodes;
  std::vector<Ticks> ends;
  for (const GraphNode& node : *nodes) {
    Ticks ready = start;
    for (const std::size_t dependency : node.dependencies)
      ready = std::max(ready, ends[dependency]);
    ends.push_back(ready + durationInGraph(node.work));
    if (node.work.engine == CopyEngine::kNone)
      device(stream.device).computed = {ready, ends.back()};
    stream.reached.time = std::max(stream.reached.time, ends.back());
    log_.add(stream.id, stream.reached.order, node.work);
  }
  exec->finished = stream.reached;
  turn.state.unlock();
  for (const GraphNode& node : *nodes) execute(node.work);
  return cudaSuccess;
}

cudaError_t Machine::destroyGraph(cudaGraph_t graph) {
  const std::lock_guard<std::mutex> lock(state_);
  if (graphs_.find(graph) == nullptr) return cudaErrorInvalidValue;
  eraseGraph(graph);
  countHandle("graph", -1);
  return cudaSuccess;
}

void Machine::eraseGraph(cudaGraph_t handle) {
  Graph& graph = *graphs_.find(handle);
  drop(std::move(graph.references));
  graphs_.erase(handle);
  graphNodes_.eraseIf([&](const GraphNodeName& name) { return name.graph == handle; });
}

cudaError_t Machine::destroyGraphExec(cudaGraphExec_t handle) {
  const std::lock_guard<std::mutex> lock(state_);
  GraphExec* const exec = graphExecs_.find(handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  hostSpends(kDestroyMicroseconds * kernelCount(*exec->nodes));
  drop(std::move(exec->references), exec->finished);
  Memory::instance().unreserve(exec->device, deviceBytes(*exec->nodes));
  graphExecs_.erase(handle);
  countHandle("graphExec", -1);
  return cudaSuccess;
}

cudaError_t Machine::nodeCount(cudaGraph_t handle, std::size_t* count) {
  const std::lock_guard<std::mutex> lock(state_);
  const Graph* const graph = graphs_.find(handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  *count = graph->nodes->size();
  return cudaSuccess;
}

cudaError_t Machine::upload(cudaGraphExec_t handle) {
  const std::lock_guard<std::mutex> lock(state_);
  GraphExec* const exec = graphExecs_.find(handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  uploadNow(*exec);
  return cudaSuccess;
}

}  // namespace ucudnn::simulator
