#include "workspace/workspace_layout.hpp"

#include <algorithm>
#include <utility>

#include "support/alignment.hpp"
#include "support/log.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

// Retired regions are dropped when their work is over, which is checked only if there are many.
constexpr std::size_t kManyBusy = 64;

}  // namespace

WorkspaceLayout::WorkspaceLayout(int device,
                                 std::size_t totalBytes,
                                 std::atomic<std::uint64_t>& uses)
    : device_(device), totalBytes_(roundDownToAlignment(totalBytes)), uses_(uses) {}

WorkspaceLayout::~WorkspaceLayout() {
  if (memory_ == nullptr) return;
  try {
    const RelaxedCapture relaxed;
    const DeviceScope device(device_);
    static_cast<void>(cudaFree(memory_));  // waits for work that uses it
  } catch (const std::exception&) {        // the process ends, and with it the memory
  }
}

bool WorkspaceLayout::requireMemory() {
  if (memory_ != nullptr || totalBytes_ == 0) return true;
  if (!works()) return false;
  const RelaxedCapture relaxed;
  const DeviceScope device(device_);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, totalBytes_);
  if (error == cudaSuccess) {
    memory_ = static_cast<char*>(memory);
    return true;
  }
  static_cast<void>(cudaGetLastError());
  failed_.store(true, std::memory_order_release);
  logWarn(
      "the total workspace of {} can't be allocated on device {} ({}): each convolution keeps "
      "to the workspace of its caller",
      formatSize(totalBytes_),
      device_,
      cudaGetErrorName(error));
  return false;
}

std::size_t WorkspaceLayout::arenaBytes(std::size_t arenas) const noexcept {
  return roundDownToAlignment(totalBytes_ / arenas);
}

void WorkspaceLayout::layOutArenas(std::size_t arenas,
                                   const std::map<std::uint64_t, std::size_t>& groupOf) {
  clear();
  arenas_.clear();
  for (const auto& [stream, group] : groupOf) arenas_[stream] = group % arenas;
  const std::size_t each = arenaBytes(arenas);
  for (std::size_t i = 0; i < arenas && each > 0; ++i) takeRegion(each);
}

void WorkspaceLayout::layOutSegments() {
  clear();
  divided_ = true;
}

void WorkspaceLayout::clear() {
  ++number_;
  for (const auto& region : regions_) region->retire();
  busy_.insert(busy_.end(), regions_.begin(), regions_.end());
  if (busy_.size() > kManyBusy)
    busy_.erase(
        std::remove_if(
            busy_.begin(), busy_.end(), [](const auto& region) { return !region->isBusy(); }),
        busy_.end());
  regions_.clear();
  usedBytes_ = 0;
  divided_ = false;
}

std::shared_ptr<WorkspaceRegion> WorkspaceLayout::takeRegion(std::size_t bytes) {
  char* const begin = memory_ + usedBytes_;
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors;
  for (const auto& region : busy_)
    if (region->overlaps(begin, bytes)) predecessors.push_back(region);
  regions_.push_back(
      std::make_shared<WorkspaceRegion>(begin, bytes, &uses_, 0, std::move(predecessors)));
  usedBytes_ += bytes;
  return regions_.back();
}

std::shared_ptr<WorkspaceRegion> WorkspaceLayout::arenaOf(std::uint64_t stream) {
  if (regions_.size() < 2) return regions_.empty() ? nullptr : regions_.front();
  if (const std::size_t* const arena = arenas_.find(stream)) return regions_[*arena];
  std::size_t leastUsed = 0;
  for (std::size_t i = 0; i < regions_.size(); ++i)
    if (regions_[i]->lastUse() < regions_[leastUsed]->lastUse()) leastUsed = i;
  return regions_[arenas_[stream] = leastUsed];
}

std::shared_ptr<WorkspaceRegion> WorkspaceLayout::largest() const {
  const auto place =
      std::max_element(regions_.begin(), regions_.end(), [](const auto& a, const auto& b) {
        return a->bytes() < b->bytes();
      });
  return place == regions_.end() ? nullptr : *place;
}

}  // namespace ucudnn
