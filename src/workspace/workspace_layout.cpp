// How the owner lays out its memory: arenas that streams use in turn, or a segment for each
// convolution; and what it says of it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support/alignment.hpp"
#include "support/log.hpp"
#include "support/sizes.hpp"
#include "workspace/workspace_owner.hpp"

namespace ucudnn {
namespace {

#ifdef UCUDNN_DEBUG_GLPK_PRINT
constexpr const char* kDiagnosisDirectory = ".";  // as published
#else
constexpr const char* kDiagnosisDirectory = "";
#endif

// Retired regions are dropped when their work is over, which is asked only when there are many.
constexpr std::size_t kManyBusy = 64;

std::string describe(std::size_t arenas) {
  return arenas == 1 ? "one arena, used in turn" : std::to_string(arenas) + " arenas";
}

constexpr double kNoTime = std::numeric_limits<double>::infinity();

std::size_t arenaBytes(std::size_t totalBytes, std::size_t arenas) {
  return roundDownToAlignment(totalBytes / arenas);
}

/// What uses are predicted to take, each within so many bytes, as far as is known: a plan that
/// needs no more fits.
double plannedMs(PlanRequest request, const std::vector<WatchedUse>& seen, std::size_t bytes) {
  double sum = 0;
  for (const WatchedUse& watched : seen) {
    request.problem = watched.plan->problem;
    request.deterministic = watched.deterministic;
    request.calls =
        request.problem.overwrittenSampleBytes() > 0 ? Calls::kOverwriting : Calls::kAll;
    auto plan = WorkspaceOwner::planWithin(request, bytes, true);
    if (!plan && watched.plan->workspaceBytes <= bytes) plan = watched.plan;
    if (!plan) return kNoTime;
    sum += plan->predictedMs;
  }
  return sum;
}

}  // namespace

/// Two iterations of the network, or enough to tell.
std::size_t WorkspaceOwner::windowUses() const {
  constexpr std::size_t kFewest = 16, kMost = 256;
  return std::clamp(2 * convolutions_.size(), kFewest, kMost);
}

void WorkspaceOwner::perform(Task task, const PlanRequest& request) {
  struct Done {
    WorkspaceOwner& owner;
    ~Done() {
      const std::lock_guard lock(owner.mutex_);
      owner.performing_ = false;
    }
  } const done{*this};
  Convolutions convolutions;
  {
    const std::lock_guard lock(mutex_);
    compared_ = watch_.version();
    convolutions = network();
  }
  if (task == Task::kCompare) {
    if (const auto seen = watch_.take()) compare(request, *seen);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    attempted_ = true;
  }
  const auto divided = divide(request, convolutions);
  {
    const std::lock_guard lock(mutex_);
    unsettled_ = false;
    if (!divided) return;
    layOut(0, divided);
  }
  for (std::size_t i = 0; i < divided->convolutions.size(); ++i)
    report(divided->requests[i], *divided->convolutions[i], divided->plans[i].get());
}

void WorkspaceOwner::compare(const PlanRequest& request, const std::vector<WatchedUse>& seen) {
  std::vector<WorkspaceUse> uses;
  ArenaCount::Window window;
  for (const WatchedUse& watched : seen) {
    uses.push_back(watched.use);
    window.plannedMs += watched.plan->predictedMs;
  }
  window.overlap = overlapOf(uses);
  window.referenceMs = plannedMs(request, seen, totalBytes_);
  ArenaCount count = count_;  // written by this thread alone
  logDebug(
      "{} uses of workspace on {} streams in {}: {:.3f} ms of {:.3f}, one after another {:.3f}, at "
      "least {:.3f}; {} groups; predicted {:.3f}, in one arena {:.3f}",
      uses.size(),
      window.overlap.groupOf.size(),
      describe(count.current()),
      window.overlap.spanMs,
      window.overlap.elapsedMs,
      window.overlap.serialMs,
      window.overlap.leastMs,
      window.overlap.groups,
      window.plannedMs,
      window.referenceMs);
  const std::size_t arenas = count.next(window, [&](std::size_t wanted) {
    return plannedMs(request, seen, arenaBytes(totalBytes_, wanted));
  });
  const std::lock_guard lock(mutex_);
  // What has stood the trial is measured within its arenas: then plans may change once more.
  const bool isKept = count_.isOnTrial() && !count.isOnTrial();
  if (arenas != count_.current() || isKept) {
    std::map<std::uint64_t, std::size_t> arenaOf;
    for (const auto& [stream, group] : window.overlap.groupOf) arenaOf[stream] = group % arenas;
    streams_.assign(arenaOf, uses_.load(std::memory_order_relaxed));
    layOut(arenas, std::nullopt);
  }
  count_ = count;
  const std::size_t usesOfWindow = windowUses();
  const std::uint64_t rest =
      count.isComparing() ? usesOfWindow / 2 : count.windowsOfRest() * usesOfWindow;
  watch_.schedule(uses_.load(std::memory_order_relaxed) + rest, usesOfWindow);
}

/// At first all that were asked about; later those that have run. REQUIRES: the lock.
WorkspaceOwner::Convolutions WorkspaceOwner::network() const {
  Convolutions network;
  for (const auto& convolution : convolutions_)
    if (!attempted_ || convolution->called) network.push_back(convolution);
  return network;
}

std::vector<Configuration> WorkspaceOwner::frontOf(const PlanRequest& request,
                                                   Convolution& convolution,
                                                   const std::vector<std::size_t>& limits) {
  PlanRequest own;
  {
    const std::lock_guard lock(mutex_);
    if (convolution.hasFront) return convolution.front;
    own = requestFor(request, convolution);
    convolution.hasFront = true;
  }
  std::vector<Configuration> front;
  try {
    front = planner().front(own, Measuring::kNow, limits);
  } catch (const std::exception& error) {
    logWarn("{} takes no part in the division: {}", own.problem.text(), error.what());
  }
  const std::lock_guard lock(mutex_);
  convolution.front = front;
  return front;
}

/// Empty where there is no division, which is logged.
std::optional<WorkspaceOwner::Divided> WorkspaceOwner::divide(const PlanRequest& request,
                                                              const Convolutions& convolutions) {
  try {
    Divided divided;
    std::vector<DivisionItem> items;
    const auto limits = limitsToMeasure(totalBytes_, convolutions.size());
    for (const auto& convolution : convolutions) {
      const std::vector<Configuration> front = frontOf(request, *convolution, limits);
      if (front.empty()) continue;
      DivisionItem& item = items.emplace_back();
      for (const Configuration& point : front)
        item.options.push_back({point.timeMs, point.workspaceBytes});
      divided.convolutions.push_back(convolution);
      const std::lock_guard lock(mutex_);
      divided.requests.push_back(requestFor(request, *convolution));
    }
    DivisionSettings settings;
    settings.totalBytes = totalBytes_;
    settings.diagnosisDirectory = kDiagnosisDirectory;
    const auto division = divideWorkspace(items, settings);
    if (!division) {
      logWarn("{} of workspace cannot be divided among {} convolutions: they share it",
              formatSize(totalBytes_),
              items.size());
      return std::nullopt;
    }
    if (!division->optimal)
      logWarn("the division of {} of workspace is not proven to be the best: time was short",
              formatSize(totalBytes_));
    for (std::size_t i = 0; i < items.size(); ++i) {
      divided.bytes.push_back(items[i].options[division->chosen[i]].workspaceBytes);
      divided.plans.push_back(planWithin(divided.requests[i], divided.bytes.back(), false));
    }
    return divided;
  } catch (const std::exception& error) {
    logWarn("the workspace is shared, not divided: {}", error.what());
    return std::nullopt;
  }
}

/// REQUIRES: the lock.
void WorkspaceOwner::layOut(std::size_t arenas, const std::optional<Divided>& divided) {
  clearLayout();
  report_.clear();
  divided_ = divided.has_value();
  if (divided_) {
    for (std::size_t i = 0; i < divided->convolutions.size(); ++i) {
      Convolution& convolution = *divided->convolutions[i];
      convolution.share.plan = divided->plans[i];
      if (divided->bytes[i] > 0)
        convolution.share.region = takeRegion(roundUpToAlignment(divided->bytes[i]));
      convolution.placed = true;
      wantedBytes_ = std::max(wantedBytes_, divided->bytes[i]);
    }
    attempted_ = true;
  } else {
    const std::size_t each = arenaBytes(totalBytes_, arenas);
    for (std::size_t i = 0; i < arenas && each > 0; ++i) takeRegion(each);
  }
  logInfo("{} of workspace: {}",
          formatSize(totalBytes_),
          divided_ ? std::to_string(divided->convolutions.size()) + " convolutions divide it"
                   : describe(arenas));
}

/// REQUIRES: the lock. Waits for nothing.
void WorkspaceOwner::clearLayout() {
  ++layouts_;
  epoch_.fetch_add(1, std::memory_order_release);
  for (const auto& region : regions_) region->retire();
  busy_.insert(busy_.end(), regions_.begin(), regions_.end());
  if (busy_.size() > kManyBusy)
    busy_.erase(
        std::remove_if(
            busy_.begin(), busy_.end(), [](const auto& region) { return !region->isBusy(); }),
        busy_.end());
  regions_.clear();
  usedBytes_ = 0;
  for (const auto& convolution : convolutions_) {
    convolution->placed = false;
    convolution->share = {};
  }
}

/// REQUIRES: the lock; bytes <= leftBytes().
std::shared_ptr<WorkspaceRegion> WorkspaceOwner::takeRegion(std::size_t bytes) {
  char* const begin = memory_ + usedBytes_;
  std::vector<std::shared_ptr<WorkspaceRegion>> predecessors;
  for (const auto& region : busy_)
    if (region->overlaps(begin, bytes)) predecessors.push_back(region);
  regions_.push_back(
      std::make_shared<WorkspaceRegion>(begin, bytes, uses_, std::move(predecessors)));
  usedBytes_ += bytes;
  return regions_.back();
}

}  // namespace ucudnn
