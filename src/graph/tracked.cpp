#include "graph/tracked.hpp"

#if UCUDNN_HAS_ENGINES

namespace ucudnn {

/// A change of a shard whose lock is held: readers reject what they read meanwhile.
class TrackedDescriptors::Change {
 public:
  explicit Change(Shard& shard) noexcept : shard_(shard) { step(); }
  ~Change() { step(); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  static void put(Slot& slot, cudnnBackendDescriptor_t descriptor, Description* noted) noexcept {
    slot.noted.store(noted, std::memory_order_release);
    slot.descriptor.store(descriptor, std::memory_order_release);
  }

 private:
  void step() noexcept {
    const std::uint64_t before = shard_.version.load(std::memory_order_relaxed);
    shard_.version.store(before + 1, std::memory_order_release);
  }
  Shard& shard_;
};

std::size_t TrackedDescriptors::hashOf(cudnnBackendDescriptor_t descriptor) noexcept {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return reinterpret_cast<std::uintptr_t>(descriptor) * kMultiplier >> 32;
}

TrackedDescriptors::Shard& TrackedDescriptors::shardOf(
    cudnnBackendDescriptor_t descriptor) const noexcept {
  return shards_[hashOf(descriptor) % kShards];
}

/// The descriptor's slot, or the free one where it would be put. Null: there is no table, or
/// another thread changes it and neither was found.
TrackedDescriptors::Slot* TrackedDescriptors::slotOf(Table* table,
                                                     cudnnBackendDescriptor_t descriptor) noexcept {
  const std::size_t size = table != nullptr ? table->size() : 0;
  for (std::size_t i = 0; i < size; ++i) {
    Slot& slot = (*table)[(hashOf(descriptor) / kShards + i) & (size - 1)];
    const auto* const there = slot.descriptor.load(std::memory_order_acquire);
    if (there == descriptor || there == nullptr) return &slot;
  }
  return nullptr;
}

Description* TrackedDescriptors::find(cudnnBackendDescriptor_t descriptor) const {
  const Shard& shard = shardOf(descriptor);
  const auto look = [&]() -> Description* {
    Slot* const slot = slotOf(shard.table.load(std::memory_order_acquire), descriptor);
    return slot != nullptr ? slot->noted.load(std::memory_order_acquire) : nullptr;
  };
  const std::uint64_t version = shard.version.load(std::memory_order_acquire);
  Description* const found = look();
  if (version % 2 == 0 && shard.version.load(std::memory_order_acquire) == version) return found;
  const std::lock_guard lock(shard.mutex);
  return look();
}

void TrackedDescriptors::makeRoom(Shard& shard) {
  Table* const former = shard.table.load(std::memory_order_relaxed);
  const std::size_t size = former != nullptr ? former->size() : 0;
  if (2 * (shard.count + 1) <= size) return;
  auto made = std::make_unique<Table>(size > 0 ? 2 * size : kFewestSlots);
  for (std::size_t i = 0; i < size; ++i)
    if (auto* const descriptor = (*former)[i].descriptor.load(std::memory_order_relaxed))
      Change::put(*slotOf(made.get(), descriptor), descriptor, (*former)[i].noted);
  shard.tables.push_back(std::move(made));
  shard.table.store(shard.tables.back().get(), std::memory_order_release);
}

void TrackedDescriptors::add(cudnnBackendDescriptor_t descriptor,
                             cudnnBackendDescriptorType_t type) {
  auto made = describe(type);
  if (made == nullptr) return remove(descriptor);
  Shard& shard = shardOf(descriptor);
  std::unique_ptr<Description> former;  // destroyed without the lock
  const std::lock_guard lock(shard.mutex);
  const Change change(shard);
  makeRoom(shard);
  Slot& slot = *slotOf(shard.table, descriptor);
  former.reset(slot.noted);
  if (former == nullptr) ++shard.count;
  Change::put(slot, descriptor, made.release());
}

void TrackedDescriptors::remove(cudnnBackendDescriptor_t descriptor) noexcept {
  Shard& shard = shardOf(descriptor);
  std::unique_ptr<Description> removed;  // destroyed without the lock
  const std::lock_guard lock(shard.mutex);
  Slot* const gap = slotOf(shard.table, descriptor);
  if (gap == nullptr || gap->descriptor == nullptr) return;
  const Change change(shard);
  removed.reset(gap->noted);
  --shard.count;
  // Moves up the entries that were put further back because this slot was taken: a free slot ends
  // each search.
  Table& table = *shard.table;
  const std::size_t mask = table.size() - 1;
  auto hole = static_cast<std::size_t>(gap - table.data());
  for (std::size_t i = (hole + 1) & mask; table[i].descriptor != nullptr; i = (i + 1) & mask) {
    const std::size_t first = hashOf(table[i].descriptor) / kShards;
    if (((i - first) & mask) < ((i - hole) & mask)) continue;
    Change::put(table[hole], table[i].descriptor, table[i].noted);
    hole = i;
  }
  Change::put(table[hole], nullptr, nullptr);
}

TrackedDescriptors& trackedDescriptors() noexcept {
  static TrackedDescriptors& all = *new TrackedDescriptors;
  return all;
}

}  // namespace ucudnn

#endif
