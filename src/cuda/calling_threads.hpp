// Knows which of the client's threads use a device, and keeps captures apart from other threads'
// calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "support/fork.hpp"

namespace ucudnn {

/// While a stream of a device is captured, cudaDeviceSynchronize fails in every thread and in each
/// mode, and voids the capture. cuDNN, which is in the midst of it, then crashes (seen on an H200,
/// CUDA 13.0). No other call of another thread does that, except the driver's equivalent. A program
/// that comes by libucudnn_preload.so is captured only if UCUDNN_GRAPH_MEMORY is set. Then we are
/// told of each such wait by that name (beginWait), and the wait comes behind our capture. For
/// other programs we capture only on a device that a single thread uses: no other thread has called
/// us for kQuiet, and one that calls us meanwhile waits until the capture has ended. We don't know
/// of threads that never call us. Thread-safe.
class CallingThreads {
 public:
  /// Called for each client that makes handles: whether we are told of all its waits, for any
  /// device. It counts only if we are told of the waits of all clients.
  static void knowWaits(bool known) noexcept;

  /// Notes a call of the client's on this thread. Returns a number that tells this thread from all
  /// others that live.
  std::uintptr_t note() noexcept;

  /// Whether this thread could begin a Capture now.
  bool mayCapture() noexcept;

  /// While it lives, no call of another thread gets past `note`.
  class Capture {
   public:
    explicit Capture(CallingThreads& threads);
    /// Whether this thread may capture.
    bool isAllowed() const noexcept { return allowed_; }

   private:
    std::unique_lock<LongForkMutex> lock_;
    bool allowed_;
  };

  /// Called around a wait of the program for the whole device. beginWait waits until a capture has
  /// ended; nothing is captured until endWait.
  void beginWait() noexcept;
  void endWait() noexcept;

  /// In a forked child: it has none of the threads that were in a capture or a wait.
  void startAnew() noexcept;

  static constexpr std::chrono::seconds kQuiet{10};

 private:
  using Clock = std::chrono::steady_clock;

  /// REQUIRES: the lock.
  bool isAllowed() const noexcept;

  std::atomic<std::uintptr_t> last_{0};  ///< the thread that called last; 0: none has
  LongForkMutex mutex_;                  ///< guards what follows, and captures
  Clock::time_point changedAt_ = Clock::time_point::min();  ///< from one thread to another
  int waits_ = 0;                                           ///< that have begun and not ended
};

/// The device's. Throws std::bad_alloc.
CallingThreads& callingThreads(int device);

}  // namespace ucudnn
