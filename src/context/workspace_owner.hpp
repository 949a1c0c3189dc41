// Workspace that μ-cuDNN owns: one total for all convolutions of a network, divided among them (WD)
// or shared along each stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "context/workspace_region.hpp"
#include "optimizer/workspace_division.hpp"
#include "planner/planner.hpp"
#include "support/settings.hpp"

namespace ucudnn {

/// A layer of the client's network, or -1 (ucudnnLayerId_t).
using LayerId = long long;

/// The workspace of one network on one device: the handles with the same total and policies.
///
///  1. All regions lie in one allocation of the total's size, made before the first answer. Nothing
///     more is ever allocated; it is freed with the last handle, but never once a graph may use it.
///  2. A new layout takes effect at once: the device itself orders the new users of a byte after
///     the old ones, the host waits for nothing.
///  3. During a stream capture nothing is solved, allocated, measured or laid out anew. Once a
///     region has been captured the layout stays; later convolutions and streams get what is left.
///
/// Thread-safe. `mutex_` guards all but the counters and is held while the network is planned;
/// calls that know their share do without it. Locked before the planner's and the regions'.
class WorkspaceOwner {
 public:
  /// Handles that agree in these are one network.
  struct Key {
    int device = 0;
    std::size_t totalBytes = 0;
    TotalWorkspacePolicy policy = TotalWorkspacePolicy::kAuto;
    BatchSizePolicy batchSizePolicy = BatchSizePolicy::kPowerOfTwo;
    bool deterministic = false;

    bool operator<(const Key& other) const noexcept { return tied() < other.tied(); }

   private:
    std::tuple<int, std::size_t, TotalWorkspacePolicy, BatchSizePolicy, bool> tied()
        const noexcept {
      return {device, totalBytes, policy, batchSizePolicy, deterministic};
    }
  };

  /// What a convolution call runs with.
  struct Share {
    std::shared_ptr<const Plan> plan;         ///< null: left to cuDNN
    std::shared_ptr<WorkspaceRegion> region;  ///< null: the plan needs no workspace
    bool lasts = false;                       ///< until the epoch changes
  };

  explicit WorkspaceOwner(const Key& key);
  ~WorkspaceOwner();
  WorkspaceOwner(const WorkspaceOwner&) = delete;
  WorkspaceOwner& operator=(const WorkspaceOwner&) = delete;

  /// False: the memory could not be had, and every convolution has its own workspace.
  bool works() const noexcept { return !failed_.load(std::memory_order_acquire); }
  /// Changes whenever a share may have changed.
  std::uint64_t epoch() const noexcept { return epoch_.load(std::memory_order_acquire); }

  /// A convolution of the network has been asked about. False: see `works`.
  bool add(const Problem& problem, LayerId layer, bool deterministic, bool capturing);

  /// What a call on a stream runs with; the first one plans the network. `request` says who asks;
  /// its limit is not used. Throws Error.
  Share share(PlanRequest request, LayerId layer, const CallStream& stream);

  /// The plan for a call that gets no region. Null: none. Throws Error.
  static std::shared_ptr<const Plan> planWithin(PlanRequest request,
                                                std::size_t limitBytes,
                                                bool capturing);

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
    bool called = false;
    bool placed = false;  ///< known to the layout
    Share share;          ///< of a divided layout
    std::vector<Configuration> front;
    bool hasFront = false;
  };
  /// A division, and which option each convolution gets.
  struct Chosen {
    std::vector<Convolution*> convolutions;
    Division division;
  };
  enum class Layout { kNone, kDivided, kShared };
  /// Sums over the convolutions that the log has named since the latest layout.
  struct Reported {
    std::size_t convolutions = 0, nativeBytes = 0;
    double timeMs = 0, nativeMs = 0;
  };

  bool requireMemory(bool capturing);
  Convolution& find(const Problem& problem, LayerId layer, bool deterministic);
  PlanRequest requestFor(const PlanRequest& request, const Convolution& convolution) const;
  void noticeNewcomer();
  Share shareOfSegment(const PlanRequest& request, Convolution& convolution);
  Share shareOfArena(const PlanRequest& request, const CallStream& stream) const;

  bool mayDivide() const noexcept;
  void solve(const PlanRequest& request);
  std::vector<Convolution*> network() const;
  std::optional<Chosen> divide(const PlanRequest& request,
                               const std::vector<Convolution*>& convolutions) const;
  bool isDivisionFaster(const Chosen& chosen) const;
  void findFront(const PlanRequest& request, Convolution& convolution) const;
  bool isFrozen() const;
  bool clearLayout();
  void layOutSegments(const PlanRequest& request, const Chosen& chosen);
  void layOutArenas();
  std::shared_ptr<WorkspaceRegion> takeRegion(std::size_t bytes);
  std::size_t leftBytes() const noexcept { return totalBytes_ - usedBytes_; }
  void forgetIdleStreams();
  void report(const PlanRequest& request, const std::vector<Convolution*>& convolutions);
  void reportNewcomer(const PlanRequest& request,
                      const Convolution& convolution,
                      const std::shared_ptr<const Plan>& plan);
  void reportPlan(const PlanRequest& request,
                  const Convolution& convolution,
                  const std::shared_ptr<const Plan>& plan);

  const Key key_;
  const std::size_t totalBytes_;  ///< what the allocator hands out without rounding it up
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> uses_{0};  ///< of all regions

  std::mutex mutex_;
  char* memory_ = nullptr;
  std::size_t usedBytes_ = 0;  ///< of the total, from its beginning, by the regions
  std::vector<std::shared_ptr<WorkspaceRegion>> regions_;
  std::vector<std::shared_ptr<WorkspaceRegion>> busy_;  ///< retired, maybe still at work
  std::unordered_map<ConvolutionKey, Convolution*, Hash> byKey_;
  std::vector<std::unique_ptr<Convolution>> convolutions_;  ///< as they came: in network order
  /// The streams in use, by id, and in a shared layout their arenas.
  std::map<std::uint64_t, std::shared_ptr<WorkspaceRegion>> streams_;
  Layout layout_ = Layout::kNone;
  /// A division lacks newcomers; it is made anew when as many calls as there are convolutions have
  /// passed without one.
  bool unsettled_ = false;
  std::size_t callsSinceNewcomer_ = 0;
  Reported reported_;
};

/// The owner that the handles with this key share, for as long as one holds it. Throws
/// std::bad_alloc.
std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key);

}  // namespace ucudnn
