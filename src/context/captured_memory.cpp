#include "context/captured_memory.hpp"

#include <utility>
#include <variant>

#include "support/log.hpp"
#include "support/shared_by_key.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

/// A region with its memory.
struct OwnedRegion {
  OwnedRegion(std::size_t bytes, std::uint64_t capture)
      : buffer(bytes), region(static_cast<char*>(buffer.get()), bytes, capture) {}

  DeviceBuffer buffer;
  WorkspaceRegion region;
};

/// Freeing must not disturb captures of other threads. It waits for the device.
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
  const auto region = regions->second.find(capture);
  return region == regions->second.end() ? nullptr : region->second;
}

std::shared_ptr<WorkspaceRegion> CapturedMemory::allocate(const WorkspaceKey& network,
                                                          std::uint64_t capture,
                                                          std::size_t bytes) {
  bool mayHave = false;
  {
    const std::lock_guard lock(mutex_);
    mayHave = regions_[network].size() < kMostCaptures;
  }
  if (!mayHave) {
    warnOnce(std::to_string(kMostCaptures) +
             " captures have workspace of their own and none is released: more run without");
    return nullptr;
  }
  std::shared_ptr<WorkspaceRegion> region;
  try {
    const RelaxedCapture relaxed;
    const DeviceScope device(network.device);
    const std::shared_ptr<OwnedRegion> owned(new OwnedRegion(bytes, capture), free);
    region = {owned, &owned->region};
  } catch (const OutOfMemory&) {
    static_cast<void>(cudaGetLastError());
    warnOnce(formatSize(bytes) + " of workspace for a capture can't be allocated: it runs without");
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return regions_[network].try_emplace(capture, std::move(region)).first->second;
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
