// Workspace that μ-cuDNN owns: one total for all convolutions of a network, divided among them (WD)
// or shared by all streams in turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/planner.hpp"
#include "support/fork.hpp"
#include "workspace/arena_count.hpp"
#include "workspace/captured_memory.hpp"
#include "workspace/network.hpp"
#include "workspace/network_division.hpp"
#include "workspace/overlap_watch.hpp"
#include "workspace/placement_log.hpp"
#include "workspace/workspace_key.hpp"
#include "workspace/workspace_layout.hpp"
#include "workspace/workspace_region.hpp"

namespace ucudnn {

/// The workspace of one network on one device. A network is the handles with the same total and
/// policies.
///
///  1. All regions lie in one allocation of the total's size, made before the first answer and
///     freed with the last handle. Captures alone have memory besides: CapturedMemory.
///  2. During a stream capture nothing is solved, measured or laid out anew.
///  3. The layout begins as one arena that all streams use in turn. `divide` replaces it when the
///     network is known; `share` and `auto`, which are the same, when overlap is seen: ArenaCount.
///  4. A convolution that has not been seen for kIdleUses uses is forgotten.
///
/// Thread-safe. `mutex_` guards all but the counters and the placement log. It is never held while
/// something is measured or cuDNN is asked. Calls that know their grant do without it.
class WorkspaceOwner {
 public:
  using Key = WorkspaceKey;

  /// The plan and the region of a call.
  struct Grant {
    std::shared_ptr<const Plan> plan;  ///< null: left to cuDNN, in the region if there is one
    std::shared_ptr<WorkspaceRegion> region;  ///< null: there is none, or the plan needs none
    bool isStable = false;                    ///< until the epoch changes
  };

  /// Throws std::bad_alloc.
  explicit WorkspaceOwner(const Key& key);

  /// False if the memory could not be had. Every convolution then has its own workspace.
  bool works() const noexcept { return layout_.works(); }
  /// Changes whenever a grant may have changed, every kIdleUses uses, and when a graph has gone, so
  /// that the next call frees its memory.
  std::uint64_t epoch() const noexcept {
    return epoch_.load(std::memory_order_acquire) + watch_.version() + CapturedMemory::gone() +
           uses() / kIdleUses;
  }
  OverlapWatch& watch() noexcept { return watch_; }

  /// Adds a convolution that a query asked about. False: see `works`.
  bool add(const Problem& problem, LayerId layer, bool deterministic, bool capturing);

  /// The plan and the region of a call on a stream. `request` says who asks; its limit is not used.
  /// If a call asks for determinism and nothing deterministic fits, it gets another plan, with one
  /// warning. Throws Error.
  Grant grant(PlanRequest request, LayerId layer, const CallStream& stream);

  /// The region of a capture for work that has no plan. Null if there is none of that size.
  std::shared_ptr<WorkspaceRegion> captureRegion(const CallStream& stream, std::size_t bytes);
  /// REQUIRES: as for CapturedMemory::release.
  void releaseGraphs() { captured_->release(key_); }

  /// The plan for a call that gets no region. Null if there is none. Throws Error.
  static std::shared_ptr<const Plan> planWithin(PlanRequest request,
                                                std::size_t limitBytes,
                                                bool capturing);

  /// A thousand iterations of AlexNet, fifty of a ResNet-50: evaluations in between are shorter.
  static constexpr std::uint64_t kIdleUses = 16384;

 private:
  using Convolution = NetworkConvolution;
  /// Work to be done before a grant is given, without the lock.
  enum class Task { kNone, kDivide, kCompare };

  std::uint64_t uses() const noexcept { return uses_.load(std::memory_order_relaxed); }
  PlanRequest requestFor(const PlanRequest& request, const Convolution& convolution) const;
  std::shared_ptr<const Plan> planForGrant(PlanRequest request,
                                           Convolution& convolution,
                                           std::size_t limitBytes,
                                           Measuring measuring);
  Grant grantOfCall(const PlanRequest& request, Convolution& convolution, const CallStream& stream);
  Grant grantOfArena(const PlanRequest& request,
                     Convolution& convolution,
                     std::shared_ptr<WorkspaceRegion> arena,
                     Measuring measuring);
  Grant grantOfNewcomer(const PlanRequest& request, Convolution& convolution);
  Grant grantOfCapture(const PlanRequest& request,
                       Convolution& convolution,
                       const CallStream& stream);
  void noticeNewcomer();
  void forgetIdle();
  Task nextTask();
  void perform(Task task, const PlanRequest& request);
  void divide(const PlanRequest& request);
  void compare(const PlanRequest& request, const std::vector<WatchedUse>& seen);
  void layOutArenas(std::size_t arenas, const Overlap& seen);
  void startLayout();
  void logPlacement(const PlanRequest& own, Convolution& convolution, const Plan* plan) {
    placements_.add(own, convolution.layer, plan, layout_.totalBytes(), convolution.logged);
  }

  const Key key_;
  const std::shared_ptr<CapturedMemory> captured_;
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> uses_{0};  ///< of all regions
  OverlapWatch watch_{uses_};

  ForkMutex mutex_;
  WorkspaceLayout layout_;
  Network network_;
  std::size_t wantedBytes_ = 0;  ///< the most workspace of a plan that has run
  bool attempted_ = false;       ///< a division has been tried
  /// Newcomers are not in the division yet. It is made anew when as many calls as there are
  /// convolutions have come without another newcomer.
  bool unsettled_ = false;
  std::size_t callsSinceNewcomer_ = 0;
  bool performing_ = false;      ///< a thread does a task; one at a time
  std::uint64_t compared_ = 0;   ///< the watch's version at the latest comparison
  std::uint64_t forgotten_ = 0;  ///< the use at which idle ones were forgotten last
  ArenaCount count_;
  PlacementLog placements_;
};

/// The owner that the handles with this key share. It lives as long as one holds it. Throws
/// std::bad_alloc.
std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key);

}  // namespace ucudnn
