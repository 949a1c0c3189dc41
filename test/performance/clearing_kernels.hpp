// A graph whose memory is cleared by kernels of cuDNN's in place of memset nodes: CUDA launches a
// line of nothing but kernels in constant time. To find out whether that is what it takes.
#pragma once

#include <cuda.h>

#include "convolution.hpp"

// The simulator lacks these.
#pragma weak cudaGetDriverEntryPointByVersion
#pragma weak cudaGraphAddDependencies
#pragma weak cudaGraphDestroyNode
#pragma weak cudaGraphMemsetNodeGetParams
#pragma weak cudaGraphNodeGetDependencies
#pragma weak cudaGraphNodeGetDependentNodes
#pragma weak cudaGraphNodeGetType

namespace ucudnn::test {

inline bool isOfType(cudaGraphNode_t node, cudaGraphNodeType wanted) {
  cudaGraphNodeType type;
  return cudaGraphNodeGetType(node, &type) == cudaSuccess && type == wanted;
}

inline std::vector<cudaGraphNode_t> nodesOf(cudaGraph_t graph) {
  std::size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

/// REQUIRES: a GPU. What it can't do it leaves as it is.
class ClearingKernels {
 public:
  /// REQUIRES: the handle is on the stream.
  ClearingKernels(cudnnHandle_t handle, cudaStream_t stream) : handle_(handle), stream_(stream) {
    // The runtime's functions know only kernels that the program has registered itself.
    cudaDriverEntryPointQueryResult found;
    constexpr unsigned kVersion = 12000;
    CHECK(cudaGetDriverEntryPointByVersion("cuGraphKernelNodeGetParams",
                                           reinterpret_cast<void**>(&getParams_),
                                           kVersion,
                                           cudaEnableDefault,
                                           &found));
    CHECK(cudaGetDriverEntryPointByVersion("cuGraphAddKernelNode",
                                           reinterpret_cast<void**>(&addKernel_),
                                           kVersion,
                                           cudaEnableDefault,
                                           &found));
    CHECK(cudnnCreateTensorDescriptor(&tensor_));
  }
  ~ClearingKernels() { cudnnDestroyTensorDescriptor(tensor_); }
  ClearingKernels(const ClearingKernels&) = delete;
  ClearingKernels& operator=(const ClearingKernels&) = delete;

  /// Returns how many memset nodes have become kernels.
  int replaceMemsets(cudaGraph_t graph) const {
    int replaced = 0;
    for (cudaGraphNode_t const node : nodesOf(graph))
      if (isOfType(node, cudaGraphNodeTypeMemset) && replace(graph, node)) ++replaced;
    return replaced;
  }

 private:
  bool replace(cudaGraph_t graph, cudaGraphNode_t memset) const {
    cudaMemsetParams params{};
    if (cudaGraphMemsetNodeGetParams(memset, &params) != cudaSuccess) return false;
    const std::size_t bytes = params.width * params.elementSize;
    if (params.height != 1 || params.value != 0 || bytes % sizeof(float) != 0) return false;
    cudaGraph_t cleared = captureClearing(params.dst, bytes / sizeof(float));
    const auto nodes = nodesOf(cleared);
    const bool isDone = nodes.size() == 1 && isOfType(nodes[0], cudaGraphNodeTypeKernel) &&
                        putInPlace(graph, memset, nodes[0]);
    CHECK(cudaGraphDestroy(cleared));
    return isDone;
  }

  cudaGraph_t captureClearing(void* data, std::size_t floats) const {
    const float zero = 0;
    cudaGraph_t graph = nullptr;
    CHECK(cudnnSetTensor4dDescriptor(
        tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, static_cast<int>(floats)));
    CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    CHECK(cudnnSetTensor(handle_, tensor_, data, &zero));
    CHECK(cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

  bool putInPlace(cudaGraph_t graph, cudaGraphNode_t memset, cudaGraphNode_t kernel) const {
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    if (getParams_(kernel, &params) != CUDA_SUCCESS) return false;
    const auto before = neighboursOf(memset, cudaGraphNodeGetDependencies);
    const auto after = neighboursOf(memset, cudaGraphNodeGetDependentNodes);
    cudaGraphNode_t added = nullptr;
    if (addKernel_(&added, graph, before.data(), before.size(), &params) != CUDA_SUCCESS)
      return false;
    const std::vector<cudaGraphNode_t> from(after.size(), added);
    CHECK(cudaGraphAddDependencies(graph, from.data(), after.data(), nullptr, after.size()));
    CHECK(cudaGraphDestroyNode(memset));
    return true;
  }

  template <typename Function>
  static std::vector<cudaGraphNode_t> neighboursOf(cudaGraphNode_t node, Function function) {
    std::size_t count = 0;
    CHECK(function(node, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    std::vector<cudaGraphEdgeData> data(count);
    CHECK(function(node, nodes.data(), data.data(), &count));
    return nodes;
  }

  cudnnHandle_t handle_;
  cudaStream_t stream_;
  cudnnTensorDescriptor_t tensor_ = nullptr;
  CUresult (*getParams_)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*) = nullptr;
  CUresult (*addKernel_)(CUgraphNode*,
                         CUgraph,
                         const CUgraphNode*,
                         std::size_t,
                         const CUDA_KERNEL_NODE_PARAMS_v2*) = nullptr;
};

}  // namespace ucudnn::test
