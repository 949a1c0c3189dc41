// A device's part in calls on host tensors: a lane for tiles, pinned buffers for pageable memory,
// and the rates of the link.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "cuda/owners.hpp"
#include "host/division.hpp"
#include "host/lane.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Pinned host memory. Throws OutOfMemory.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes);
  char* get() const noexcept { return static_cast<char*>(memory_.get()); }

 private:
  struct Deleter {
    void operator()(void* memory) const noexcept { static_cast<void>(cudaFreeHost(memory)); }
  };
  std::unique_ptr<void, Deleter> memory_;
};

/// Copies of pageable memory go through pinned buffers that take turns.
class Bounce {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  static constexpr std::size_t kBuffers = 2;

  Bounce();

  /// Enqueues a copy to the device. Waits until a buffer is free. Throws Error.
  void toDevice(char* slot, const char* tensor, const Rows& rows, cudaStream_t stream);
  /// Enqueues a copy to the host, which ends in a later call, or in `finish`. Throws Error.
  void toHost(char* tensor, const char* slot, const Rows& rows, cudaStream_t stream);
  /// Waits for copies to the host, and ends them. Throws Error.
  void finish();
  /// Forgets copies to the host, after a failure.
  void forget() noexcept;

  char* buffer(std::size_t i) const noexcept { return turns_[i].buffer->get(); }

 private:
  struct Turn {
    std::unique_ptr<PinnedBuffer> buffer;
    Event event;
    char* tensor = nullptr;  ///< where the buffer's rows go; null: nowhere
    Rows rows{};
  };
  Turn& next();
  static void finish(Turn& turn);

  std::vector<Turn> turns_;
  std::size_t last_ = 0;
};

/// Belongs to one device; its handles' calls take turns. Whoever uses anything of it holds
/// the lock.
class Staging {
 public:
  explicit Staging(int device) : device_(device) {}
  ~Staging() { freeGoneLanes(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  LongForkMutex& mutex() noexcept { return mutex_; }

  /// Makes lane and buffers, and measures the link, when called first. Throws Error.
  void prepare();
  /// Of calls that are not captured. REQUIRES: it is prepared.
  Lane& lane() noexcept { return *lane_; }

  /// What `granted` bytes leave tiles beside what clients have, and so many others. Throws Error.
  DeviceBudget budget(std::size_t granted, std::size_t otherBytes) const;
  /// Memory for a client: of the device, if that leaves tiles a quarter of `granted` bytes, else
  /// pinned memory of the host. Throws OutOfMemory.
  void* allocate(std::size_t bytes, std::size_t granted);
  /// Frees it. Throws Error.
  void release(void* memory);

  const Link& link() const noexcept { return link_; }
  Bounce& bounceIn() noexcept { return *bounceIn_; }
  Bounce& bounceOut() noexcept { return *bounceOut_; }

 private:
  void measureLink(const Lane& lane);
  std::size_t arenaBytes() const noexcept { return lane_ ? lane_->arenaBytes() : 0; }

  const int device_;
  LongForkMutex mutex_;
  std::unique_ptr<Lane> lane_;  ///< null: not prepared
  std::unique_ptr<Bounce> bounceIn_, bounceOut_;
  std::map<void*, std::size_t> clients_;  ///< device memory of clients
  std::size_t clientBytes_ = 0;
  Link link_;
};

/// The device's, made for the first who asks, and destroyed with the last. Throws std::bad_alloc.
std::shared_ptr<Staging> stagingOf(int device);

}  // namespace ucudnn
