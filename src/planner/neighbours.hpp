// Problems that differ only in the image's size: one's fastest kernel mostly is the next one's,
// too.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/knowledge.hpp"

namespace ucudnn {

/// The answered problems, by all but their image's size. Not thread-safe.
class Neighbours {
 public:
  /// Adds a problem whose questions have an answer. `key` has batch 0. Ignored if its tensors have
  /// gaps.
  void add(const KnownKey& key);
  /// Calls `look(const KnownKey&)` for problems of another image size, the nearest first, until it
  /// returns true.
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

/// The kernels of a neighbour's plans within the limit, those of the plan with the most workspace
/// first. No more than are timed quickly.
std::vector<Kernel> kernelsOfPlans(const KnownQuestion& asked, std::size_t limitBytes);

}  // namespace ucudnn
