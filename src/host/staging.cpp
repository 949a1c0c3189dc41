#include "host/staging.hpp"

#include <algorithm>
#include <cstring>

#include "support/settings.hpp"
#include "support/shared_by_key.hpp"

namespace ucudnn {
namespace {

float elapsedMs(const Event& from, const Event& to) {
  float ms = 0;
  UCUDNN_CHECK_CUDA(cudaEventSynchronize(to.get()));
  UCUDNN_CHECK_CUDA(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return ms;
}

/// Moves rows between a tensor and a packed buffer.
void moveRows(char* to, std::size_t toPitch, const char* from, std::size_t fromPitch, Rows rows) {
  if (toPitch == rows.width && fromPitch == rows.width) {
    std::memcpy(to, from, rows.bytes());
    return;
  }
  for (std::size_t i = 0; i < rows.height; ++i)
    std::memcpy(to + i * toPitch, from + i * fromPitch, rows.width);
}

/// Calls `copy` with parts of the rows that fit a buffer.
template <typename Copy>
void inParts(const Rows& rows, std::size_t mostBytes, Copy copy) {
  const std::size_t most = std::max<std::size_t>(1, mostBytes / rows.width);
  const std::size_t width = std::min(rows.width, mostBytes);
  for (std::size_t row = 0; row < rows.height; row += most)
    for (std::size_t column = 0; column < rows.width; column += width) {
      Rows part = rows;
      part.tensor += row * rows.tensorPitch + column;
      part.slot += row * rows.slotPitch + column;
      part.height = std::min(most, rows.height - row);
      part.width = std::min(width, rows.width - column);
      copy(part);
    }
}

}  // namespace

PinnedBuffer::PinnedBuffer(std::size_t bytes) {
  void* memory = nullptr;
  UCUDNN_CHECK_CUDA(cudaMallocHost(&memory, bytes));
  memory_.reset(memory);
}

Bounce::Bounce() {
  for (std::size_t i = 0; i < kBuffers; ++i)
    turns_.push_back({std::make_unique<PinnedBuffer>(kBytes), makeOrderingEvent()});
}

Bounce::Turn& Bounce::next() {
  last_ = (last_ + 1) % turns_.size();
  Turn& turn = turns_[last_];
  finish(turn);
  return turn;
}

void Bounce::finish(Turn& turn) {
  UCUDNN_CHECK_CUDA(cudaEventSynchronize(turn.event.get()));
  if (turn.tensor == nullptr) return;
  moveRows(turn.tensor + turn.rows.tensor,
           turn.rows.tensorPitch,
           turn.buffer->get(),
           turn.rows.width,
           turn.rows);
  turn.tensor = nullptr;
}

void Bounce::finish() {
  for (std::size_t i = 1; i <= turns_.size(); ++i) finish(turns_[(last_ + i) % turns_.size()]);
}

void Bounce::forget() noexcept {
  for (Turn& turn : turns_) turn.tensor = nullptr;
}

void Bounce::toDevice(char* slot, const char* tensor, const Rows& all, cudaStream_t stream) {
  inParts(all, kBytes, [&](const Rows& rows) {
    Turn& turn = next();
    moveRows(turn.buffer->get(), rows.width, tensor + rows.tensor, rows.tensorPitch, rows);
    UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(slot + rows.slot,
                                        std::max(rows.slotPitch, rows.width),
                                        turn.buffer->get(),
                                        rows.width,
                                        rows.width,
                                        rows.height,
                                        cudaMemcpyHostToDevice,
                                        stream));
    UCUDNN_CHECK_CUDA(cudaEventRecord(turn.event.get(), stream));
  });
}

void Bounce::toHost(char* tensor, const char* slot, const Rows& all, cudaStream_t stream) {
  inParts(all, kBytes, [&](const Rows& rows) {
    Turn& turn = next();
    UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(turn.buffer->get(),
                                        rows.width,
                                        slot + rows.slot,
                                        std::max(rows.slotPitch, rows.width),
                                        rows.width,
                                        rows.height,
                                        cudaMemcpyDeviceToHost,
                                        stream));
    UCUDNN_CHECK_CUDA(cudaEventRecord(turn.event.get(), stream));
    turn.tensor = tensor;
    turn.rows = rows;
  });
}

void Staging::prepare() {
  if (lane_) return;
  const DeviceScope scope(device_);
  const RelaxedCapture relaxed;
  auto lane = std::make_unique<Lane>();
  bounceIn_ = std::make_unique<Bounce>();
  bounceOut_ = std::make_unique<Bounce>();
  measureLink(*lane);
  lane_ = std::move(lane);
}

