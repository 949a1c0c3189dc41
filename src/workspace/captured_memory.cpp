#include "workspace/captured_memory.hpp"

#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "support/log.hpp"
#include "support/shared_by_key.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

/// Belongs to the process, because a graph may go after the last handle.
std::atomic<std::uint64_t> goneGraphs{0};

/// A region with its memory.
struct OwnedRegion {
  OwnedRegion(std::size_t bytes, std::uint64_t capture)
      : buffer(bytes), region(static_cast<char*>(buffer.get()), bytes, nullptr, capture) {}

  DeviceBuffer buffer;
  WorkspaceRegion region;
};

/// Frees without disturbing captures of other threads. Waits for the device.
void free(const OwnedRegion* region) noexcept {
  try {
    const RelaxedCapture relaxed;
    delete region;
  } catch (const std::exception&) {  // the process ends, and with it the memory
  }
}

}  // namespace

std::shared_ptr<WorkspaceRegion> CapturedMemory::find(const WorkspaceKey& network,
                                                      std::uint64_t capture) const {
  const std::lock_guard lock(mutex_);
  const auto regions = regions_.find(network);
  if (regions == regions_.end()) return nullptr;
  const auto captured = regions->second.find(capture);
  return captured == regions->second.end() ? nullptr : captured->second.region;
}

std::shared_ptr<WorkspaceRegion> CapturedMemory::allocate(const WorkspaceKey& network,
                                                          const CallStream& stream,
                                                          std::size_t bytes) {
  freeGone();
  bool mayHave = false;
  {
    const std::lock_guard lock(mutex_);
    mayHave = regions_[network].size() < kMostCaptures;
  }
  if (!mayHave) {
    warnOnce(std::to_string(kMostCaptures) +
             " graphs have workspace of their own: more run without, until one of these is "
             "destroyed");
    return nullptr;
  }
  Captured captured;
  try {
    const RelaxedCapture relaxed;
    const DeviceScope device(network.device);
    const std::shared_ptr<OwnedRegion> owned(new OwnedRegion(bytes, stream.capture), free);
    captured.region = {owned, &owned->region};
  } catch (const OutOfMemory&) {
    static_cast<void>(cudaGetLastError());
    warnOnce(formatSize(bytes) + " of workspace for a capture can't be allocated: it runs without");
    return nullptr;
  }
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  try {
    callWhenGraphIsGone(stream, [gone] {
      gone->store(true, std::memory_order_release);
      goneGraphs.fetch_add(1, std::memory_order_release);
    });
  } catch (const Error& error) {
    logDebug("a capture has no workspace: {}", error.what());
    return nullptr;
  }
  captured.gone = gone;
  const std::lock_guard lock(mutex_);
  return regions_[network].try_emplace(stream.capture, std::move(captured)).first->second.region;
}

void CapturedMemory::freeGone() noexcept {
  try {
    std::vector<Captured> unused;  // freed without the lock
    const std::lock_guard lock(mutex_);
    const std::uint64_t gone = CapturedMemory::gone();
    if (freed_ == gone) return;
    for (auto& [network, regions] : regions_)
      for (auto captured = regions.begin(); captured != regions.end();) {
        const auto next = std::next(captured);
        if (captured->second.gone->load(std::memory_order_acquire)) {
          unused.push_back(std::move(captured->second));
          regions.erase(captured);
        }
        captured = next;
      }
    freed_ = gone;
  } catch (const std::exception&) {  // out of host memory: the next call tries again
  }
}

std::uint64_t CapturedMemory::gone() noexcept {
  return goneGraphs.load(std::memory_order_acquire);
}

void CapturedMemory::warnOnce(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(warned_, true)) return;
  }
  logWarn("{}", message);
}

void CapturedMemory::release(const WorkspaceKey& network) {
  Regions released;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const auto regions = regions_.find(network);
  if (regions != regions_.end()) released.swap(regions->second);
}

std::shared_ptr<CapturedMemory> capturedMemory() {
  static auto& all = *new SharedByKey<std::monostate, CapturedMemory>;
  return all.get({});
}

}  // namespace ucudnn
