// The process's descriptors of cuDNN's graph API, and what is noted of each.
#pragma once

#include "graph/descriptions.hpp"
#include "support/fork.hpp"

#if UCUDNN_HAS_ENGINES

#include <array>
#include <unordered_map>

namespace ucudnn {

/// Thread-safe.
class TrackedDescriptors final : public Descriptions {
 public:
  Description* find(cudnnBackendDescriptor_t descriptor) const override;
  template <typename Kind>
  Kind* findKind(cudnnBackendDescriptor_t descriptor) const {
    return asKind<Kind>(find(descriptor));
  }
  /// Made by cuDNN; one that had its address before is gone. Throws std::bad_alloc.
  void add(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type);
  void remove(cudnnBackendDescriptor_t descriptor) noexcept;

 private:
  /// Calls make and end descriptors: threads mustn't wait for each other there.
  static constexpr std::size_t kShards = 16;
  struct Shard {
    mutable ForkMutex mutex;
    std::unordered_map<cudnnBackendDescriptor_t, std::unique_ptr<Description>> known;
  };
  Shard& shardOf(cudnnBackendDescriptor_t descriptor) const noexcept;

  mutable std::array<Shard, kShards> shards_;
};

/// Never destroyed: descriptors are used in static destructors.
TrackedDescriptors& trackedDescriptors() noexcept;

}  // namespace ucudnn

#endif
