// The process's descriptors of cuDNN's graph API, and their descriptions.
#pragma once

#include "graph/descriptions.hpp"
#include "support/fork.hpp"

#if UCUDNN_HAS_ENGINES

#include <array>

namespace ucudnn {

/// Thread-safe. Every execution finds its descriptors, so `find` takes no lock, unless another
/// thread adds or removes one of the same shard meanwhile.
class TrackedDescriptors final : public Descriptions {
 public:
  Description* find(cudnnBackendDescriptor_t descriptor) const override;
  template <typename Kind>
  Kind* findKind(cudnnBackendDescriptor_t descriptor) const {
    return asKind<Kind>(find(descriptor));
  }
  /// cuDNN has made a descriptor; an earlier one at its address is gone. Throws std::bad_alloc.
  void add(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type);
  void remove(cudnnBackendDescriptor_t descriptor) noexcept;

 private:
  struct Slot {
    std::atomic<cudnnBackendDescriptor_t> descriptor{nullptr};  ///< null: free
    std::atomic<Description*> noted{nullptr};                   ///< owned
  };
  /// Open addressing with linear probing, at most half full; as many slots as a power of two.
  using Table = std::vector<Slot>;
  class Change;
  struct Shard {
    mutable ForkMutex mutex;  ///< whoever changes it holds this
    /// Odd while it is changed. If two reads give the same even version, everything read between
    /// them is valid: each store of a change releases, each load acquires.
    std::atomic<std::uint64_t> version{0};
    std::atomic<Table*> table{nullptr};          ///< the last of `tables`; null: there is none
    std::vector<std::unique_ptr<Table>> tables;  ///< others may still read in former ones
    std::size_t count = 0;
  };
  /// Calls make and destroy descriptors, where threads mustn't wait for each other.
  static constexpr std::size_t kShards = 16, kFewestSlots = 64;

  static std::size_t hashOf(cudnnBackendDescriptor_t descriptor) noexcept;
  static Slot* slotOf(Table* table, cudnnBackendDescriptor_t descriptor) noexcept;
  static void makeRoom(Shard& shard);
  Shard& shardOf(cudnnBackendDescriptor_t descriptor) const noexcept;

  mutable std::array<Shard, kShards> shards_;
};

/// Never destroyed: descriptors are used in static destructors.
TrackedDescriptors& trackedDescriptors() noexcept;

}  // namespace ucudnn

#endif
