// Which of the client's threads use a device: what must not happen beside another thread's calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "support/fork.hpp"

namespace ucudnn {

/// While a stream of a device is captured, cudaDeviceSynchronize fails in every thread, in each
/// mode, and voids the capture; cuDNN, which is in the midst of it, then crashes (seen on an H200,
/// CUDA 13.0). Nothing else of another thread's does, but the driver's like of it. A program that
/// comes by libucudnn_preload.so is captured only if UCUDNN_GRAPH_MEMORY is set: then we are told
/// of each such wait by that name (beginWait), and it comes behind our capture. Elsewhere we
/// capture only on a device that one thread alone uses: no other has called us for kQuiet, and one
/// that calls us meanwhile waits until the capture has ended. Of a thread that never calls us we
/// know nothing then. Thread-safe.
class CallingThreads {
 public:
  /// Of a client that makes handles: whether we are told of each of its waits, for whatever device.
  /// We must be told of all clients'.
  static void knowWaits(bool known) noexcept;

  /// A call of the client's, on this thread. What tells this thread from all others that live.
  std::uintptr_t note() noexcept;

  /// Whether this thread could begin a Capture now.
  bool mayCapture() noexcept;

  /// From here to its end no call of another thread's gets past `note`.
  class Capture {
   public:
    explicit Capture(CallingThreads& threads);
    /// Whether this thread may capture.
    bool isAllowed() const noexcept { return allowed_; }

   private:
    std::unique_lock<LongForkMutex> lock_;
    bool allowed_;
  };

  /// Around a wait of the program's for the whole device: the first waits for a capture's end, and
  /// nothing is captured before the second.
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
