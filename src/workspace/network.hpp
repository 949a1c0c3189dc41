// The convolutions of a network that shares a total.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimizer/configuration.hpp"
#include "planner/request.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// A layer of the client's network, or -1 (ucudnnLayerId_t).
using LayerId = long long;

struct NetworkConvolution {
  Problem problem;
  LayerId layer = -1;
  bool deterministic = false;  ///< a call has asked for determinism
  bool adds = false;           ///< a call may have added to its output
  bool called = false;
  bool placed = false;     ///< known to the layout
  std::uint64_t seen = 0;  ///< number of the latest use when it was looked up
  /// A warning has said that nothing deterministic fits its workspace.
  bool warned = false;
  std::shared_ptr<const Plan> plan;         ///< the latest plan
  std::shared_ptr<WorkspaceRegion> region;  ///< in a division: its own, or the largest
  std::string logged;                       ///< its latest line of the placement log

  /// Only the thread that divides uses it. Other terms of the request need another front.
  struct Front {
    bool deterministic = false;
    CallKind calls = CallKind::kAdding;
    std::vector<Configuration> points;  ///< empty: it takes no part in the division
  };
  std::optional<Front> front;
};

/// Not thread-safe.
class Network {
 public:
  using Convolutions = std::vector<std::shared_ptr<NetworkConvolution>>;

  /// Adds a new convolution. Determinism and adding, once asked for, hold from then on.
  const std::shared_ptr<NetworkConvolution>& find(
      const Problem& problem, LayerId layer, bool deterministic, CallKind calls, std::uint64_t now);
  /// In the order in which they came.
  const Convolutions& all() const noexcept { return convolutions_; }
  /// Takes all of them out of the layout.
  void displace() noexcept;
  /// Forgets those that have not been looked up since use number `before`.
  void forgetIdle(std::uint64_t before);

 private:
  struct Key {
    Problem problem;
    LayerId layer;
    bool operator==(const Key& other) const noexcept {
      return layer == other.layer && problem == other.problem;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return key.problem.hash() ^ (static_cast<std::size_t>(key.layer) * 0x9E3779B97F4A7C15u);
    }
  };

  std::unordered_map<Key, std::shared_ptr<NetworkConvolution>, Hash> byKey_;
  Convolutions convolutions_;
};

}  // namespace ucudnn
