// Memory for clients' tensors: on the device or pinned on the host, at addresses that stay.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cuda/movable_memory.hpp"
#include "cuda/owners.hpp"
#include "host/schedule.hpp"

namespace ucudnn {

/// A call as the choice of places sees it.
struct NotedCall {
  struct Use {
    const void* pointer;
    std::size_t bytes;
    bool isRead, isWritten;
  };
  std::size_t key = 0;      ///< equal for calls of one problem with the same pointers
  std::uint64_t owner = 0;  ///< whose call it is
  double kernelMs = 0;
  std::vector<Use> uses;
};

/// Of one device; whoever uses it holds its staging's lock. Blocks move once, when the calls of one
/// owner come round a second time; each allocation after that begins anew. They don't move if
/// calls of several owners use them, or a graph does.
class ClientMemory {
 public:
  ClientMemory() = default;
  /// Clients keep what they have not released: `releaseOrphan` frees it.
  ~ClientMemory();
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  /// Frees memory whose ClientMemory has gone, or any that CUDA gave. Waits for the device. Throws
  /// Error.
  static void releaseOrphan(void* memory);

  /// Throws OutOfMemory, Error.
  void* allocate(std::size_t bytes, Home home);
  /// Waits for the device. Throws Error.
  void release(void* memory);
  std::size_t bytesOnDevice() const noexcept { return bytesOnDevice_; }

  /// Whether blocks may yet move. Thread-safe.
  bool mayMove() const noexcept { return mayMove_.load(std::memory_order_acquire); }
  void fix() noexcept { mayMove_.store(false, std::memory_order_release); }
  /// Notes a call. Returns whether the calls have come round. REQUIRES: blocks may yet move.
  bool note(NotedCall call);
  /// Moves blocks to where they save most time, and fixes them. A block that can't be moved stays
  /// where it is. Returns how many have moved. REQUIRES: the calls have come round; nothing uses
  /// the blocks.
  std::size_t move(std::size_t deviceBytes, const Link& link, cudaStream_t stream);

 private:
  void beginAnew() noexcept;
  std::vector<bool> choose(const std::vector<MovableMemory*>& blocks,
                           std::size_t deviceBytes,
                           const Link& link) const;

  struct Fixed {
    std::size_t bytes;
    Home home;
  };
  std::optional<bool> isSupported_;
  std::map<void*, Fixed> others_;  ///< small blocks, or all
  std::map<const void*, std::unique_ptr<MovableMemory>> movable_;
  std::size_t bytesOnDevice_ = 0;

  std::vector<NotedCall> calls_;                          ///< since the last allocation
  std::unordered_map<std::size_t, std::size_t> numbers_;  ///< of calls, by their keys
  std::size_t first_ = 0;                                 ///< of the calls that came round
  std::atomic<bool> mayMove_{false};
};

}  // namespace ucudnn
