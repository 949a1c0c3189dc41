// Operation graphs of the backend API.
#include <cuda_runtime_api.h>

#include "simulator/cudnn/backend_operations.hpp"

namespace ucudnn::simulator {

void BackendGraph::addOperation(cudnnBackendDescriptor_t handle) {
  if (const auto* const pointwise = backendCast<BackendPointwiseOperation>(handle)) {
    if (!pointwise->finalized()) {
      refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an operation is not finalized");
    }
    operations_.followers.push_back(pointwise->value());
    return;
  }
  const auto* const operation = backendCast<BackendOperation>(handle);
  require(operation != nullptr, "not an operation");
  if (!operation->finalized()) {
    refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an operation is not finalized");
  }
  operations_.convolutions.push_back(operation->graph());
  operations_.continues = operations_.continues || operation->continues();
}

void BackendGraph::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      handle_ = input.scalar<cudnnHandle_t>(CUDNN_TYPE_HANDLE);
      if (handle_ == nullptr) refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null handle");
      return;
    case CUDNN_ATTR_OPERATIONGRAPH_OPS:
      operations_ = {};
      for (auto* const handle :
           input.array<cudnnBackendDescriptor_t>(CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
        addOperation(handle);
      }
      return;
    default:
      refuseAttribute();
  }
}

void BackendGraph::getAttribute(cudnnBackendAttributeName_t name,
                                const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return output.scalar(CUDNN_TYPE_INT64, engineCount(*graph_));
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      return output.scalar(CUDNN_TYPE_HANDLE, handle_);
    case CUDNN_ATTR_OPERATIONGRAPH_OPS:  // as cuDNN 9.19
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "a graph's operations can't be read");
    default:
      refuseAttribute();
  }
}

void BackendGraph::complete() {
  const bool none = operations_.convolutions.empty() && operations_.followers.empty();
  require(!none, "a graph without operations");
  if (operations_.convolutions.size() != 1 ||
      operations_.continues == operations_.followers.empty()) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
           "the simulator computes one convolution and what follows it");
  }
  OperationGraph graph = operations_.convolutions.front();
  if (operations_.continues) graph = fuse(std::move(graph), operations_.followers);
  if (handle_ != nullptr) {
    graph.device = handle_->device;
  } else if (cudaGetDevice(&graph.device) != cudaSuccess) {
    refuse(CUDNN_STATUS_NOT_INITIALIZED, "no current device");
  }
  graph_ = std::make_shared<const OperationGraph>(std::move(graph));
}

void BackendGraph::fill(std::shared_ptr<const OperationGraph> graph) {
  graph_ = std::move(graph);
  markFinalized();
}

}  // namespace ucudnn::simulator
