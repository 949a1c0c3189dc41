// Objects of the program's that live as long as graphs that use them.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/api.hpp"
#include "simulator/runtime/machine.hpp"

using namespace ucudnn::simulator;

namespace ucudnn::simulator {

cudaUserObject_t Machine::createUserObject(UserObject object) {
  const std::lock_guard<std::mutex> lock(state_);
  countHandle("userObject", 1);
  return userObjects_.add(std::make_unique<UserObject>(object));
}

cudaError_t Machine::retain(cudaUserObject_t handle, std::size_t count) {
  const std::lock_guard<std::mutex> lock(state_);
  UserObject* const object = userObjects_.find(handle);
  if (object == nullptr || object->references == 0) return cudaErrorInvalidValue;
  object->references += count;
  return cudaSuccess;
}

cudaError_t Machine::release(cudaUserObject_t handle, std::size_t count) {
  const std::lock_guard<std::mutex> lock(state_);
  const UserObject* const object = userObjects_.find(handle);
  if (object == nullptr || object->references < count) return cudaErrorInvalidValue;
  drop({{handle, count}});
  return cudaSuccess;
}

cudaError_t Machine::retainIn(cudaGraph_t graphHandle,
                              cudaUserObject_t handle,
                              std::size_t count,
                              bool moves) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(graphHandle);
  UserObject* const object = userObjects_.find(handle);
  if (graph == nullptr || object == nullptr || object->references < (moves ? count : 1))
    return cudaErrorInvalidValue;
  graph->references[handle] += count;
  if (!moves) object->references += count;
  return cudaSuccess;
}

cudaError_t Machine::releaseIn(cudaGraph_t graphHandle,
                               cudaUserObject_t handle,
                               std::size_t count) {
  const std::lock_guard<std::mutex> lock(state_);
  Graph* const graph = graphs_.find(graphHandle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  const auto held = graph->references.find(handle);
  if (held == graph->references.end() || held->second < count) return cudaErrorInvalidValue;
  held->second -= count;
  if (held->second == 0) graph->references.erase(held);
  drop({{handle, count}});
  return cudaSuccess;
}

UserReferences Machine::copyOf(const UserReferences& references) {
  for (const auto& [handle, count] : references) userObjects_.find(handle)->references += count;
  return references;
}

void Machine::drop(UserReferences references, const Moment& when) {
  if (references.empty()) return;
  dropped_.emplace_back(when, std::move(references));
  anyDropped_.store(true, std::memory_order_release);
}

void Machine::runDestructors() {
  if (!anyDropped_.load(std::memory_order_acquire)) return;
  std::vector<UserObject> ended;
  {
    const std::lock_guard<std::mutex> lock(state_);
    const auto isOver = [&](const auto& dropped) {
      const Moment& when = dropped.first;
      return when.time <= thisThread().now || hostOrder_.covers(when.order);
    };
    const auto over = std::stable_partition(
        dropped_.begin(), dropped_.end(), [&](const auto& dropped) { return !isOver(dropped); });
    for (auto dropped = over; dropped != dropped_.end(); ++dropped)
      for (const auto& [handle, count] : dropped->second) {
        UserObject& object = *userObjects_.find(handle);
        object.references -= count;
        if (object.references > 0) continue;
        ended.push_back(object);
        userObjects_.erase(handle);
        countHandle("userObject", -1);
      }
    dropped_.erase(over, dropped_.end());
    anyDropped_.store(!dropped_.empty(), std::memory_order_release);
  }
  for (const UserObject& object : ended)
    execute(Work{"destructor", 0, [&] { object.destroy(object.pointer); }});
}

}  // namespace ucudnn::simulator

extern "C" {

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object,
                                 void* pointer,
                                 cudaHostFn_t destroy,
                                 unsigned int references,
                                 unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (object == nullptr || destroy == nullptr || references == 0 ||
      flags != cudaUserObjectNoDestructorSync)
    return finish(cudaErrorInvalidValue);
  *object = Machine::instance().createUserObject({pointer, destroy, references});
  return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().retain(object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return finish(
      enterDestroying(__func__, [&] { return Machine::instance().release(object, count); }));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph,
                                      cudaUserObject_t object,
                                      unsigned int count,
                                      unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (count == 0 || (flags & ~cudaGraphUserObjectMove) != 0) return finish(cudaErrorInvalidValue);
  const bool moves = flags == cudaGraphUserObjectMove;
  return finish(Machine::instance().retainIn(graph, object, count, moves));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph,
                                       cudaUserObject_t object,
                                       unsigned int count) {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().releaseIn(graph, object, count));
}

}  // extern "C"
