// Problems that differ in the image's size alone: what is fastest for one mostly is for the next.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/knowledge.hpp"

namespace ucudnn {

/// The problems that have been answered, by what neighbours have in common. Not thread-safe.
class Neighbours {
 public:
  /// The problem's questions have an answer. `key`: at batch 0. Nothing, where its tensors have
  /// gaps.
  void add(const KnownKey& key);
  /// Calls `look(const KnownKey&)` for those of another image size, the nearest first, until it
  /// says true.
  template <typename Look>
  void forEach(const KnownKey& key, Look look) const {
    for (const KnownKey& other : nearest(key))
      if (look(other)) return;
  }

 private:
  std::vector<KnownKey> nearest(const KnownKey& key) const;

  static constexpr std::size_t kMostForms = 1024;
  BoundedMap<KnownKey, std::vector<KnownKey>, KnownKey::Hash> byForm_{kMostForms};
};

/// The kernels of a neighbour's plans within the limit, the plan with most workspace first; no more
/// than are quickly timed.
std::vector<Kernel> kernelsOfPlans(const KnownQuestion& asked, std::size_t limitBytes);

}  // namespace ucudnn
