// The plans that one handle has run lately. A planned call looks them up without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "context/speed_check.hpp"
#include "plan/call.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// A direct-mapped table. Its key is a problem, the workspace at the call and whether a
/// deterministic algorithm was named; its value is the plan. If μ-cuDNN owns the workspace, the key
/// is a problem, its layer and the stream, and the value is the plan and its region. Not
/// thread-safe, because cuDNN forbids two threads to use one handle at the same time.
class HotPlans {
 public:
  /// Terms of a call, besides its problem, that decide on its plan.
  struct Terms {
    std::size_t workspaceBytes = 0;
    bool deterministic = false;
    bool isExecution = false;  ///< the call runs a client's plan; a deterministic one must stay so
    bool repeatsBits = false;  ///< all runs have equal bits: the plan depends on no measurement
    std::int32_t own = -1;     ///< the kernel of the client's plan, which ours are compared with
    long long layer = 0;
    std::uint64_t stream = 0;

    bool operator==(const Terms& other) const noexcept {
      return workspaceBytes == other.workspaceBytes && deterministic == other.deterministic &&
             isExecution == other.isExecution && repeatsBits == other.repeatsBits &&
             own == other.own && layer == other.layer && stream == other.stream;
    }
  };
  struct Key : Terms {
    Key(const Problem& ofCall, const Terms& terms) : Terms(terms), problem(ofCall) {}
    const Problem& problem;

    std::size_t hash() const noexcept {
      return problem.hash() ^ (workspaceBytes >> 9) ^ static_cast<std::size_t>(deterministic) ^
             (static_cast<std::size_t>(layer) * 0x9E3779B97F4A7C15u >> 32) ^ (stream << 1) ^
             static_cast<std::size_t>(own) << 3;
    }
  };
  static constexpr std::uint32_t kAskedEach = 8, kMostUses = 64;
  static constexpr std::uint32_t kForever = UINT32_MAX;  ///< until the epoch changes
  /// A plan's kernels are checked once more after so many calls, with the 1,000th at the latest:
  /// some are right the first times only. Plans take turns, so that no step has all their checks.
  static std::uint32_t checkedAfter(const Key& key) noexcept {
    constexpr std::uint32_t kLast = 998, kTurns = 900;
    return kLast - static_cast<std::uint32_t>(key.hash() % kTurns);
  }

  struct Entry {
    /// Names this entry among all of the process, as long as it belongs to its key. Whoever has
    /// found it by the key may find it by the ticket.
    std::uint64_t ticket = 0;
    Terms terms;
    std::shared_ptr<const Plan> plan;  ///< null: known to have no plan
    std::shared_ptr<WorkspaceRegion> region = nullptr;
    std::size_t next = 0;              ///< the slot that was looked up after this one the last time
    const char* why = "";              ///< the reason if there is no plan; never freed
    std::uint32_t uses = 0;            ///< since it was put
    std::uint32_t goodFor = kForever;  ///< so many uses, then the planner is asked again
    /// For a plan beside the client's own kernel: the calls so far, the call of the next check, and
    /// the check while it lasts.
    std::uint32_t calls = 0, checkAt = SpeedCheck::kFirst;
    std::shared_ptr<SpeedCheck> check = nullptr;
    std::uint32_t asked = 0;  ///< how often the planner has been asked in a row
    Problem problem;

    bool isOf(const Key& key) const noexcept { return terms == key && problem == key.problem; }
    bool isUsedUp() const noexcept { return goodFor != kForever && uses >= goodFor; }
    /// Whether the planner is asked again for `checkedAfter`.
    bool isToBeChecked() const noexcept { return goodFor > kMostUses && goodFor != kForever; }
    /// Counts a use. Returns false if the planner must be asked again.
    bool use() noexcept { return goodFor == kForever || ++uses <= goodFor; }
  };

