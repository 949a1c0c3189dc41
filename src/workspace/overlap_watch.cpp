#include "workspace/overlap_watch.hpp"

namespace ucudnn {
namespace {

// Querying an event costs about a microsecond.
constexpr std::uint64_t kBeginsBetweenReads = 8;

}  // namespace

void OverlapWatch::schedule(std::uint64_t due, std::size_t count) {
  const std::lock_guard lock(mutex_);
  drop();
  ++schedule_;
  count_ = count;
  due_.store(due, std::memory_order_relaxed);
}

/// Drops what was seen, and tries again after as many uses. REQUIRES: the lock is held.
void OverlapWatch::drop() noexcept {
  slots_.clear();
  completed_ = 0;
  due_.store(uses_.load(std::memory_order_relaxed) + count_, std::memory_order_relaxed);
  state_.store(State::kQuiet, std::memory_order_release);
}

OverlapWatch::Ticket OverlapWatch::beginWatched(const CallStream& stream) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (slots_.size() == count_) {  // all have begun
      if (completed_ == count_ && ++beginsSinceRead_ % kBeginsBetweenReads == 0 && read()) {
        state_.store(State::kReady, std::memory_order_release);
        version_.fetch_add(1, std::memory_order_release);
      }
      return {};
    }
    slots_.reserve(count_);
    Slot slot;
    slot.watched.use.stream = stream.id;
    slot.requested = makeEvent();
    slot.ended = makeEvent();
    UCUDNN_CHECK_CUDA(cudaEventRecord(slot.requested.get(), stream.stream));
    slots_.push_back(std::move(slot));
    state_.store(State::kWatching, std::memory_order_release);
    return {schedule_, slots_.size() - 1};
  } catch (const std::exception&) {
    static_cast<void>(cudaGetLastError());
    const std::lock_guard lock(mutex_);
    drop();
    return {};
  }
}

void OverlapWatch::endWatched(const Ticket& ticket,
                              const CallStream& stream,
                              const void* region,
                              const std::shared_ptr<const Plan>& plan,
                              bool deterministic) noexcept {
  const std::lock_guard lock(mutex_);
  if (ticket.schedule != schedule_ || ticket.number >= slots_.size()) return;
  Slot& slot = slots_[ticket.number];
  if (plan == nullptr || cudaEventRecord(slot.ended.get(), stream.stream) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    drop();  // half of a window says nothing
    return;
  }
  slot.watched.use.region = region;
  slot.watched.plan = plan;
  slot.watched.deterministic = deterministic;
  slot.complete = true;
  ++completed_;
}

/// Returns false if not all events have happened yet. Throws Error. REQUIRES: the lock is held; all
/// slots are complete.
bool OverlapWatch::read() {
  const RelaxedCapture relaxed;
  const auto since = [&](const Event& event, double& ms) {
    float elapsed = 0;
    const cudaError_t error =
        cudaEventElapsedTime(&elapsed, slots_.front().requested.get(), event.get());
    if (error == cudaErrorNotReady) return static_cast<void>(cudaGetLastError()), false;
    UCUDNN_CHECK_CUDA(error);
    ms = elapsed;
    return true;
  };
  // The latest slot first, because it mostly completes last.
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot)
    if (!since(slot->ended, slot->watched.use.endedMs) ||
        !since(slot->requested, slot->watched.use.requestedMs))
      return false;
  return true;
}

std::optional<std::vector<WatchedUse>> OverlapWatch::take() {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::kReady) return std::nullopt;
  std::vector<WatchedUse> seen;
  for (Slot& slot : slots_) seen.push_back(std::move(slot.watched));
  drop();
  due_.store(kNever, std::memory_order_relaxed);
  return seen;
}

}  // namespace ucudnn
