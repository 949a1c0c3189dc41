#include "host/lane.hpp"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "support/fork.hpp"

namespace ucudnn {
namespace {

struct CapturedLane {
  std::unique_ptr<Lane> lane;
  std::shared_ptr<const std::atomic<bool>> gone;
};
/// The lanes of graphs. They belong to the process, because a graph may outlive the last handle.
struct CapturedLanes {
  ForkMutex mutex;  ///< guards the map; a lane's user holds the lock of its staging
  std::map<std::uint64_t, CapturedLane> byCapture;
};
CapturedLanes& capturedLanes() {
  static auto& all = *new CapturedLanes;
  return all;
}

}  // namespace

Event makeOrderingEvent() {
  cudaEvent_t event = nullptr;
  UCUDNN_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

Lane::Lane() : reading_(makeStream()), writing_(makeStream()), lastUse_(makeOrderingEvent()) {}

void Lane::reserve(std::size_t bytes, bool keeps) {
  if (bytes <= arena_.bytes()) return;
  const RelaxedCapture relaxed;
  if (keeps && arena_.bytes() > 0) kept_.push_back(std::exchange(arena_, DeviceBuffer()));
  arena_ = DeviceBuffer();  // waits for the device
  arena_ = DeviceBuffer(bytes);
}

cudaEvent_t Lane::event(std::size_t number) {
  while (events_.size() <= number) events_.push_back(makeOrderingEvent());
  return events_[number].get();
}

void Lane::waitForLastUse(cudaStream_t stream) {
  if (isUsed_) UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(stream, lastUse_.get(), 0));
}

void Lane::noteUse(cudaStream_t stream) {
  UCUDNN_CHECK_CUDA(cudaEventRecord(lastUse_.get(), stream));
  isUsed_ = true;
}

void checkCapture(const CallStream& stream, bool isPageable, bool isPlanned) {
  const char* const why = stream.capture == 0 ? "the legacy stream can't be used beside a capture"
                          : isPageable        ? "pageable memory can't be copied in a capture"
                          : isPlanned         ? nullptr
                                              : "it must have run once before it is captured";
  if (why != nullptr) throw Error(CUDNN_STATUS_NOT_SUPPORTED, why);
}

Lane& laneOfCapture(const CallStream& stream) {
  freeGoneLanes();
  CapturedLanes& all = capturedLanes();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.byCapture.find(stream.capture);
    if (found != all.byCapture.end()) return *found->second.lane;
  }
  CapturedLane made;
  {
    const RelaxedCapture relaxed;
    made.lane = std::make_unique<Lane>();
  }
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  made.gone = gone;
  callWhenGraphIsGone(stream, [gone] { gone->store(true, std::memory_order_release); });
  const std::lock_guard lock(all.mutex);
  return *all.byCapture.emplace(stream.capture, std::move(made)).first->second.lane;
}

void freeGoneLanes() noexcept {
  try {
    const RelaxedCapture relaxed;
    std::vector<CapturedLane> unused;  // freed without the lock
    CapturedLanes& all = capturedLanes();
    const std::lock_guard lock(all.mutex);
    for (auto lane = all.byCapture.begin(); lane != all.byCapture.end();) {
      const auto next = std::next(lane);
      if (lane->second.gone->load(std::memory_order_acquire)) {
        unused.push_back(std::move(lane->second));
        all.byCapture.erase(lane);
      }
      lane = next;
    }
  } catch (const std::exception&) {  // the next call tries again
  }
}

}  // namespace ucudnn
