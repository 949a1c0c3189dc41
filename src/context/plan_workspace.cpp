#include "context/plan_workspace.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/algorithms.hpp"
#include "kernels/source.hpp"
#include "planner/configuration_times.hpp"
#include "support/bounded_map.hpp"
#include "support/fork.hpp"

namespace ucudnn {
namespace {

/// The workspace that clients were told for measured plans. A client that builds its plan again may
/// have no more memory than it was told first. So it is never told more, whatever has been measured
/// since. Thread-safe.
class ToldWorkspaces {
 public:
  struct Key {
    int machine;
    Problem problem;
    std::size_t neededBytes;
    std::size_t capBytes;
    bool deterministic;

    bool operator==(const Key& other) const noexcept {
      return machine == other.machine && problem == other.problem &&
             neededBytes == other.neededBytes && capBytes == other.capBytes &&
             deterministic == other.deterministic;
    }
  };

  bool knows(const Key& key) {
    const std::lock_guard lock(mutex_);
    return told_.peek(key) != nullptr;
  }
  /// The size to tell: `bytes`, or the smaller one that was told before. SIZE_MAX: none.
  std::size_t least(const Key& key, std::optional<Kernel> own, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes == SIZE_MAX && told_.peek(key) == nullptr) return bytes;
    auto& told = told_[key].emplace(own, bytes).first->second;
    return told = std::min(told, bytes);
  }

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return ProblemHash()(key.problem) ^ key.neededBytes;
    }
  };

  ForkMutex mutex_;
  /// Told sizes by the client's kernel; no kernel if its own does not run within the cap.
  BoundedMap<Key, std::map<std::optional<Kernel>, std::size_t>, KeyHash> told_{kMostProblems};
};

/// Never destroyed, like the planner.
ToldWorkspaces& toldWorkspaces() {
  static ToldWorkspaces& instance = *new ToldWorkspaces;
  return instance;
}

// More workspace than this makes parts of a large problem no faster.
constexpr std::size_t kMostForParts = std::size_t{1} << 30;

/// Answers one question.
class Answer {
 public:
  Answer(const Snapshot& snapshot, const ClientPlan& plan)
      : snapshot_(snapshot),
        plan_(plan),
        problem_(plan.problem),
        capBytes_(snapshot.settings.workspaceLimitBytes),
        fits_(plan.neededBytes <= capBytes_),
        deterministic_(plan.deterministic || snapshot.settings.deterministic) {}

  std::optional<PlanWorkspace> make() const {
    using Route = Snapshot::Route;
    const Route route = snapshot_.routeOf(problem_, plan_.descriptors, -1, plan_.capturing);
    if (route == Route::kUnshared) return std::nullopt;
    if (route == Route::kOwned) return PlanWorkspace{};
    const std::size_t mostBytes =
        std::min(std::max(plan_.neededBytes, bytesOfLargeInParts()), capBytes_);
    const bool isPlanned = !plan_.repeatsBits || snapshot_.frozen != nullptr;
    if (isPlanned && !mayWait())
      if (const auto told = measuredBytes(mostBytes)) return PlanWorkspace{*told, true};
    if (fits_) return PlanWorkspace{mostBytes};
    return unmeasured();
  }

 private:
  PlanRequest request(std::size_t limitBytes) const {
    PlanRequest wanted = snapshot_.queryFor(problem_, limitBytes, deterministic_);
    wanted.suitsEngines = plan_.suitsEngines;
    wanted.mayTellLess = true;
    return wanted;
  }

  /// Whether a plan would save too little memory to hold up the client. Then calls have it made.
  bool mayWait() const {
    return fits_ && !isWorthTelling(0, plan_.neededBytes) &&
           request(capBytes_).mayPlanInBackground();
  }

  /// Workspace of the parts in which a large problem runs until it is measured. Its own engine may
  /// need none, and be slow. 0 if the problem isn't large, or there are no such parts.
  std::size_t bytesOfLargeInParts() const {
    if (plan_.repeatsBits || !problem_.isLarge()) return 0;
    const auto kernel = plan_.kernel();
    if (!kernel) return 0;
    PlanRequest wanted = request(std::min(std::max(plan_.neededBytes, kMostForParts), capBytes_));
    wanted.own = OwnKernel{*kernel, plan_.neededBytes};
    const auto plan = planner().ownUnmeasured(wanted, measuringFor(false, plan_.capturing));
    return plan ? bytesToTell(plan->workspaceBytes, capBytes_) : 0;
  }

  /// The size to tell for a measured plan: at most `ownBytes`.
  std::size_t toTell(std::size_t planBytes, std::size_t ownBytes) const {
    if (fits_ && !isWorthTelling(planBytes, ownBytes)) return ownBytes;
    return std::min(bytesToTell(planBytes, capBytes_), ownBytes);
  }

