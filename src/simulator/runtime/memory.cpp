#include "simulator/runtime/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/device_models.hpp"

namespace ucudnn::simulator {

namespace {

constexpr std::size_t kAlignment = 512;  // CUDA promises 256; its allocator gives 512
constexpr std::size_t kGuardBytes =
    512;  // keeps the alignment; wider than any vector access past an end
constexpr unsigned char kGuardByte = 0xb5;
constexpr unsigned char kFreedByte = 0xdd;
constexpr unsigned char kPoisonByte = 0xff;
// Filling touches every page: above 64 MiB it takes tens of milliseconds and memory that this
// machine may not have. When nothing is computed nobody reads what is poisoned, except small blocks
// through the host.
constexpr std::size_t kPoisonedUpTo = std::size_t{64} << 20;
constexpr std::size_t kPoisonedUpToWhenOff = std::size_t{64} << 10;
// Larger freed blocks go back at once (using them then faults); of the small ones 16 MiB are kept.
constexpr std::size_t kQuarantineUpTo = std::size_t{1} << 20;
constexpr std::size_t kQuarantineBytes = std::size_t{16} << 20;

std::size_t roundUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool holds(const char* begin, const char* end, unsigned char byte) {
  if (begin == end) return true;
  const auto following = static_cast<std::size_t>(end - begin) - 1;
  return static_cast<unsigned char>(*begin) == byte &&
         std::memcmp(begin, begin + 1, following) == 0;
}

const char* guardEnd(const Block& block) {
  return block.base + roundUp(block.bytes, kAlignment) + kGuardBytes;
}

bool guardsIntact(const Block& block) {
  if (block.kind == MemoryKind::kRegistered) return true;
  return holds(block.base - kGuardBytes, block.base, kGuardByte) &&
         holds(block.base + block.bytes, guardEnd(block), kGuardByte);
}

bool onDevice(const Block& block) {
  return block.kind == MemoryKind::kDevice;
}

const char* handleKind(MemoryKind kind) {
  if (kind == MemoryKind::kRegistered) return "registered host memory";
  if (kind == MemoryKind::kManaged) return "managed memory";
  return kind == MemoryKind::kHost ? "host memory" : "device memory";
}

std::string describe(const Block& block) {
  char text[96];
  std::snprintf(text,
                sizeof text,
                "the %zu bytes of %s at %p",
                block.bytes,
                handleKind(block.kind),
                static_cast<void*>(block.base));
  return text;
}

void poison(const Block& block) {
  const std::size_t limit = isAnythingComputed() ? kPoisonedUpTo : kPoisonedUpToWhenOff;
  if (block.bytes <= limit) std::memset(block.base, kPoisonByte, block.bytes);
  std::memset(block.base - kGuardBytes, kGuardByte, kGuardBytes);
  char* const end = block.base + block.bytes;
  std::memset(end, kGuardByte, static_cast<std::size_t>(guardEnd(block) - end));
}

}  // namespace

Memory& Memory::instance() {
  static Memory* const memory = new Memory;
  return *memory;
}

Memory::Memory() {
  for (const DeviceModel& model : devices()) devices_.push_back({0, model.memoryBytes});
}

char* Memory::allocate(std::size_t bytes, MemoryKind kind, int device, unsigned int flags) {
  const std::size_t rounded = roundUp(bytes, kAlignment);
  if (rounded < bytes) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  DeviceMemory& memory = devices_.at(static_cast<std::size_t>(device));
  Block block = {nullptr, bytes, device, kind, flags, nullptr, rounded + 2 * kGuardBytes, false};
  if (onDevice(block) && rounded > memory.free()) return nullptr;
  // NORESERVE: a simulated GPU may have more memory than this machine; pages that nobody touches
  // cost nothing.
  void* const mapping = mmap(nullptr,
                             block.mappingBytes,
                             PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1,
                             0);
  if (mapping == MAP_FAILED) return nullptr;
  block.mapping = static_cast<char*>(mapping);
  block.base = block.mapping + kGuardBytes;
  poison(block);
  if (onDevice(block)) {
    memory.live += rounded;
    memory.peak = std::max(memory.peak, memory.live);
  }
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(block.base), block);
  countHandle(handleKind(kind), 1);
  return block.base;
}

