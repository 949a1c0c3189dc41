// Stream capture and graphs.
#include <string_view>
#include <utility>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/thread_state.hpp"

#if CUDART_VERSION < 13000
// CUDA 12 has the functions with edges under names of their own.
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#endif

using namespace ucudnn::simulator;

namespace {

bool isCaptureMode(cudaStreamCaptureMode mode) {
  return mode == cudaStreamCaptureModeGlobal || mode == cudaStreamCaptureModeThreadLocal ||
         mode == cudaStreamCaptureModeRelaxed;
}

using NodeNames = Machine::NodeNames;

/// As CUDA gives a list: all edges are ordinary ones; null asks for the number alone.
cudaError_t give(const NodeNames& names,
                 cudaGraphNode_t* nodes,
                 cudaGraphEdgeData* edges,
                 size_t* count) {
  const std::size_t room = nodes == nullptr ? 0 : *count;
  *count = names.size();
  for (std::size_t i = 0; i < room; ++i) {
    nodes[i] = i < names.size() ? names[i] : nullptr;
    if (edges != nullptr) edges[i] = {};
  }
  return cudaSuccess;
}

cudaGraphNodeType typeOf(const Work& work) {
  if (work.filledWith >= 0) return cudaGraphNodeTypeMemset;
  const std::string_view name = work.name;
  return name == "copy"            ? cudaGraphNodeTypeMemcpy
         : name == "host function" ? cudaGraphNodeTypeHost
                                   : cudaGraphNodeTypeKernel;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  UCUDNN_SIMULATED_CALL();
  if (!isCaptureMode(mode)) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().beginCapture(stream, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  UCUDNN_SIMULATED_CALL();
  if (graph == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().endCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  UCUDNN_SIMULATED_CALL();
  if (status == nullptr) return finish(cudaErrorInvalidValue);
  CaptureInfo info;
  const cudaError_t error = Machine::instance().captureInfo(stream, &info);
  *status = info.status;
  return finish(error);
}

// The graph under construction is empty until its capture ends; its edges are not given out.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
#if CUDART_VERSION >= 13000
                                     const cudaGraphEdgeData** edges,
#endif
                                     size_t* dependencyCount) {
  UCUDNN_SIMULATED_CALL();
  if (status == nullptr) return finish(cudaErrorInvalidValue);
#if CUDART_VERSION >= 13000
  if (edges != nullptr) return finish(cudaErrorNotSupported);
#endif
  if (dependencies != nullptr || dependencyCount != nullptr) return finish(cudaErrorNotSupported);
  CaptureInfo info;
  const auto with = graph != nullptr ? Machine::With::kGraph : Machine::With::kStatus;
  const cudaError_t error = Machine::instance().captureInfo(stream, &info, with);
  *status = info.status;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
  return finish(error);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  UCUDNN_SIMULATED_CALL();
  if (mode == nullptr || !isCaptureMode(*mode)) return finish(cudaErrorInvalidValue);
  std::swap(thisThread().captureMode, *mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  UCUDNN_SIMULATED_ALLOCATION();
  if (exec == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().instantiate(exec, graph));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec,
                                          cudaGraph_t graph,
                                          unsigned long long) {
  UCUDNN_SIMULATED_ALLOCATION();
  if (exec == nullptr) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().instantiate(exec, graph));
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (graph == nullptr || flags != 0) return finish(cudaErrorInvalidValue);
  return finish(Machine::instance().createGraph(graph));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().upload(exec));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().launch(exec, stream));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return finish(enterDestroying(__func__, [&] { return Machine::instance().destroyGraph(graph); }));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return finish(
      enterDestroying(__func__, [&] { return Machine::instance().destroyGraphExec(exec); }));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  UCUDNN_SIMULATED_CALL();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  if (nodes == nullptr) return finish(Machine::instance().nodeCount(graph, count));
  NodeNames names;
  const cudaError_t error = Machine::instance().nodes(graph, &names);
  return finish(error != cudaSuccess ? error : give(names, nodes, nullptr, count));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  UCUDNN_SIMULATED_CALL();
  if (type == nullptr) return finish(cudaErrorInvalidValue);
  Work work{};
  const cudaError_t error = Machine::instance().workOf(node, &work);
  if (error == cudaSuccess) *type = typeOf(work);
  return finish(error);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  UCUDNN_SIMULATED_CALL();
  if (params == nullptr) return finish(cudaErrorInvalidValue);
  Work work{};
  if (const cudaError_t error = Machine::instance().workOf(node, &work)) return finish(error);
  if (work.filledWith < 0) return finish(cudaErrorInvalidValue);
  const Access& filled = work.accesses.front();
  *params = {};
  params->dst = const_cast<void*>(filled.base);
  params->value = static_cast<unsigned int>(work.filledWith);
  params->elementSize = 1;
  params->width = filled.bytes;
  params->height = filled.rows;
  params->pitch = filled.pitch;
  return finish(cudaSuccess);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                         cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges,
                                         size_t* count) {
  UCUDNN_SIMULATED_CALL();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  NodeNames names;
  const cudaError_t error = Machine::instance().dependencies(node, &names);
  return finish(error != cudaSuccess ? error : give(names, dependencies, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                           cudaGraphNode_t* dependents,
                                           cudaGraphEdgeData* edges,
                                           size_t* count) {
  UCUDNN_SIMULATED_CALL();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  NodeNames names;
  const cudaError_t error = Machine::instance().dependents(node, &names);
  return finish(error != cudaSuccess ? error : give(names, dependents, edges, count));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream,
                                          cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges,
                                          size_t count,
                                          cudaStreamCaptureMode mode) {
  UCUDNN_SIMULATED_CALL();
  if (!isCaptureMode(mode) || (dependencies == nullptr && count > 0))
    return finish(cudaErrorInvalidValue);
  if (edges != nullptr) return finish(cudaErrorNotSupported);
  return finish(Machine::instance().beginCaptureToGraph(
      stream, graph, {dependencies, dependencies + count}, mode));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph,
                                     const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges,
                                     size_t count) {
  UCUDNN_SIMULATED_CALL();
  if (count > 0 && (from == nullptr || to == nullptr)) return finish(cudaErrorInvalidValue);
  if (edges != nullptr) return finish(cudaErrorNotSupported);
  for (size_t i = 0; i < count; ++i)
    if (const cudaError_t error = Machine::instance().addDependency(graph, from[i], to[i]))
      return finish(error);
  return finish(cudaSuccess);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return finish(enterDestroying(__func__, [&] { return Machine::instance().destroyNode(node); }));
}

}  // extern "C"
