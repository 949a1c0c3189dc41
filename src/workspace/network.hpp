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
  bool deterministic = false;  ///< a call has asked for it
  bool adds = false;           ///< a call may have added to its output
  bool called = false;
  bool placed = false;     ///< known to the layout
  std::uint64_t seen = 0;  ///< the latest use when it was looked up
  /// Nothing deterministic fits what it has, which has been warned of.
  bool warned = false;
  std::shared_ptr<const Plan> plan;         ///< the latest
  std::shared_ptr<WorkspaceRegion> region;  ///< of its own, or the largest, where they are divided
  std::string logged;                       ///< its latest line of the placement log

  /// Only the thread that divides knows it. Of other calls it is another one.
  struct Front {
    bool deterministic = false;
    CallKind calls = CallKind::kAdding;
    std::vector<Configuration> points;  ///< none: it takes no part
  };
  std::optional<Front> front;
};

/// Not thread-safe.
class Network {
 public:
  using Convolutions = std::vector<std::shared_ptr<NetworkConvolution>>;

  /// Adds it where it is new. What has been asked of it once holds from then on.
  const std::shared_ptr<NetworkConvolution>& find(
      const Problem& problem, LayerId layer, bool deterministic, CallKind calls, std::uint64_t now);
  /// In network order: as they came.
  const Convolutions& all() const noexcept { return convolutions_; }
  /// None is placed any more.
  void displace() noexcept;
  /// Those that have not been looked up since use number `before`.
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
