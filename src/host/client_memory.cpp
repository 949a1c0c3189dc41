#include "host/client_memory.hpp"

#include <algorithm>
#include <mutex>

#include "optimizer/placement_choice.hpp"
#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// The driver maps memory in units of that: smaller tensors stay where they are.
constexpr std::size_t kLeastMovable = std::size_t{2} << 20;
// A network has fewer; a program whose calls never repeat must not be noted for ever.
constexpr std::size_t kMostCalls = 1 << 14;

/// What clients still have when the last handle of a device has gone.
struct Orphans {
  ForkMutex mutex;
  std::map<const void*, std::unique_ptr<MovableMemory>> blocks;
};
Orphans& orphans() {
  static auto& all = *new Orphans;
  return all;
}

/// As cudaFree waits for the device, which disturbs no capture.
void waitForDevice() {
  const RelaxedCapture relaxed;
  const DeviceBuffer waited(1);
}

}  // namespace

void* ClientMemory::allocate(std::size_t bytes, Home home) {
  const RelaxedCapture relaxed;
  if (!isSupported_) isSupported_ = MovableMemory::isSupported();
  void* memory = nullptr;
  if (*isSupported_ && bytes >= kLeastMovable) {
    auto block = std::make_unique<MovableMemory>(bytes, home);
    memory = block->get();
    bytes = block->bytes();
    movable_[memory] = std::move(block);
  } else {
    if (home == Home::kDevice)
      UCUDNN_CHECK_CUDA(cudaMalloc(&memory, bytes));
    else
      UCUDNN_CHECK_CUDA(cudaMallocHost(&memory, bytes));
    others_[memory] = {bytes, home};
  }
  if (home == Home::kDevice) bytesOnDevice_ += bytes;
  beginAnew();
  return memory;
}

void ClientMemory::release(void* memory) {
  const RelaxedCapture relaxed;
  if (const auto block = movable_.find(memory); block != movable_.end()) {
    waitForDevice();
    if (block->second->home() == Home::kDevice) bytesOnDevice_ -= block->second->bytes();
    movable_.erase(block);
    beginAnew();
    return;
  }
  if (const auto other = others_.find(memory); other != others_.end()) {
    if (other->second.home == Home::kDevice) bytesOnDevice_ -= other->second.bytes;
    others_.erase(other);
  }
  beginAnew();
  releaseOrphan(memory);
}

void ClientMemory::releaseOrphan(void* memory) {
  const RelaxedCapture relaxed;
  std::unique_ptr<MovableMemory> orphan;
  {
    Orphans& all = orphans();
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.blocks.find(memory); found != all.blocks.end()) {
      orphan = std::move(found->second);
      all.blocks.erase(found);
    }
  }
  if (orphan)
    waitForDevice();
  else if (placeOf(memory) == Place::kDevice)
    UCUDNN_CHECK_CUDA(cudaFree(memory));
  else
    UCUDNN_CHECK_CUDA(cudaFreeHost(memory));
}

ClientMemory::~ClientMemory() {
  try {
    Orphans& all = orphans();
    const std::lock_guard lock(all.mutex);
    all.blocks.merge(movable_);
  } catch (const std::exception&) {  // a lock that can't be had: they are freed
  }
}

void ClientMemory::beginAnew() noexcept {
  calls_.clear();
  numbers_.clear();
  mayMove_.store(!movable_.empty(), std::memory_order_release);
}

bool ClientMemory::note(NotedCall call) {
  const bool isAnothers = !calls_.empty() && calls_.front().owner != call.owner;
  if (isAnothers || calls_.size() >= kMostCalls) {
    fix();
    return false;
  }
  const auto [known, isNew] = numbers_.emplace(call.key, calls_.size());
  first_ = known->second;
  if (isNew) calls_.push_back(std::move(call));
  return !isNew;
}

std::vector<bool> ClientMemory::choose(const std::vector<MovableMemory*>& blocks,
                                       std::size_t deviceBytes,
                                       const Link& link) const {
  const auto numberOf = [&](const void* pointer) {
    std::size_t i = 0;
    for (; i < blocks.size(); ++i) {
      const auto* const begin = static_cast<const char*>(blocks[i]->get());
      if (begin <= pointer && pointer < begin + blocks[i]->bytes()) break;
    }
    return i;
  };
  std::vector<PlacementCall> calls;
  for (std::size_t i = first_; i < calls_.size(); ++i) {
    PlacementCall call;
    call.kernelMs = calls_[i].kernelMs;
    for (const NotedCall::Use& use : calls_[i].uses) {
      const auto bytes = static_cast<double>(use.bytes);
      const std::array<double, 2> ms = {use.isRead ? bytes / link.bytesPerMs[0] : 0,
                                        use.isWritten ? bytes / link.bytesPerMs[1] : 0};
      const std::size_t block = numberOf(use.pointer);
      if (block < blocks.size())
        call.uses.push_back({block, ms});
      else if (placeOf(use.pointer) != Place::kDevice)
        for (const std::size_t direction : {0, 1}) call.otherMs[direction] += ms[direction];
    }
    calls.push_back(std::move(call));
  }
  std::vector<std::size_t> bytes;
  bytes.reserve(blocks.size());
  for (const MovableMemory* block : blocks) bytes.push_back(block->bytes());
  return choosePlacement(bytes, calls, deviceBytes);
}

/// Blocks leave the device first, so that there is room for others.
std::size_t ClientMemory::move(std::size_t deviceBytes, const Link& link, cudaStream_t stream) {
  const RelaxedCapture relaxed;
  fix();
  std::vector<MovableMemory*> blocks;
  blocks.reserve(movable_.size());
  for (const auto& [address, block] : movable_) blocks.push_back(block.get());
  std::size_t otherBytes = bytesOnDevice_;
  for (const MovableMemory* block : blocks)
    if (block->home() == Home::kDevice) otherBytes -= block->bytes();
  const std::vector<bool> chosen =
      choose(blocks, deviceBytes > otherBytes ? deviceBytes - otherBytes : 0, link);
  waitForDevice();
  std::size_t moved = 0;
  for (const Home home : {Home::kHost, Home::kDevice}) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      MovableMemory& block = *blocks[i];
      if (chosen[i] != (home == Home::kDevice) || block.home() == home) continue;
      if (home == Home::kDevice && bytesOnDevice_ + block.bytes() > deviceBytes) continue;
      try {
        block.moveTo(home, stream);
      } catch (const std::exception& error) {
        logInfo("a tensor of {} bytes stays where it is: {}", block.bytes(), error.what());
        continue;
      }
      ++moved;
      bytesOnDevice_ += home == Home::kDevice ? block.bytes() : std::size_t{0} - block.bytes();
    }
  }
  calls_.clear();
  numbers_.clear();
  return moved;
}

}  // namespace ucudnn
