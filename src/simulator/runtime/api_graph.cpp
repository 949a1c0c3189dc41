// Stream capture and graphs.
#include <utility>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/thread_state.hpp"

using namespace ucudnn::simulator;

namespace {

bool isCaptureMode(cudaStreamCaptureMode mode) {
  return mode == cudaStreamCaptureModeGlobal || mode == cudaStreamCaptureModeThreadLocal ||
         mode == cudaStreamCaptureModeRelaxed;
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

// The graph under construction and its edges are not given out: asking for them is not supported.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges,
                                     size_t* dependencyCount) {
  UCUDNN_SIMULATED_CALL();
  if (status == nullptr) return finish(cudaErrorInvalidValue);
  if (graph != nullptr || dependencies != nullptr || edges != nullptr ||
      dependencyCount != nullptr) {
    return finish(cudaErrorNotSupported);
  }
  CaptureInfo info;
  const cudaError_t error = Machine::instance().captureInfo(stream, &info);
  *status = info.status;
  if (id != nullptr) *id = info.id;
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

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node,
                                       cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies,
                                       size_t dependencyCount,
                                       cudaGraph_t child) {
  UCUDNN_SIMULATED_CALL();
  if (node == nullptr || (dependencies == nullptr && dependencyCount > 0)) {
    return finish(cudaErrorInvalidValue);
  }
  return finish(Machine::instance().addChild(
      node, graph, {dependencies, dependencies + dependencyCount}, child));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec,
                                                 cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().setChild(exec, node, child));
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

// Only their number: nodes themselves are not given out.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  UCUDNN_SIMULATED_CALL();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  if (nodes != nullptr) return finish(cudaErrorNotSupported);
  return finish(Machine::instance().nodeCount(graph, count));
}

}  // extern "C"
