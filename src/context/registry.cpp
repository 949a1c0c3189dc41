#include "context/registry.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

struct Registry {
  SharedForkMutex mutex;  ///< guards `contexts` and `limit`
  /// Null if adoption failed.
  std::unordered_map<cudnnHandle_t, std::shared_ptr<Context>> contexts;
  /// Changes when a handle is forgotten, or all are limited. It voids what threads remember.
  std::atomic<std::uint64_t> generation{1};
  WorkspaceLimit limit;
  std::atomic<bool> isUnmodified{false};  ///< the program, or a part of it
};

Registry& registry() noexcept {
  static Registry& instance = *new Registry;
  return instance;
}

/// The handle that this thread asked for last.
struct LastContext {
  cudnnHandle_t handle;
  Context* context;
  std::uint64_t generation;
};
thread_local LastContext lastContext{nullptr, nullptr, 0};

std::shared_ptr<Context> adopt(cudnnHandle_t handle) noexcept {
  try {
    int device = 0;
    UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
    return std::make_shared<Context>(handle, device, environmentSettings(), Origin::kAdopted);
  } catch (const BadSetting& error) {
    logError("a handle is left to cuDNN: {}", error.what());
    return nullptr;
  } catch (const std::exception& error) {
    logInfo("a handle is left to cuDNN: {}", error.what());
    return nullptr;
  }
}

/// Empty if it has no context. Null if it could not be adopted.
std::optional<std::shared_ptr<Context>> findKnown(cudnnHandle_t handle) {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  const auto known = all.contexts.find(handle);
  return known != all.contexts.end() ? std::optional(known->second) : std::nullopt;
}

Context* findOrAdopt(cudnnHandle_t handle) {
  if (const auto known = findKnown(handle)) return known->get();
  Registry& all = registry();
  std::shared_ptr<Context> adopted = adopt(handle);
  const std::unique_lock lock(all.mutex);
  return all.contexts.try_emplace(handle, std::move(adopted)).first->second.get();
}

/// Only a handle's user may use its context. So the limit reaches it here, and not where it is set.
Context* findLimited(cudnnHandle_t handle) {
  Context* const context = findOrAdopt(handle);
  if (context == nullptr) return nullptr;
  std::shared_lock lock(registry().mutex);
  const WorkspaceLimit limit = registry().limit;
  lock.unlock();
  context->follow(limit);
  return context;
}

}  // namespace

Context* contextOf(cudnnHandle_t handle) noexcept {
  if (handle == nullptr) return nullptr;
  const std::uint64_t generation = registry().generation.load(std::memory_order_acquire);
  try {
    if (lastContext.handle != handle || lastContext.generation != generation)
      lastContext = {handle, findLimited(handle), generation};
    if (lastContext.context != nullptr) lastContext.context->noteThread();
    return lastContext.context;
  } catch (const std::exception& error) {  // out of memory, or no lock to be had
    logInfo("a handle is left to cuDNN: {}", error.what());
    return nullptr;
  }
}

std::shared_ptr<Context> knownContextOf(cudnnHandle_t handle) noexcept {
  try {
    return findKnown(handle).value_or(nullptr);
  } catch (const std::exception&) {  // no lock to be had
    return nullptr;
  }
}

void addContext(cudnnHandle_t handle, Settings settings) {
  int device = 0;
  UCUDNN_CHECK_CUDA(cudaGetDevice(&device));
  auto context = std::make_shared<Context>(handle, device, std::move(settings), Origin::kCreated);
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.contexts[handle] = std::move(context);
  all.generation.fetch_add(1, std::memory_order_release);
}

void removeContext(cudnnHandle_t handle) noexcept {
  Registry& all = registry();
  std::shared_ptr<Context> removed;  // destroyed without the lock, because its graphs take a while
  {
    const std::unique_lock lock(all.mutex);
    if (const auto place = all.contexts.find(handle); place != all.contexts.end()) {
      removed = std::move(place->second);
      all.contexts.erase(place);
    }
    all.generation.fetch_add(1, std::memory_order_release);
  }
  if (removed != nullptr) removed->retire();
}

void limitWorkspaces(std::size_t bytes) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  all.limit = {bytes, all.limit.changes + 1};
  all.generation.fetch_add(1, std::memory_order_release);
}

std::size_t processWorkspaceLimit() {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  return all.limit.bytes;
}

std::optional<std::size_t> workspaceCapOn(int device) {
  std::vector<std::shared_ptr<Context>> contexts;
  {
    const std::shared_lock lock(registry().mutex);
    for (const auto& [handle, context] : registry().contexts)
      if (context != nullptr) contexts.push_back(context);
  }
  std::optional<std::size_t> least;
  for (const auto& context : contexts) {
    const std::shared_ptr<const Snapshot> now = context->snapshot();
    if (now->device == device) least = std::min(least.value_or(SIZE_MAX), now->capped(SIZE_MAX));
  }
  return least;
}

void serveUnmodified() noexcept {
  registry().isUnmodified.store(true, std::memory_order_release);
}

Settings environmentSettings() {
  Settings settings = settingsFromEnvironment();
  const bool isUnmodified = registry().isUnmodified.load(std::memory_order_acquire);
  settings.isUnmodified = isUnmodified;
  if (isUnmodified && !settings.graphMemoryGiven) settings.graphMemoryBytes = 0;
  return settings;
}

}  // namespace ucudnn
