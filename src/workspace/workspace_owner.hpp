// Workspace that μ-cuDNN owns: one total for all convolutions of a network, divided among them (WD)
// or shared by all streams in turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimizer/workspace_division.hpp"
#include "planner/planner.hpp"
#include "support/fork.hpp"
#include "workspace/arena_count.hpp"
#include "workspace/arena_streams.hpp"
#include "workspace/captured_memory.hpp"
#include "workspace/layout_report.hpp"
#include "workspace/overlap_watch.hpp"
#include "workspace/workspace_key.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// A layer of the client's network, or -1 (ucudnnLayerId_t).
using LayerId = long long;

/// The workspace of one network on one device: the handles with the same total and policies.
///
///  1. All regions lie in one allocation of the total's size, made before the first answer and
///     freed with the last handle. Captures alone have memory besides: CapturedMemory.
///  2. A new layout takes effect at once: the device itself orders the new users of a byte after
///     the old ones, the host waits for nothing.
///  3. During a stream capture nothing is solved, measured or laid out anew.
///  4. The layout begins as one arena that all streams use in turn. `divide` replaces it when the
///     network is known; `share` and `auto`, which are the same, when overlap is seen: ArenaCount.
///  5. What has not been seen for kIdleUses uses is forgotten, however many there are.
///
/// Thread-safe. `mutex_` guards all but the counters and the report, and is never held while
/// something is measured or cuDNN is asked; calls that know their share do without it.
class WorkspaceOwner {
 public:
  using Key = WorkspaceKey;

  /// What a call runs with.
  struct Share {
    std::shared_ptr<const Plan> plan;  ///< null: left to cuDNN, in the region if there is one
    std::shared_ptr<WorkspaceRegion> region;  ///< null: there is none, or the plan needs none
    bool lasts = false;                       ///< until the epoch changes
  };

  /// Throws std::bad_alloc.
  explicit WorkspaceOwner(const Key& key);
  ~WorkspaceOwner();
  WorkspaceOwner(const WorkspaceOwner&) = delete;
  WorkspaceOwner& operator=(const WorkspaceOwner&) = delete;

  /// False: the memory could not be had, and every convolution has its own workspace.
  bool works() const noexcept { return !failed_.load(std::memory_order_acquire); }
  /// Changes whenever a share may have changed, every kIdleUses uses, and when a graph has gone,
  /// whose memory the next call then frees.
  std::uint64_t epoch() const noexcept {
    return epoch_.load(std::memory_order_acquire) + watch_.version() + CapturedMemory::gone() +
           uses_.load(std::memory_order_relaxed) / kIdleUses;
  }
  OverlapWatch& watch() noexcept { return watch_; }

  /// A convolution of the network has been asked about. False: see `works`.
  bool add(const Problem& problem, LayerId layer, bool deterministic, bool capturing);

  /// What a call on a stream runs with. `request` says who asks; its limit is not used. Where
  /// nothing deterministic fits a call that asks for it, a plan that is not, with one warning.
  /// Throws Error.
  Share share(PlanRequest request, LayerId layer, const CallStream& stream);

  /// The region of a capture for work that has no plan. Null: none of that size.
  std::shared_ptr<WorkspaceRegion> captureRegion(const CallStream& stream, std::size_t bytes);
  /// REQUIRES: see CapturedMemory::release.
  void releaseGraphs() { captured_->release(key_); }

  /// The plan for a call that gets no region. Null: none. Throws Error.
  static std::shared_ptr<const Plan> planWithin(PlanRequest request,
                                                std::size_t limitBytes,
                                                bool capturing);

  /// A thousand iterations of AlexNet, fifty of a ResNet-50: evaluations in between are shorter.
  static constexpr std::uint64_t kIdleUses = 16384;

 private:
  struct ConvolutionKey {
    Problem problem;
    LayerId layer = -1;
    bool operator==(const ConvolutionKey& other) const noexcept {
      return layer == other.layer && problem == other.problem;
    }
  };
  struct Hash {
    std::size_t operator()(const ConvolutionKey& key) const noexcept {
      return key.problem.hash() ^ (static_cast<std::size_t>(key.layer) * 0x9E3779B97F4A7C15u);
    }
  };
  struct Convolution {
    ConvolutionKey key;
    bool deterministic = false;  ///< a call has asked for it
    bool adds = false;           ///< a call may have added to its output
    bool warned = false;         ///< and cannot have it
    bool called = false;
    bool placed = false;     ///< known to the layout
    std::uint64_t seen = 0;  ///< the latest use when it was looked up
    Share share;             ///< of a divided layout
    std::vector<Configuration> front;
    bool hasFront = false;
    std::string logged;  ///< its latest line, the report's
  };
  using Convolutions = std::vector<std::shared_ptr<Convolution>>;
  /// A division, and the plans of its segments.
  struct Divided {
    Convolutions convolutions;
    std::vector<PlanRequest> requests;
    std::vector<std::shared_ptr<const Plan>> plans;
    std::vector<std::size_t> bytes;
  };
  /// What is to be done before a share is given, without the lock.
  enum class Task { kNone, kDivide, kCompare };

