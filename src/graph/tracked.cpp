#include "graph/tracked.hpp"

#if UCUDNN_HAS_ENGINES

namespace ucudnn {

TrackedDescriptors::Shard& TrackedDescriptors::shardOf(
    cudnnBackendDescriptor_t descriptor) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(descriptor);
  return shards_[(address >> 4 ^ address >> 12) % kShards];
}

Description* TrackedDescriptors::find(cudnnBackendDescriptor_t descriptor) const {
  const Shard& shard = shardOf(descriptor);
  const std::lock_guard lock(shard.mutex);
  const auto place = shard.known.find(descriptor);
  return place != shard.known.end() ? place->second.get() : nullptr;
}

void TrackedDescriptors::add(cudnnBackendDescriptor_t descriptor,
                             cudnnBackendDescriptorType_t type) {
  auto made = describe(type);
  if (made == nullptr) return remove(descriptor);
  Shard& shard = shardOf(descriptor);
  const std::lock_guard lock(shard.mutex);
  shard.known[descriptor] = std::move(made);
}

void TrackedDescriptors::remove(cudnnBackendDescriptor_t descriptor) noexcept {
  Shard& shard = shardOf(descriptor);
  std::unique_ptr<Description> removed;  // destroyed without the lock
  const std::lock_guard lock(shard.mutex);
  const auto place = shard.known.find(descriptor);
  if (place == shard.known.end()) return;
  removed = std::move(place->second);
  shard.known.erase(place);
}

TrackedDescriptors& trackedDescriptors() noexcept {
  static TrackedDescriptors& all = *new TrackedDescriptors;
  return all;
}

}  // namespace ucudnn

#endif
