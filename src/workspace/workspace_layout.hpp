// Cuts a total into regions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/bounded_map.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// One allocation, cut into regions: arenas of equal size that streams use in turn, or a segment
/// for each convolution. A new layout takes effect at once: the next user of some bytes waits, on
/// the device, for their last use in the old layout. Not thread-safe, except where noted.
class WorkspaceLayout {
 public:
  /// `uses` counts the uses of all regions.
  WorkspaceLayout(int device, std::size_t totalBytes, std::atomic<std::uint64_t>& uses);
  ~WorkspaceLayout();
  WorkspaceLayout(const WorkspaceLayout&) = delete;
  WorkspaceLayout& operator=(const WorkspaceLayout&) = delete;

  /// False if the memory could not be had. Thread-safe.
  bool works() const noexcept { return !failed_.load(std::memory_order_acquire); }
  /// Allocates the total, once. Returns false, with one warning, if it can't. REQUIRES: no capture.
  bool requireMemory();

  std::size_t totalBytes() const noexcept { return totalBytes_; }
  std::size_t arenaBytes(std::size_t arenas) const noexcept;
  std::size_t leftBytes() const noexcept { return totalBytes_ - usedBytes_; }
  /// How many layouts there have been.
  std::uint64_t number() const noexcept { return number_; }
  bool isEmpty() const noexcept { return regions_.empty(); }
  bool isDivided() const noexcept { return divided_; }

  /// Streams of one group in `groupOf` get the same arena. Others get the arena whose last use is
  /// the longest ago. The host waits for nothing.
  void layOutArenas(std::size_t arenas, const std::map<std::uint64_t, std::size_t>& groupOf = {});
  /// Begins a layout of segments, which takeRegion takes.
  void layOutSegments();
  /// REQUIRES: bytes <= leftBytes().
  std::shared_ptr<WorkspaceRegion> takeRegion(std::size_t bytes);

  /// Null if there is none. REQUIRES: the layout has arenas.
  std::shared_ptr<WorkspaceRegion> arenaOf(std::uint64_t stream);
  /// Null if there is none.
  std::shared_ptr<WorkspaceRegion> largest() const;

 private:
  void clear();

  const int device_;
  const std::size_t totalBytes_;  ///< rounded down, so that the allocator doesn't round it up
  std::atomic<std::uint64_t>& uses_;
  std::atomic<bool> failed_{false};
  char* memory_ = nullptr;
  std::size_t usedBytes_ = 0;  ///< taken by the regions, from the total's beginning
  std::vector<std::shared_ptr<WorkspaceRegion>> regions_;
  std::vector<std::shared_ptr<WorkspaceRegion>> busy_;  ///< retired, maybe still at work
  BoundedMap<std::uint64_t, std::size_t, std::hash<std::uint64_t>> arenas_{256};  ///< by stream
  bool divided_ = false;
  std::uint64_t number_ = 0;
};

}  // namespace ucudnn
