// Memory at an address that stays, whose contents may move between the device and the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace ucudnn {

/// Where a block of memory is; on the host it is pinned.
enum class Home { kDevice, kHost };

/// One block, of the device that is current when it is made. By the driver's virtual memory
/// management: an address range of its own, to which memory of either kind is mapped. Not
/// thread-safe.
class MovableMemory {
 public:
  /// Whether the current device and its driver have such memory.
  static bool isSupported() noexcept;

  /// Throws OutOfMemory, Error. REQUIRES: it is supported.
  MovableMemory(std::size_t bytes, Home home);
  ~MovableMemory();
  MovableMemory(const MovableMemory&) = delete;
  MovableMemory& operator=(const MovableMemory&) = delete;

  void* get() const noexcept;
  /// As they are taken, rounded up.
  std::size_t bytes() const noexcept { return bytes_; }
  Home home() const noexcept { return home_; }

  /// Moves the contents, by a copy on `stream`, which the host waits for. Throws OutOfMemory,
  /// Error: then they are where they were. REQUIRES: nothing uses the memory.
  void moveTo(Home home, cudaStream_t stream);

 private:
  class Physical;
  class Range;

  std::size_t bytes_;
  Home home_;
  std::unique_ptr<Range> range_;
  std::unique_ptr<Physical> physical_;
};

/// Where the movable block is that holds the address; empty: none does. Thread-safe.
std::optional<Home> homeOf(const void* pointer);

}  // namespace ucudnn