  // workspace_owner.cpp
  bool requireMemory(bool capturing);
  const std::shared_ptr<Convolution>& find(const Problem& problem,
                                           LayerId layer,
                                           bool deterministic,
                                           Calls calls);
  PlanRequest requestFor(const PlanRequest& request, const Convolution& convolution) const;
  Share shareOfCall(const PlanRequest& request, Convolution& convolution, const CallStream& stream);
  std::shared_ptr<WorkspaceRegion> arenaOf(const CallStream& stream);
  Share shareOfArena(const PlanRequest& request,
                     Convolution& convolution,
                     std::shared_ptr<WorkspaceRegion> arena,
                     Measuring measuring);
  Share shareOfNewcomer(const PlanRequest& request, Convolution& convolution);
  Share shareOfCapture(const PlanRequest& request,
                       Convolution& convolution,
                       const CallStream& stream);
  std::shared_ptr<const Plan> planForShare(PlanRequest request,
                                           Convolution& convolution,
                                           std::size_t limitBytes,
                                           Measuring measuring);
  bool divides() const noexcept { return key_.policy == TotalWorkspacePolicy::kDivide; }
  void noticeNewcomer();
  void forgetIdle();
  Task nextTask();

  // workspace_layout.cpp
  void perform(Task task, const PlanRequest& request);
  void compare(const PlanRequest& request, const std::vector<WatchedUse>& seen);
  Convolutions network() const;
  std::optional<Divided> divide(const PlanRequest& request, const Convolutions& convolutions);
  /// Measured within each of the limits before.
  std::vector<Configuration> frontOf(const PlanRequest& request,
                                     Convolution& convolution,
                                     const std::vector<std::size_t>& limits);
  void layOut(std::size_t arenas, const std::optional<Divided>& divided);
  void clearLayout();
  std::shared_ptr<WorkspaceRegion> takeRegion(std::size_t bytes);
  std::size_t leftBytes() const noexcept { return totalBytes_ - usedBytes_; }
  std::size_t windowUses() const;
  void report(const PlanRequest& own, Convolution& convolution, const Plan* plan) {
    report_.add(own, convolution.key.layer, plan, totalBytes_, convolution.logged);
  }

  const Key key_;
  const std::size_t totalBytes_;  ///< what the allocator hands out without rounding it up
  const std::shared_ptr<CapturedMemory> captured_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> uses_{0};  ///< of all regions
  OverlapWatch watch_{uses_};

  ForkMutex mutex_;
  char* memory_ = nullptr;
  std::size_t usedBytes_ = 0;  ///< of the total, from its beginning, by the regions
  std::vector<std::shared_ptr<WorkspaceRegion>> regions_;  ///< segments, or arenas
  std::vector<std::shared_ptr<WorkspaceRegion>> busy_;     ///< retired, maybe still at work
  ArenaStreams streams_;
  std::unordered_map<ConvolutionKey, std::shared_ptr<Convolution>, Hash> byKey_;
  Convolutions convolutions_;    ///< as they came: in network order
  std::size_t wantedBytes_ = 0;  ///< the most workspace of a plan that has run
  bool divided_ = false;
  bool attempted_ = false;      ///< a division has been tried
  std::uint64_t layouts_ = 0;   ///< how many there have been
  std::uint64_t compared_ = 0;  ///< the watch's version
  /// A division lacks newcomers; it is made anew when as many calls as there are convolutions have
  /// passed without one.
  bool unsettled_ = false;
  std::size_t callsSinceNewcomer_ = 0;
  bool performing_ = false;      ///< one thread at a time
  std::uint64_t forgotten_ = 0;  ///< the use at which idle ones were forgotten last
  ArenaCount count_;
  LayoutReport report_;
};

/// The owner that the handles with this key share, for as long as one holds it. Throws
/// std::bad_alloc.
std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key);

}  // namespace ucudnn
