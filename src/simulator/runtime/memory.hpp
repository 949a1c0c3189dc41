// Device and pinned memory: ordinary memory of this process with guard zones around it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

enum class MemoryKind { kDevice, kHost, kRegistered, kManaged };

/// A live allocation; `kRegistered` is the caller's own memory, without guard zones.
struct Block {
  char* base;
  std::size_t bytes;
  int device;  ///< for host memory: the device that was current
  MemoryKind kind;
  unsigned int flags;  ///< as given to cudaHostAlloc or cudaHostRegister
  char* mapping;       ///< what the system gave
  std::size_t mappingBytes;
  bool reportedBroken;  ///< its guard zones were found overwritten: said once
};

/// All allocations of the process, on all devices. Guarded by a mutex of its own, which is held
/// while no other lock but Accounting's is taken.
///
/// Blocks are 512-byte aligned and lie between two guard zones whose pattern is checked when the
/// block is freed and whenever the host synchronizes. New memory is all ones (NaN as float), unless
/// the block is so large that filling it would cost more than it finds. Freed small blocks are kept
/// for a while, filled with a pattern, so that a write through a dangling pointer is noticed.
class Memory {
 public:
  static Memory& instance();

  /// Null when the device's memory (or the host's) is exhausted. bytes > 0.
  char* allocate(std::size_t bytes, MemoryKind kind, int device, unsigned int flags);
  /// False when no live block of one of these kinds starts there.
  bool release(const void* base, bool host);
  bool registerHost(void* base, std::size_t bytes, int device, unsigned int flags);
  bool unregisterHost(void* base);
  void releaseDevice(int device);  ///< everything that a device reset frees

  std::optional<Block> find(const void* pointer);
  std::size_t liveBytes(int device);
  /// The most that was live at once since the last `startPeak`.
  std::size_t peakBytes(int device);
  void startPeak(int device);
  std::size_t freeBytes(int device);
  void setFreeBytes(int device, std::size_t bytes);
  /// Takes memory that the driver keeps for itself on a device: part of the same memory, but not
  /// live. False when there is not as much.
  bool reserve(int device, std::size_t bytes);
  void unreserve(int device, std::size_t bytes);
  void checkGuards();  ///< reports each broken guard zone once
  void checkFreed();   ///< reports each freed block that was written to

  void lock() { mutex_.lock(); }  ///< Machine's, around a fork
  void unlock() { mutex_.unlock(); }

 private:
  struct DeviceMemory {
    std::size_t live;
    std::size_t limit;
    std::size_t peak = 0;
    std::size_t reserved = 0;

    std::size_t free() const { return limit - std::min(limit, live + reserved); }
  };

  Memory();
  void releaseLocked(std::map<std::uintptr_t, Block>::iterator found);
  void quarantine(const Block& block);
  void checkFreedLocked(const Block& block);
  void evictOldest();

  std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;  ///< by base
  std::vector<DeviceMemory> devices_;
  std::deque<Block> freed_;
  std::size_t freedBytes_ = 0;
};

}  // namespace ucudnn::simulator