  /// Workspace of a measured plan that is faster than the client's engine, or needs much less. No
  /// more than was told before.
  std::optional<std::size_t> measuredBytes(std::size_t ownBytes) const {
    const ToldWorkspaces::Key key{
        snapshot_.machine, problem_, plan_.neededBytes, capBytes_, deterministic_};
    PlanRequest wanted = request(ownBytes);
    const Measuring measuring = measuringFor(false, plan_.capturing);
    const auto nameOwn = [&] {
      if (const auto kernel = plan_.kernel()) wanted.own = OwnKernel{*kernel, plan_.neededBytes};
      return wanted.own.has_value();
    };
    // A plan that is measured now is measured beside the client's engine. No plan is built that is
    // known to be no faster.
    const bool isMeasuredNow = snapshot_.settings.benchmarkShare == kMeasureAlways;
    if (fits_ && (isMeasuredNow || toldWorkspaces().knows(key) ||
                  (!plan_.capturing && planner().knows(wanted))))
      static_cast<void>(nameOwn());
    PlanAnswer found = planner().answer(wanted, measuring);
    if (found.plan && fits_ && !wanted.own) {
      if (nameOwn())
        found = planner().answer(wanted, measuring);
      else if (snapshot_.frozen == nullptr)  // it can't be compared
        return std::nullopt;
    }
    std::size_t bytes = SIZE_MAX;
    if (found.plan) bytes = toTell(found.plan->workspaceBytes, ownBytes);
    const std::optional<Kernel> own =
        wanted.own ? std::optional<Kernel>(wanted.own->kernel) : std::nullopt;
    bytes = toldWorkspaces().least(key, own, bytes);
    return bytes == SIZE_MAX ? std::nullopt : std::optional<std::size_t>(bytes);
  }

  /// For an engine of the client's that needs more than the cap, before anything is measured. The
  /// engine runs on parts of the batch, or the first call finds a kernel. So the client is told the
  /// cap, which is less than cuDNN tells it.
  std::optional<PlanWorkspace> unmeasured() const {
    if (isOfferedWithin(snapshot_.handle, problem_, plan_.descriptors, capBytes_, deterministic_))
      return PlanWorkspace{capBytes_};
    // Only a split can run. If the settings might forbid it, it is looked for now.
    const bool mayForbid = snapshot_.settings.plansStrict || snapshot_.settings.maxError > 0;
    const bool runs =
        mayForbid
            ? planner().answer(request(capBytes_), measuringFor(true, plan_.capturing)).plan !=
                  nullptr
            : runsInParts();
    if (!runs) return std::nullopt;
    return PlanWorkspace{capBytes_};
  }

  /// Whether a kernel runs the smallest part of the problem within the cap. To ask about all takes
  /// ten times as long as about those that mostly do.
  bool runsInParts() const {
    const auto sizes = sizesFor(problem_, snapshot_.settings.batchSizePolicy);
    const Problem part = problem_.withBatch(sizes.front());
    const PlanRequest wanted = request(capBytes_);
    const Calls calls = plan_.suitsEngines ? wanted.callsAt(part.batch()) : Calls::kAll;
    const bool withEngines = plan_.suitsEngines && wanted.withEngines();
    const OfferBounds bounds{capBytes_, deterministic_, calls};
    if (withEngines && !part.isLarge() && likelyOneRuns(part, sizes.size() > 1, bounds))
      return true;
    const Offers all = snapshot_.kernelsOf(part, withEngines, calls);
    return std::any_of(
        all->begin(), all->end(), [&](const KernelOffer& offer) { return bounds.admit(offer); });
  }

  /// Where the batch may be divided: the client's own kernel, or one that cuDNN names first. Else
  /// the first in bands. The call looks for the same.
  bool likelyOneRuns(const Problem& part, bool isDivided, const OfferBounds& bounds) const {
    const cudnnHandle_t handle = snapshot_.handle;
    if (!isDivided) return offeredInBands(handle, part, bounds).has_value();
    const auto own = plan_.kernel();
    const auto offer =
        own ? offeredKernel(handle, part, nullptr, *own, nullptr, bounds.calls) : std::nullopt;
    return (offer && bounds.admit(*offer)) || offeredFirst(handle, part, bounds, true);
  }

  const Snapshot& snapshot_;
  const ClientPlan& plan_;
  const Problem& problem_;
  const std::size_t capBytes_;
  const bool fits_;  ///< whether the client's engine fits the cap
  const bool deterministic_;
};

}  // namespace

std::optional<PlanWorkspace> planWorkspace(const Snapshot& snapshot, const ClientPlan& plan) {
  return Answer(snapshot, plan).make();
}

}  // namespace ucudnn
