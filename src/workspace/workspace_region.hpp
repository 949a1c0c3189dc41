// A piece of the device memory that μ-cuDNN owns. Orders its uses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/call_stream.hpp"
#include "cuda/owners.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A segment (`divide`), an arena (`share`) or the workspace of one capture. Calls use it one after
/// another, whatever their streams: each turn waits, on the device, for the last use on another
/// stream. Thread-safe.
///
/// 1. Turns exclude each other: cuDNN's call for one micro-batch enqueues several kernels. Another
///    thread's kernels must not come between them, not even on the same stream.
/// 2. A retired region is not used any more. The next user of its bytes waits for its last use.
/// 3. Only its own capture uses a capture's region, because the graph uses it whenever it is
///    launched. A capture uses no other region.
class WorkspaceRegion {
 public:
  enum class Turn {
    kReady,        ///< use it, then call `end`
    kRetired,      ///< ask the owner for another
    kUnavailable,  ///< CUDA refuses to order the use after the earlier ones
  };

  /// `uses` counts the uses of all regions; null for a capture's region. `predecessors` are retired
  /// regions that share bytes with this one. Makes an event on the current device. Throws Error.
  WorkspaceRegion(char* memory,
                  std::size_t bytes,
                  std::atomic<std::uint64_t>* uses,
                  std::uint64_t capture = 0,
                  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors = {});

  char* memory() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool overlaps(const char* memory, std::size_t bytes) const noexcept {
    return memory < memory_ + bytes_ && memory_ < memory + bytes;
  }

  /// Takes the turn. `lock` holds it until it is over.
  Turn begin(const CallStream& stream, std::unique_lock<LongForkMutex>& lock) noexcept;
  /// To be called after the work has been enqueued. REQUIRES: the turn.
  void end(const CallStream& stream) noexcept;

  /// Takes it out of use; waits for no device.
  void retire();
  /// Whether work on it may still be under way. REQUIRES: retired.
  bool isBusy() const noexcept;
  /// The number of its latest use, as counted in `uses`.
  std::uint64_t lastUse() const noexcept { return lastUse_.load(std::memory_order_relaxed); }

 private:
  bool waitForEarlierUses(const CallStream& stream) noexcept;

  char* const memory_;
  const std::size_t bytes_;
  std::atomic<std::uint64_t>* const uses_;  ///< null: a capture's
  const std::uint64_t capture_;             ///< 0: for calls outside captures
  const Event event_;
  std::atomic<std::uint64_t> lastUse_;

  mutable LongForkMutex mutex_;  ///< guards what follows
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors_;
  /// The id of the stream that `event_` was recorded on. 0 in a capture: streams look alike there.
  std::optional<std::uint64_t> lastStream_;
  bool retired_ = false;
};

}  // namespace ucudnn
