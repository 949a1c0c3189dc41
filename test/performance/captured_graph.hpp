// A call as a client captures it: what its graph is made of, and its launch.
#pragma once

#include <algorithm>
#include <map>

#include "convolution.hpp"

// The simulator lacks this.
#pragma weak cudaGraphGetEdges

namespace ucudnn::test {

class CapturedGraph {
 public:
  /// Puts the handle on a stream of its own, for as long as this lives.
  template <typename Enqueue>
  CapturedGraph(UcudnnHandle_t handle, Enqueue enqueue) : handle_(handle) {
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cudnnSetStream(handle_, stream_));
    CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    enqueue();
    CHECK(cudaStreamEndCapture(stream_, &graph_));
    CHECK(cudaGraphInstantiateWithFlags(&exec_, graph_, 0));
  }
  ~CapturedGraph() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
    cudnnSetStream(handle_, nullptr);
    cudaStreamDestroy(stream_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void launch() const { CHECK(cudaGraphLaunch(exec_, stream_)); }

  void describe(benchmark::State& state) const {
    std::size_t count = 0;
    CHECK(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(graph_, nodes.data(), &count));
    state.counters["nodes"] = static_cast<double>(count);
    for (const char* const name : {"kernels", "memsets", "memcpys", "others", "cleared_bytes"})
      state.counters[name] = 0;
    for (cudaGraphNode_t const node : nodes) {
      const std::string type = typeOf(node);
      ++state.counters[type].value;
      if (type != "memsets") continue;
      cudaMemsetParams params{};
      CHECK(cudaGraphMemsetNodeGetParams(node, &params));
      state.counters["cleared_bytes"].value +=
          static_cast<double>(params.width * params.height * params.elementSize);
    }
    if (!onSimulator()) describeEdges(state);
  }

 private:
  static const char* typeOf(cudaGraphNode_t node) {
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(node, &type));
    switch (type) {
      case cudaGraphNodeTypeKernel:
        return "kernels";
      case cudaGraphNodeTypeMemset:
        return "memsets";
      case cudaGraphNodeTypeMemcpy:
        return "memcpys";
      default:
        return "others";
    }
  }

  /// `most_edges`: that begin, or end, at one node; 1: the nodes are a line.
  /// `programmatic`: edges on which the next node begins before the one before has ended.
  void describeEdges(benchmark::State& state) const {
    std::size_t count = 0;
    CHECK(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    CHECK(cudaGraphGetEdges(graph_, from.data(), to.data(), data.data(), &count));
    std::map<cudaGraphNode_t, int> begin, end;
    int most = 0, programmatic = 0;
    for (std::size_t i = 0; i < count; ++i) {
      most = std::max({most, ++begin[from[i]], ++end[to[i]]});
      if (data[i].type == cudaGraphDependencyTypeProgrammatic) ++programmatic;
    }
    state.counters["edges"] = static_cast<double>(count);
    state.counters["most_edges"] = most;
    state.counters["programmatic"] = programmatic;
  }

  UcudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace ucudnn::test