/// The time of one row of a copy to the device, besides its bytes: the longer of narrow and of wide
/// rows.
template <typename Time>
static double rowMsOf(
    const Link& link, const Time& msOf, void* to, const void* from, cudaStream_t stream) {
  constexpr std::size_t kRows = 1024;
  double rowMs = 0;
  for (const std::size_t width : {std::size_t{64}, std::size_t{2048}}) {
    const auto copyRows = [&] {
      UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(
          to, 2 * width, from, 2 * width, width, kRows, cudaMemcpyHostToDevice, stream));
    };
    copyRows();
    const double ms = msOf(copyRows) - link.copyMs;
    const double bytesMs = static_cast<double>(width * kRows) / link.bytesPerMs[0];
    rowMs = std::max(rowMs, (ms - bytesMs) / kRows);
  }
  return rowMs;
}

/// Measures both directions at once, because they share what is behind the link; then many small
/// copies, narrow rows, and copies within the device.
void Staging::measureLink(const Lane& lane) {
  constexpr int kCopies = 16;
  constexpr std::size_t kSmall = 4096;
  const DeviceBuffer in(Bounce::kBytes);
  const DeviceBuffer out(Bounce::kBytes);
  const Event begin[] = {makeEvent(), makeEvent()};
  const Event end[] = {makeEvent(), makeEvent()};
  const cudaStream_t streams[] = {lane.reading(), lane.writing()};
  const auto record = [&](const Event* events, std::size_t i) {
    UCUDNN_CHECK_CUDA(cudaEventRecord(events[i].get(), streams[i]));
  };
  const auto copy = [&](void* to, const void* from, std::size_t bytes, std::size_t stream) {
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streams[stream]));
  };
  const auto msOf = [&](const auto& enqueue) {
    record(begin, 0);
    enqueue();
    record(end, 0);
    return elapsedMs(begin[0], end[0]);
  };
  for (int pass = 0; pass < 2; ++pass) {  // the first wakes the link up
    for (std::size_t i = 0; i < 2; ++i) record(begin, i);
    for (int i = 0; i < kCopies; ++i) {
      copy(in.get(), bounceIn_->buffer(0), Bounce::kBytes, 0);
      copy(bounceOut_->buffer(0), out.get(), Bounce::kBytes, 1);
    }
    for (std::size_t i = 0; i < 2; ++i) record(end, i);
  }
  const float bothMs[] = {elapsedMs(begin[0], end[0]), elapsedMs(begin[1], end[1])};
  const auto repeat = [&](void* to, const void* from, std::size_t bytes) {
    return msOf([&] {
      for (int i = 0; i < kCopies; ++i) copy(to, from, bytes, 0);
    });
  };
  const float smallMs = repeat(in.get(), bounceIn_->buffer(0), kSmall);
  link_.copyMs = smallMs / kCopies;
  // At most half of the time is taken for the cost of the copies themselves: large copies may hide
  // it.
  const auto rateOf = [&](float ms) {
    return static_cast<double>(Bounce::kBytes) * kCopies / std::max(ms - smallMs, ms / 2);
  };
  link_.deviceBytesPerMs = rateOf(repeat(in.get(), out.get(), Bounce::kBytes));
  for (std::size_t i = 0; i < 2; ++i) link_.bytesPerMs[i] = rateOf(bothMs[i]);
  link_.rowMs = rowMsOf(link_, msOf, in.get(), bounceIn_->buffer(0), streams[0]);
  // Pageable memory is never faster than pinned memory.
  link_.pageableBytesPerMs = std::min(link_.pageableBytesPerMs, link_.bytesPerMs[0]);
}

DeviceBudget Staging::budget(std::size_t granted, std::size_t otherBytes) const {
  if (granted != kAllDeviceMemory) return {granted, clientBytes_ + otherBytes};
  std::size_t free = 0, total = 0;
  UCUDNN_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return {arenaBytes() + free / 10 * 9, otherBytes};  // kernels need some that nobody names
}

void* Staging::allocate(std::size_t bytes, std::size_t granted) {
  const RelaxedCapture relaxed;
  const std::size_t all = budget(granted, 0).forTiles();
  const std::size_t tiles = std::max(arenaBytes(), (all + clientBytes_) / 4);
  void* memory = nullptr;
  if (tiles + bytes <= all && cudaMalloc(&memory, bytes) == cudaSuccess) {
    clients_[memory] = bytes;
    clientBytes_ += bytes;
    return memory;
  }
  static_cast<void>(cudaGetLastError());
  UCUDNN_CHECK_CUDA(cudaMallocHost(&memory, bytes));
  return memory;
}

void Staging::release(void* memory) {
  const RelaxedCapture relaxed;
  const auto found = clients_.find(memory);
  if (found == clients_.end()) {
    UCUDNN_CHECK_CUDA(cudaFreeHost(memory));
    return;
  }
  clientBytes_ -= found->second;
  clients_.erase(found);
  UCUDNN_CHECK_CUDA(cudaFree(memory));
}

std::shared_ptr<Staging> stagingOf(int device) {
  static auto* const all = new SharedByKey<int, Staging>;
  return all->get(device, device);
}

}  // namespace ucudnn
