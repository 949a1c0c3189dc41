// The workspace of captured work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "context/workspace_key.hpp"
#include "context/workspace_region.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A graph uses its workspace whenever it is launched, which nobody sees: so each capture has a
/// region of its own, apart from the total. It is freed when the client says that the graphs of its
/// network are launched no more, or with the last handle of the process, whatever its settings.
/// Thread-safe.
class CapturedMemory {
 public:
  /// Null: the capture has none.
  std::shared_ptr<WorkspaceRegion> find(const WorkspaceKey& network, std::uint64_t capture) const;

  /// Allocates in the middle of a capture, which stays valid. Null, with one warning: no memory, or
  /// kMostCaptures have a region already.
  std::shared_ptr<WorkspaceRegion> allocate(const WorkspaceKey& network,
                                            std::uint64_t capture,
                                            std::size_t bytes);

  /// REQUIRES: no graph that the network's handles have captured is launched any more, and none of
  /// its streams is being captured.
  void release(const WorkspaceKey& network);

  /// For each network. A program that captures anew all the time would take all memory.
  static constexpr std::size_t kMostCaptures = 16;

 private:
  using Regions = std::map<std::uint64_t, std::shared_ptr<WorkspaceRegion>>;

  void warnOnce(const std::string& message);

  mutable ForkMutex mutex_;  ///< guards what follows
  bool warned_ = false;
  std::map<WorkspaceKey, Regions> regions_;
};

/// The process's, for as long as one handle holds it. Throws std::bad_alloc.
std::shared_ptr<CapturedMemory> capturedMemory();

}  // namespace ucudnn
