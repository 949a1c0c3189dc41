// The workspace of captured work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "support/fork.hpp"
#include "workspace/workspace_key.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// A graph uses its workspace whenever it is launched, and nobody sees that. So each capture has a
/// region of its own, apart from the total. It is freed when its graph has gone, with all that was
/// instantiated from it; when the client says that the graphs of its network are not launched any
/// more; or with the last handle of the process, whatever its settings. CUDA tells us that a graph
/// has gone at a place that may free nothing, so one of the next calls frees the region.
/// Thread-safe.
class CapturedMemory {
 public:
  /// Null if the capture has none.
  std::shared_ptr<WorkspaceRegion> find(const WorkspaceKey& network, std::uint64_t capture) const;

  /// Allocates in the middle of a capture, which stays valid. Null, with one warning, if there is
  /// no memory, or if kMostCaptures have a region already.
  std::shared_ptr<WorkspaceRegion> allocate(const WorkspaceKey& network,
                                            const CallStream& stream,
                                            std::size_t bytes);

  /// Frees a network's regions. REQUIRES: no graph that the network's handles have captured is
  /// launched any more, and none of its streams is being captured.
  void release(const WorkspaceKey& network);

  /// Frees the regions, of all networks, whose graphs have gone. Waits for the device if there are
  /// any.
  void freeGone() noexcept;
  /// How many graphs with a region have gone since the process began.
  static std::uint64_t gone() noexcept;

  /// Limit for each network: a program that keeps ever more graphs would take all memory.
  static constexpr std::size_t kMostCaptures = 16;

 private:
  struct Captured {
    std::shared_ptr<WorkspaceRegion> region;
    std::shared_ptr<const std::atomic<bool>> gone;
  };
  using Regions = std::map<std::uint64_t, Captured>;

  void warnOnce(const std::string& message);

  mutable ForkMutex mutex_;  ///< guards what follows
  bool warned_ = false;
  std::map<WorkspaceKey, Regions> regions_;
  std::uint64_t freed_ = 0;  ///< value of gone() when such regions were freed last
};

/// The process's memory of captures. It lives as long as one handle holds it. Throws
/// std::bad_alloc.
std::shared_ptr<CapturedMemory> capturedMemory();

}  // namespace ucudnn
