// Graphs that a program looks into and changes before it instantiates them.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/runtime/machine.hpp"

namespace ucudnn::simulator {

namespace {

bool dependsOn(const GraphNode& node, std::size_t other) {
  return std::find(node.dependencies.begin(), node.dependencies.end(), other) !=
         node.dependencies.end();
}

/// Puts each node behind all that it depends on, which is the order in which a launch runs them.
/// False: there is a circle.
bool sortNodes(GraphNodes& nodes, std::vector<cudaGraphNode_t>& names) {
  std::vector<std::size_t> order, place(nodes.size(), nodes.size());
  while (order.size() < nodes.size()) {
    const std::size_t placed = order.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& before = nodes[i].dependencies;
      const bool isReady = std::all_of(before.begin(), before.end(), [&](std::size_t other) {
        return place[other] < nodes.size();
      });
      if (place[i] < nodes.size() || !isReady) continue;
      place[i] = order.size();
      order.push_back(i);
    }
    if (order.size() == placed) return false;
  }
  GraphNodes sorted;
  std::vector<cudaGraphNode_t> sortedNames;
  for (const std::size_t i : order) {
    for (std::size_t& dependency : nodes[i].dependencies) dependency = place[dependency];
    sorted.push_back(std::move(nodes[i]));
    sortedNames.push_back(names[i]);
  }
  nodes = std::move(sorted);
  names = std::move(sortedNames);
  return true;
}

}  // namespace

void Machine::nameNodes(cudaGraph_t handle, Graph& graph) {
  while (graph.names.size() < graph.nodes->size())
    graph.names.push_back(graphNodes_.add(std::make_unique<GraphNodeName>(GraphNodeName{handle})));
}

Graph* Machine::graphOf(cudaGraphNode_t node, std::size_t* index) {
  const GraphNodeName* const name = graphNodes_.find(node);
  Graph* const graph = name != nullptr ? graphs_.find(name->graph) : nullptr;
  if (graph == nullptr) return nullptr;
  const auto found = std::find(graph->names.begin(), graph->names.end(), node);
  *index = static_cast<std::size_t>(found - graph->names.begin());
  return found != graph->names.end() ? graph : nullptr;
}

cudaError_t Machine::nodes(cudaGraph_t handle, NodeNames* names) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  nameNodes(handle, *graph);
  *names = graph->names;
  return cudaSuccess;
}

cudaError_t Machine::dependencies(cudaGraphNode_t node, NodeNames* names) {
  const std::lock_guard<std::mutex> lock(state_);
  std::size_t index = 0;
  const Graph* const graph = graphOf(node, &index);
  if (graph == nullptr) return cudaErrorInvalidValue;
  for (const std::size_t other : (*graph->nodes)[index].dependencies)
    names->push_back(graph->names[other]);
  return cudaSuccess;
}

cudaError_t Machine::dependents(cudaGraphNode_t node, NodeNames* names) {
  const std::lock_guard<std::mutex> lock(state_);
  std::size_t index = 0;
  const Graph* const graph = graphOf(node, &index);
  if (graph == nullptr) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < graph->nodes->size(); ++i)
    if (dependsOn((*graph->nodes)[i], index)) names->push_back(graph->names[i]);
  return cudaSuccess;
}

cudaError_t Machine::workOf(cudaGraphNode_t node, Work* work) {
  const std::lock_guard<std::mutex> lock(state_);
  std::size_t index = 0;
  const Graph* const graph = graphOf(node, &index);
  if (graph == nullptr) return cudaErrorInvalidValue;
  *work = (*graph->nodes)[index].work;
  return cudaSuccess;
}

cudaError_t Machine::beginCaptureToGraph(cudaStream_t stream,
                                         cudaGraph_t handle,
                                         const NodeNames& dependencies,
                                         cudaStreamCaptureMode mode) {
  std::vector<std::size_t> tips;
  GraphNodes nodes;
  {
    const std::lock_guard<std::mutex> lock(state_);
    const Graph* const graph = graphs_.find(handle);
    if (graph == nullptr) return cudaErrorInvalidValue;
    nodes = *graph->nodes;
    for (cudaGraphNode_t const dependency : dependencies) {
      std::size_t index = 0;
      if (graphOf(dependency, &index) != graph) return cudaErrorInvalidValue;
      tips.push_back(index);
    }
  }
  if (const cudaError_t error = beginCapture(stream, mode)) return error;
  const std::lock_guard<std::mutex> lock(state_);
  CapturePoint& point = *findStream(stream)->capturing;
  point.capture->into = handle;
  point.capture->nodes = std::move(nodes);
  point.tips = std::move(tips);
  return cudaSuccess;
}

cudaError_t Machine::addDependency(cudaGraph_t handle, cudaGraphNode_t from, cudaGraphNode_t to) {
  const std::lock_guard<std::mutex> lock(state_);
  std::size_t before = 0, behind = 0;
  Graph* const graph = graphs_.find(handle);
  if (graph == nullptr || graphOf(from, &before) != graph || graphOf(to, &behind) != graph)
    return cudaErrorInvalidValue;
  GraphNodes nodes = *graph->nodes;
  if (before == behind || dependsOn(nodes[behind], before)) return cudaErrorInvalidValue;
  nodes[behind].dependencies.push_back(before);
  if (!sortNodes(nodes, graph->names)) return cudaErrorInvalidValue;
  graph->nodes = std::make_shared<const GraphNodes>(std::move(nodes));
  return cudaSuccess;
}

cudaError_t Machine::destroyNode(cudaGraphNode_t node) {
  const std::lock_guard<std::mutex> lock(state_);
  std::size_t index = 0;
  Graph* const graph = graphOf(node, &index);
  if (graph == nullptr) return cudaErrorInvalidValue;
  GraphNodes nodes = *graph->nodes;
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(index));
  for (GraphNode& each : nodes) {
    auto& others = each.dependencies;
    others.erase(std::remove(others.begin(), others.end(), index), others.end());
    for (std::size_t& other : others) other -= other > index ? 1 : 0;
  }
  graph->names.erase(graph->names.begin() + static_cast<std::ptrdiff_t>(index));
  graph->nodes = std::make_shared<const GraphNodes>(std::move(nodes));
  graphNodes_.erase(node);
  return cudaSuccess;
}

}  // namespace ucudnn::simulator
