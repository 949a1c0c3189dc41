// Where the tiles of one call after the other are copied and computed.
#pragma once

#include <memory>
#include <vector>

#include "cuda/call_stream.hpp"
#include "cuda/owners.hpp"

namespace ucudnn {

/// Device memory for tiles, a stream for each direction of the link, and events. Belongs to the
/// device that is current when it is made. Not thread-safe.
class Lane {
 public:
  /// Throws Error.
  Lane();

  /// Has so many bytes of device memory at `arena`. The memory that it had is freed, which may wait
  /// for the device; or kept, if a graph uses it. Throws OutOfMemory.
  void reserve(std::size_t bytes, bool keeps);
  char* arena() const noexcept { return static_cast<char*>(arena_.get()); }
  std::size_t arenaBytes() const noexcept { return arena_.bytes(); }

  cudaStream_t reading() const noexcept { return reading_.get(); }
  cudaStream_t writing() const noexcept { return writing_.get(); }
  /// Events by number; made when first asked for. Throws Error.
  cudaEvent_t event(std::size_t number);

  /// Orders the next call behind the last one. A capture knows nothing of events outside it.
  void waitForLastUse(cudaStream_t stream);
  void noteUse(cudaStream_t stream);

 private:
  Stream reading_, writing_;
  Event lastUse_;
  bool isUsed_ = false;
  std::vector<Event> events_;
  DeviceBuffer arena_;
  std::vector<DeviceBuffer> kept_;
};

/// An event that orders; waiting for it does not spin. Throws Error.
Event makeOrderingEvent();

/// Throws Error if a call can't be captured: in a capture nothing is planned, nor does the host
/// wait.
void checkCapture(const CallStream& stream, bool isPageable, bool isPlanned);

/// The lane of the graph that the stream is captured into. A graph uses its memory whenever it is
/// launched, and nobody sees that. So each has a lane of its own, which ends with it. REQUIRES: the
/// device's staging is locked, and the device is current. Throws Error.
Lane& laneOfCapture(const CallStream& stream);
/// Frees the lanes of graphs that have gone. May wait for the device.
void freeGoneLanes() noexcept;

}  // namespace ucudnn
