// Graphs that a program builds: cudaGraphCreate, what cuDNN puts in, child graphs.
#include <memory>
#include <string_view>
#include <utility>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/machine.hpp"

namespace ucudnn::simulator {

namespace {

// CUDA updates executable graphs only to kernels of the same functions.
bool sameKind(const Work& a, const Work& b) {
  return std::string_view(a.name) == b.name && a.kind == b.kind && a.launches == b.launches;
}

}  // namespace

cudaError_t Machine::createGraph(cudaGraph_t* graph) {
  const std::lock_guard<std::mutex> lock(state_);
  *graph = graphs_.add(
      std::make_unique<Graph>(Graph{std::make_shared<const GraphNodes>(), thisThread().device}));
  countHandle("graph", 1);
  return cudaSuccess;
}

cudaError_t Machine::addToGraph(cudaGraph_t handle, Work work) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(handle);
  if (graph == nullptr || !graph->nodes->empty()) return cudaErrorInvalidValue;
  graph->nodes = std::make_shared<const GraphNodes>(GraphNodes{{std::move(work), {}}});
  return cudaSuccess;
}

cudaError_t Machine::replaceInGraph(cudaGraph_t handle, Work work) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(handle);
  if (graph == nullptr || graph->nodes->size() != 1 || !graph->children.empty()) {
    return cudaErrorInvalidValue;
  }
  if (!sameKind(graph->nodes->front().work, work)) return cudaErrorGraphExecUpdateFailure;
  graph->nodes = std::make_shared<const GraphNodes>(GraphNodes{{std::move(work), {}}});
  return cudaSuccess;
}

cudaError_t Machine::addChild(cudaGraphNode_t* node,
                              cudaGraph_t handle,
                              const std::vector<cudaGraphNode_t>& dependencies,
                              cudaGraph_t childHandle) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(handle);
  const Graph* const child = graphs_.find(childHandle);
  if (graph == nullptr || child == nullptr || graph == child) return cudaErrorInvalidValue;
  std::vector<std::size_t> before;
  for (cudaGraphNode_t const dependency : dependencies) {
    const GraphNodeName* const name = graphNodes_.find(dependency);
    if (name == nullptr || name->graph != handle) return cudaErrorInvalidValue;
    const ChildNode& other = graph->children[name->child];
    for (std::size_t i = 0; i < other.count; ++i) before.push_back(other.first + i);
  }
  GraphNodes nodes = *graph->nodes;
  ChildNode added{nodes.size(), child->nodes->size(), copyOf(child->references)};
  for (const ChildNode& grandchild : child->children)
    for (const auto& [object, count] : copyOf(grandchild.references))
      added.references[object] += count;
  for (const GraphNode& original : *child->nodes) {
    GraphNode copy{original.work, before};
    for (const std::size_t own : original.dependencies) {
      copy.dependencies.push_back(added.first + own);
    }
    nodes.push_back(std::move(copy));
  }
  graph->nodes = std::make_shared<const GraphNodes>(std::move(nodes));
  graph->children.push_back(std::move(added));
  *node = graphNodes_.add(
      std::make_unique<GraphNodeName>(GraphNodeName{handle, graph->children.size() - 1}));
  return cudaSuccess;
}

cudaError_t Machine::setChild(cudaGraphExec_t execHandle,
                              cudaGraphNode_t node,
                              cudaGraph_t childHandle) {
  const std::lock_guard<std::mutex> lock(state_);
  GraphExec* const exec = graphExecs_.find(execHandle);
  const GraphNodeName* const name = graphNodes_.find(node);
  const Graph* const child = graphs_.find(childHandle);
  if (exec == nullptr || name == nullptr || child == nullptr || name->graph != exec->origin ||
      name->child >= exec->children.size()) {
    return cudaErrorInvalidValue;
  }
  ChildNode& place = exec->children[name->child];
  if (place.count != child->nodes->size()) return cudaErrorGraphExecUpdateFailure;
  GraphNodes nodes = *exec->nodes;
  for (std::size_t i = 0; i < place.count; ++i) {
    Work& work = nodes[place.first + i].work;
    const Work& other = (*child->nodes)[i].work;
    if (!sameKind(work, other)) return cudaErrorGraphExecUpdateFailure;
    work = other;
  }
  exec->nodes = std::make_shared<const GraphNodes>(std::move(nodes));  // launches have the old ones
  drop(std::exchange(place.references, copyOf(child->references)), exec->finished);
  return cudaSuccess;
}

cudaError_t addToGraph(cudaGraph_t graph, Work work) {
  return Machine::instance().addToGraph(graph, std::move(work));
}

cudaError_t replaceInGraph(cudaGraph_t graph, Work work) {
  return Machine::instance().replaceInGraph(graph, std::move(work));
}

}  // namespace ucudnn::simulator
