// Watches how uses of workspace on several streams overlap on the device, without waiting for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/call_stream.hpp"
#include "cuda/owners.hpp"
#include "plan/plan.hpp"
#include "support/fork.hpp"
#include "workspace/overlap.hpp"

namespace ucudnn {

/// A use and the plan that it ran.
struct WatchedUse {
  WorkspaceUse use;
  std::shared_ptr<const Plan> plan;
  bool deterministic = false;  ///< the call asked for determinism
};

/// Watches a number of uses, once they are due and more than one stream is in use. It records one
/// event before a use asks for its region, and one after the use. The times are read when all
/// events have happened, which is checked now and then. At any other time, on one stream, or in a
/// capture, nothing is watched and no CUDA function called. A failure ends the watch and no call.
/// Thread-safe.
class OverlapWatch {
 public:
  /// `uses` counts the uses of all regions.
  explicit OverlapWatch(const std::atomic<std::uint64_t>& uses) : uses_(uses) {}

  /// Watches `count` uses from use number `due` on. Drops what was seen.
  void schedule(std::uint64_t due, std::size_t count);

  /// A use that has begun. It has no region yet.
  struct Ticket {
    std::uint64_t schedule = 0;  ///< 0: not watched
    std::size_t number = 0;
  };
  Ticket begin(const CallStream& stream) noexcept {
    const State state = state_.load(std::memory_order_acquire);
    if (state == State::kReady || stream.capturing) return {};
    if (state == State::kQuiet && !isDue(stream)) return {};
    return beginWatched(stream);
  }
  /// To be called after the work has been enqueued.
  void end(const Ticket& ticket,
           const CallStream& stream,
           const void* region,
           const std::shared_ptr<const Plan>& plan,
           bool deterministic) noexcept {
    if (ticket.schedule != 0) endWatched(ticket, stream, region, plan, deterministic);
  }

  /// Changes when there are uses to take.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  /// The watched uses, once. Then nothing is due until the next schedule.
  std::optional<std::vector<WatchedUse>> take();

 private:
  enum class State { kQuiet, kWatching, kReady };
  struct Slot {
    WatchedUse watched;
    Event requested, ended;
    bool complete = false;
  };

  bool isDue(const CallStream& stream) noexcept {
    if (lastStream_.load(std::memory_order_relaxed) == stream.id) return false;
    const bool isFirst = lastStream_.exchange(stream.id, std::memory_order_relaxed) == kNoStream;
    return !isFirst &&
           uses_.load(std::memory_order_relaxed) >= due_.load(std::memory_order_relaxed);
  }
  Ticket beginWatched(const CallStream& stream) noexcept;
  void endWatched(const Ticket& ticket,
                  const CallStream& stream,
                  const void* region,
                  const std::shared_ptr<const Plan>& plan,
                  bool deterministic) noexcept;
  bool read();
  void drop() noexcept;

  static constexpr std::uint64_t kNoStream = ~std::uint64_t{0};
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const std::atomic<std::uint64_t>& uses_;
  std::atomic<State> state_{State::kQuiet};
  std::atomic<std::uint64_t> due_{kNever};
  std::atomic<std::uint64_t> lastStream_{kNoStream};
  std::atomic<std::uint64_t> version_{0};

  ForkMutex mutex_;  ///< guards what follows
  std::uint64_t schedule_ = 0;
  std::size_t count_ = 0;
  std::size_t completed_ = 0;
  std::uint64_t beginsSinceRead_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace ucudnn
