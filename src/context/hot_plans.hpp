// The plans that one handle has run lately: what a planned call looks up, without a lock.
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

/// A direct-mapped table: from a problem, the workspace at the call and whether a deterministic
/// algorithm was named, to the plan; where μ-cuDNN owns the workspace, from a problem, its layer
/// and the stream, to the plan and its region. Not thread-safe: cuDNN forbids two threads to use
/// one handle at the same time.
class HotPlans {
 public:
  /// What decides on a plan besides the problem.
  struct Terms {
    std::size_t workspaceBytes = 0;
    bool deterministic = false;
    bool isExecution = false;  ///< of a client's plan: what is deterministic must stay so
    bool repeatsBits = false;  ///< in each run: its plan depends on no measurement
    std::int32_t own = -1;     ///< that plan's kernel, which ours are compared with
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
  /// After the first call and so many, with the 1,000th, a plan's kernels are checked once more:
  /// some are right the first times only.
  static constexpr std::uint32_t kCheckAgain = 998;

  struct Entry {
    /// Names this entry as long as it is its key's, unlike all others of the process: whoever has
    /// found it by the key may find it by the ticket.
    std::uint64_t ticket = 0;
    Terms terms;
    std::shared_ptr<const Plan> plan;  ///< null: known to have none
    std::shared_ptr<WorkspaceRegion> region = nullptr;
    std::size_t next = 0;              ///< the slot that was looked for after this one
    const char* why = "";              ///< without a plan: a string for ever
    std::uint32_t uses = 0;            ///< since it was put
    std::uint32_t goodFor = kForever;  ///< so many uses
    /// Of a plan beside the client's own kernel: calls so far, the one with the next check, and
    /// that one while it lasts.
    std::uint32_t calls = 0, checkAt = SpeedCheck::kFirst;
    std::shared_ptr<SpeedCheck> check = nullptr;
    std::uint32_t asked = 0;  ///< how often the planner has been asked in a row
    Problem problem;

    bool isOf(const Key& key) const noexcept { return terms == key && problem == key.problem; }
    bool isUsedUp() const noexcept { return goodFor != kForever && uses >= goodFor; }
    /// Counts a use. False: the planner is to be asked again.
    bool use() noexcept { return goodFor == kForever || ++uses <= goodFor; }
  };

  /// Null when the key is not there, or the table is of another epoch. Programs call the same
  /// convolutions in the same order: what came next the last time is tried before the hash, which
  /// takes three times as long as a comparison.
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

  /// The same by a ticket that a call of the same problem has left, if its entry is still there.
  Entry* find(const Ticket& kept, const Terms& terms, std::uint64_t epoch) noexcept {
    const std::uint64_t ticket = kept.load(std::memory_order_relaxed);
    if (epoch != epoch_ || ticket == 0) return nullptr;
    Entry& entry = entries_[ticket % kSlots];
    return entry.ticket == ticket && entry.terms == terms ? &entry : nullptr;
  }
  /// By the ticket, if it finds one, else by the key; then the ticket is left. Null: there is none.
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

  /// What may be another answer before long. The first calls ask each time, as they may be all
  /// that there are; later ones more and more seldom, up to every kMostUses-th. Those of a problem
  /// that is being measured ask each time.
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
