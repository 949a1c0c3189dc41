// A piece of the device memory that μ-cuDNN owns: who may use it, and after whom.
#pragma once

#include <cudnn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/owners.hpp"

namespace ucudnn {

/// The stream of a call. The id is never used for another stream, as the handle may be.
struct CallStream {
  cudaStream_t stream = nullptr;
  std::uint64_t id = 0;
  bool capturing = false;
};

/// Asks a handle for its stream. Throws Error.
CallStream streamOf(cudnnHandle_t handle);

/// A segment (`divide`) or an arena (`share`). Calls use it one after another, whatever their
/// streams: each turn waits, on the device, for the last use on another stream. Thread-safe.
///
///  1. Turns exclude each other: cuDNN's call for one micro-batch enqueues several kernels, and
///     another thread's must not come between them, not even on the same stream.
///  2. A retired region is used no more; whoever gets its bytes waits for its last use.
///  3. A region that was used in a stream capture is bound to that stream, for the graph uses it
///     whenever it is launched; it is never retired.
class WorkspaceRegion {
 public:
  enum class Turn {
    kReady,        ///< use it, then call `end`
    kRetired,      ///< ask the owner for another
    kUnavailable,  ///< not now: bound to another stream, or a capture would have to wait
  };

  /// `uses` counts the uses of all regions. `predecessors` are retired regions with some of the
  /// same bytes. Makes an event on the current device. Throws Error.
  WorkspaceRegion(char* memory,
                  std::size_t bytes,
                  std::atomic<std::uint64_t>& uses,
                  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors);

  char* memory() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool overlaps(const char* memory, std::size_t bytes) const noexcept {
    return memory < memory_ + bytes_ && memory_ < memory + bytes;
  }

  /// Takes the turn: `lock` holds until it is over.
  Turn begin(const CallStream& stream, std::unique_lock<std::mutex>& lock) noexcept;
  /// After the work has been enqueued. REQUIRES: the turn.
  void end(const CallStream& stream) noexcept;

  /// Retires all of them, or, when one is bound, none. REQUIRES: one caller at a time.
  static bool retire(const std::vector<std::shared_ptr<WorkspaceRegion>>& regions);
  /// Whether work on it may still be under way. REQUIRES: retired, or the turn.
  bool isBusy() const noexcept;
  bool isBound() const;
  /// The number of its latest use, as counted in `uses`.
  std::uint64_t lastUse() const;

 private:
  bool waitForEarlierUses(const CallStream& stream) noexcept;
  bool isQuietFor(const CallStream& stream) const noexcept;

  char* const memory_;
  const std::size_t bytes_;
  std::atomic<std::uint64_t>& uses_;
  const Event event_;

  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors_;
  std::optional<std::uint64_t> lastStream_;  ///< id; `event_` was recorded there
  std::optional<std::uint64_t> boundTo_;
  std::uint64_t lastUse_;
  bool retired_ = false;
};

}  // namespace ucudnn
