// A piece of the device memory that μ-cuDNN owns: who may use it, and after whom.
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
///  1. Turns exclude each other: cuDNN's call for one micro-batch enqueues several kernels, and
///     another thread's must not come between them, not even on the same stream.
///  2. A retired region is used no more; whoever gets its bytes waits for its last use.
///  3. A capture's region is used by that capture alone, for the graph uses it whenever it is
///     launched; no other region is used in a capture.
class WorkspaceRegion {
 public:
  enum class Turn {
    kReady,        ///< use it, then call `end`
    kRetired,      ///< ask the owner for another
    kUnavailable,  ///< CUDA refuses to order the use after the earlier ones
  };

  /// `uses` counts the uses of all regions; null: of one capture. `predecessors` are retired
  /// regions with some of the same bytes. Makes an event on the current device. Throws Error.
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

  /// Takes the turn: `lock` holds until it is over.
  Turn begin(const CallStream& stream, std::unique_lock<LongForkMutex>& lock) noexcept;
  /// After the work has been enqueued. REQUIRES: the turn.
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
  const std::uint64_t capture_;             ///< 0: of calls that run at once
  const Event event_;
  std::atomic<std::uint64_t> lastUse_;

  mutable LongForkMutex mutex_;  ///< guards what follows
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors_;
  /// Its id; `event_` was recorded there. In a capture: 0, streams cannot be told apart.
  std::optional<std::uint64_t> lastStream_;
  bool retired_ = false;
};

}  // namespace ucudnn