  /// Null if the key is not there, or the table is of another epoch. Programs call the same
  /// convolutions in the same order. So the entry that came next the last time is tried before the
  /// hash, which takes three times as long as a comparison.
  Entry* find(const Key& key, std::uint64_t epoch) noexcept {
    if (epoch != epoch_) return nullptr;
    std::size_t slot = entries_[last_].next;
    if (!entries_[slot].isOf(key)) {
      slot = key.hash() % kSlots;
      if (!entries_[slot].isOf(key)) return nullptr;
      entries_[last_].next = slot;
    }
    last_ = slot;
    return &entries_[slot];
  }

  /// Finds an entry by a ticket that a call of the same problem has left, if the entry is still
  /// there.
  Entry* find(const Ticket& kept, const Terms& terms, std::uint64_t epoch) noexcept {
    const std::uint64_t ticket = kept.load(std::memory_order_relaxed);
    if (epoch != epoch_ || ticket == 0) return nullptr;
    Entry& entry = entries_[ticket % kSlots];
    return entry.ticket == ticket && entry.terms == terms ? &entry : nullptr;
  }
  /// Finds an entry by the ticket, else by the key, and then leaves the ticket. Null: there is
  /// none.
  Entry* find(Ticket* ticket, const Key& key, std::uint64_t epoch) noexcept {
    Entry* found = ticket != nullptr ? find(*ticket, key, epoch) : nullptr;
    if (found != nullptr) return found;
    found = find(key, epoch);
    if (ticket != nullptr && found != nullptr)
      ticket->store(found->ticket, std::memory_order_relaxed);
    return found;
  }

  void put(const Key& key,
           std::uint64_t epoch,
           std::shared_ptr<const Plan> plan,
           std::shared_ptr<WorkspaceRegion> region = nullptr,
           const char* why = "",
           std::uint32_t goodFor = kForever) {
    Entry entry;
    entry.goodFor = goodFor;
    entry.plan = std::move(plan);
    entry.region = std::move(region);
    entry.why = why;
    place(key, epoch, std::move(entry));
  }

  /// Puts an answer that may change before long. The first calls ask again each time, because there
  /// may be no more than these; later ones more and more seldom, up to every kMostUses-th. Calls of
  /// a problem that is being measured ask each time.
  void putForNow(const Key& key,
                 std::uint64_t epoch,
                 std::shared_ptr<const Plan> plan,
                 const char* why,
                 bool isOngoing = false) {
    const Entry* const before = find(key, epoch);
    Entry entry;
    entry.plan = std::move(plan);
    entry.why = why;
    entry.asked = before != nullptr && !isOngoing ? before->asked + 1 : 1;
    const std::uint32_t further = entry.asked > kAskedEach ? entry.asked - kAskedEach : 0;
    entry.goodFor = further == 0 ? 0 : kMostUses >> (6 - std::min(further, 6u));
    place(key, epoch, std::move(entry));
  }

  void clear() noexcept {
    entries_.clear();
    epoch_ = 0;
  }

 private:
  void place(const Key& key, std::uint64_t epoch, Entry entry) {
    static std::atomic<std::uint64_t> lastTicket{0};
    entry.terms = key;
    entry.problem = key.problem;
    if (epoch != epoch_) {
      entries_.assign(kSlots, Entry{});
      epoch_ = epoch;
    }
    const std::size_t slot = key.hash() % kSlots;
    Entry& former = entries_[slot];
    entry.ticket = former.isOf(key) ? former.ticket : ++lastTicket * kSlots + slot;
    entry.next = former.next;
    former = std::move(entry);
  }

  // Four times the convolutions of a ResNet-50 (159); a collision costs one look-up under the
  // planner's lock.
  static constexpr std::size_t kSlots = 1024;

  std::vector<Entry> entries_;  ///< an unused one has a problem of batch 0, which no call has
  std::uint64_t epoch_ = 0;     ///< 0: empty; the planner's epochs begin at 1
  std::size_t last_ = 0;        ///< the slot that was found last
};

}  // namespace ucudnn