void Memory::releaseLocked(std::map<std::uintptr_t, Block>::iterator found) {
  const Block block = found->second;
  blocks_.erase(found);
  if (onDevice(block)) {
    devices_[static_cast<std::size_t>(block.device)].live -= roundUp(block.bytes, kAlignment);
  }
  countHandle(handleKind(block.kind), -1);
  if (!guardsIntact(block) && !block.reportedBroken) {
    reportViolation("written beyond " + describe(block) + ", found when it was freed");
  }
  if (block.bytes <= kQuarantineUpTo) {
    quarantine(block);
  } else {
    munmap(block.mapping, block.mappingBytes);
  }
}

void Memory::quarantine(const Block& block) {
  std::memset(block.mapping, kFreedByte, block.mappingBytes);
  freed_.push_back(block);
  freedBytes_ += block.mappingBytes;
  while (freedBytes_ > kQuarantineBytes) evictOldest();
}

void Memory::evictOldest() {
  const Block block = freed_.front();
  freed_.pop_front();
  freedBytes_ -= block.mappingBytes;
  checkFreedLocked(block);
  munmap(block.mapping, block.mappingBytes);
}

bool Memory::release(const void* base, bool host) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(base));
  if (found == blocks_.end()) return false;
  const bool matches = host ? found->second.kind == MemoryKind::kHost
                            : onDevice(found->second) || found->second.kind == MemoryKind::kManaged;
  if (!matches) return false;
  releaseLocked(found);
  return true;
}

bool Memory::registerHost(void* base, std::size_t bytes, int device, unsigned int flags) {
  if (find(base)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const Block block = {
      static_cast<char*>(base), bytes, device, MemoryKind::kRegistered, flags, nullptr, 0, false};
  const bool added = blocks_.emplace(reinterpret_cast<std::uintptr_t>(base), block).second;
  if (added) countHandle(handleKind(block.kind), 1);
  return added;
}

bool Memory::unregisterHost(void* base) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(base));
  if (found == blocks_.end() || found->second.kind != MemoryKind::kRegistered) return false;
  blocks_.erase(found);
  countHandle(handleKind(MemoryKind::kRegistered), -1);
  return true;
}

void Memory::releaseDevice(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    if (block->second.device == device && onDevice(block->second)) releaseLocked(block);
    block = next;
  }
}

std::optional<Block> Memory::find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return std::nullopt;
  --block;
  if (address - block->first >= block->second.bytes) return std::nullopt;
  return block->second;
}

std::size_t Memory::liveBytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return devices_.at(static_cast<std::size_t>(device)).live;
}

std::size_t Memory::peakBytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return devices_.at(static_cast<std::size_t>(device)).peak;
}

void Memory::startPeak(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DeviceMemory& memory = devices_.at(static_cast<std::size_t>(device));
  memory.peak = memory.live;
}

std::size_t Memory::freeBytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return devices_.at(static_cast<std::size_t>(device)).free();
}

void Memory::setFreeBytes(int device, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DeviceMemory& memory = devices_.at(static_cast<std::size_t>(device));
  const std::size_t all = deviceModel(device).memoryBytes;
  const std::size_t used = memory.live + memory.reserved;
  memory.limit = bytes > all - used ? all : used + bytes;
}

bool Memory::reserve(int device, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DeviceMemory& memory = devices_.at(static_cast<std::size_t>(device));
  if (bytes > memory.free()) return false;
  memory.reserved += bytes;
  return true;
}

void Memory::unreserve(int device, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  devices_.at(static_cast<std::size_t>(device)).reserved -= bytes;
}

void Memory::checkGuards() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.reportedBroken || guardsIntact(block)) continue;
    block.reportedBroken = true;
    reportViolation("written beyond " + describe(block));
  }
}

void Memory::checkFreed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!freed_.empty()) evictOldest();
}

void Memory::checkFreedLocked(const Block& block) {
  if (holds(block.mapping, block.mapping + block.mappingBytes, kFreedByte)) return;
  reportViolation("written to " + describe(block) + " after it was freed");
}

}  // namespace ucudnn::simulator
