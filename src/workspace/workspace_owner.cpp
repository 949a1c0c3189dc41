#include "workspace/workspace_owner.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "division/workspace_division.hpp"
#include "support/alignment.hpp"
#include "support/log.hpp"
#include "support/shared_by_key.hpp"
#include "support/sizes.hpp"

namespace ucudnn {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();

std::string describe(std::size_t arenas) {
  return arenas == 1 ? "one arena, used in turn" : std::to_string(arenas) + " arenas";
}

/// The predicted time of uses, each within so many bytes, as far as plans are known.
double plannedMs(PlanRequest request, const std::vector<WatchedUse>& seen, std::size_t bytes) {
  double sum = 0;
  for (const WatchedUse& watched : seen) {
    request.problem = watched.plan->problem;
    request.deterministic = watched.deterministic;
    request.calls =
        request.problem.overwrittenSampleBytes() > 0 ? CallKind::kOverwriting : CallKind::kAdding;
    auto plan = WorkspaceOwner::planWithin(request, bytes, true);
    if (!plan && watched.plan->workspaceBytes <= bytes) plan = watched.plan;
    if (!plan) return kNoTime;
    sum += plan->predictedMs;
  }
  return sum;
}

/// Two iterations of the network, or enough to tell.
std::size_t windowUses(const Network& network) {
  constexpr std::size_t kFewest = 16, kMost = 256;
  return std::clamp(2 * network.all().size(), kFewest, kMost);
}

}  // namespace

WorkspaceOwner::WorkspaceOwner(const Key& key)
    : key_(key), captured_(capturedMemory()), layout_(key.device, key.totalBytes, uses_) {}

bool WorkspaceOwner::add(const Problem& problem,
                         LayerId layer,
                         bool deterministic,
                         bool capturing) {
  const std::lock_guard lock(mutex_);
  if (!capturing && !layout_.requireMemory()) return false;
  network_.find(problem, layer, deterministic, CallKind::kOverwriting, uses());
  return true;
}

PlanRequest WorkspaceOwner::requestFor(const PlanRequest& request,
                                       const Convolution& convolution) const {
  PlanRequest own = request;
  own.problem = convolution.problem;
  own.deterministic = convolution.deterministic || key_.deterministic;
  own.calls = convolution.adds ? CallKind::kAdding : CallKind::kOverwriting;
  own.limitBytes = layout_.totalBytes();
  return own;
}

std::shared_ptr<const Plan> WorkspaceOwner::planWithin(PlanRequest request,
                                                       std::size_t limitBytes,
                                                       bool capturing) {
  request.limitBytes = limitBytes;
  if (capturing) return planner().planWithoutMeasuring(request).value_or(nullptr);
  return planner().plan(request);
}

/// The plan within so many bytes. Determinism is given up if nothing deterministic is known to fit.
/// kIfKnown: measures only what has not been measured within a larger limit.
std::shared_ptr<const Plan> WorkspaceOwner::planForGrant(PlanRequest request,
                                                         Convolution& convolution,
                                                         std::size_t limitBytes,
                                                         Measuring measuring) {
  request.limitBytes = limitBytes;
  std::optional<std::shared_ptr<const Plan>> known;
  if (measuring != Measuring::kNow) known = planner().planWithoutMeasuring(request);
  if (!known && measuring != Measuring::kNever) known = planner().plan(request);
  if (!known || *known || !request.deterministic) return known.value_or(nullptr);
  request.deterministic = false;
  auto plan = planWithin(request, limitBytes, measuring == Measuring::kNever);
  if (!plan) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(convolution.warned, true))
    logWarn("{} N={} has no deterministic kernel within {}: it is not deterministic",
            request.problem.text(),
            request.problem.batch(),
            formatSize(limitBytes));
  return plan;
}

WorkspaceOwner::Grant WorkspaceOwner::grant(PlanRequest request,
                                            LayerId layer,
                                            const CallStream& stream) {
  std::shared_ptr<Convolution> convolution;
  const auto look = [&] {
    convolution =
        network_.find(request.problem, layer, request.deterministic, request.calls, uses());
    request = requestFor(request, *convolution);
  };
  if (stream.capturing) {
    {
      const std::lock_guard lock(mutex_);
      look();
    }
    return grantOfCapture(request, *convolution, stream);
  }
  const RelaxedCapture relaxed;
  const DeviceScope device(key_.device);
  captured_->freeGone();
  Task task = Task::kNone;
  {
    const std::lock_guard lock(mutex_);
    look();
    convolution->called = true;
    if (!layout_.requireMemory()) return {};
    forgetIdle();
    if (layout_.isEmpty() && layout_.totalBytes() > 0) layOutArenas(1, {});
    ++callsSinceNewcomer_;
    task = nextTask();
    performing_ = performing_ || task != Task::kNone;
  }
  if (task != Task::kNone) perform(task, request);
  return grantOfCall(request, *convolution, stream);
}

/// REQUIRES: the lock is held.
WorkspaceOwner::Task WorkspaceOwner::nextTask() {
  if (performing_ || layout_.totalBytes() == 0) return Task::kNone;
  if (!key_.divides) return watch_.version() != compared_ ? Task::kCompare : Task::kNone;
  const bool isDue = !attempted_ || (unsettled_ && callsSinceNewcomer_ >= network_.all().size());
  return isDue && workspaceDivisionAvailable() ? Task::kDivide : Task::kNone;
}

WorkspaceOwner::Grant WorkspaceOwner::grantOfCall(const PlanRequest& request,
                                                  Convolution& convolution,
                                                  const CallStream& stream) {
  std::shared_ptr<WorkspaceRegion> arena;
  Measuring measuring = Measuring::kNow;
  {
    const std::lock_guard lock(mutex_);
    if (layout_.isDivided() && convolution.placed) {
      return {convolution.plan, convolution.region, !unsettled_};
    }
    if (!layout_.isDivided()) arena = layout_.arenaOf(stream.id);
    if (!layout_.isDivided() && !arena && layout_.totalBytes() > 0) return {};
    if (count_.isTentative()) measuring = Measuring::kIfKnown;
  }
  return arena || layout_.totalBytes() == 0
             ? grantOfArena(request, convolution, std::move(arena), measuring)
             : grantOfNewcomer(request, convolution);
}

WorkspaceOwner::Grant WorkspaceOwner::grantOfArena(const PlanRequest& request,
                                                   Convolution& convolution,
                                                   std::shared_ptr<WorkspaceRegion> arena,
                                                   Measuring measuring) {
  Grant grant;
  grant.plan = planForGrant(request, convolution, arena ? arena->bytes() : 0, measuring);
  std::unique_lock lock(mutex_);
  if (!grant.plan || grant.plan->workspaceBytes > 0) grant.region = std::move(arena);
  if (layout_.isDivided()) return grant;  // laid out anew meanwhile
  convolution.plan = grant.plan;
  if (grant.plan) wantedBytes_ = std::max(wantedBytes_, grant.plan->workspaceBytes);
  const bool isNew = !std::exchange(convolution.placed, true);
  if (isNew) noticeNewcomer();
  grant.isStable = !unsettled_;
  lock.unlock();
  if (isNew) logPlacement(request, convolution, grant.plan.get());
  return grant;
}

/// Has the network divided anew, or restarts the watch. REQUIRES: the lock is held.
void WorkspaceOwner::noticeNewcomer() {
  callsSinceNewcomer_ = 0;
  if (!key_.divides && !count_.hasDecided() && !count_.isComparing())
    watch_.schedule(uses() + windowUses(network_) / 2, windowUses(network_));
  if (!key_.divides || unsettled_ || !workspaceDivisionAvailable()) return;
  unsettled_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
}

/// A newcomer to a division gets what is left of the total, or takes turns in the largest segment.
WorkspaceOwner::Grant WorkspaceOwner::grantOfNewcomer(const PlanRequest& request,
                                                      Convolution& convolution) {
  std::shared_ptr<WorkspaceRegion> own, largest;
  std::size_t bytes = 0;
  std::uint64_t layout = 0;
  {
    const std::lock_guard lock(mutex_);
    own = convolution.region;
    largest = layout_.largest();
    bytes = own ? own->bytes() : layout_.leftBytes();
    layout = layout_.number();
  }
  std::shared_ptr<const Plan> plan;
  if (!request.deterministic || !largest || bytes >= largest->bytes())
    plan = planForGrant(request, convolution, bytes, Measuring::kNow);
  else if (!(plan = planWithin(request, bytes, false)))
    plan = planForGrant(request, convolution, largest->bytes(), Measuring::kNow);
  std::unique_lock lock(mutex_);
  if (layout != layout_.number() || !layout_.isDivided()) return {std::move(plan), nullptr, false};
  const std::size_t wanted = plan ? roundUpToAlignment(plan->workspaceBytes) : 0;
  convolution.region = nullptr;
  if (!plan || (own && 0 < wanted && wanted <= own->bytes()))
    convolution.region = own ? own : largest;
  else if (wanted > 0)
    convolution.region = wanted <= layout_.leftBytes() ? layout_.takeRegion(wanted) : largest;
  convolution.plan = std::move(plan);
  convolution.placed = true;
  noticeNewcomer();
  Grant grant{convolution.plan, convolution.region, !unsettled_};
  lock.unlock();
  logPlacement(request, convolution, grant.plan.get());
  return grant;
}

std::shared_ptr<WorkspaceRegion> WorkspaceOwner::captureRegion(const CallStream& stream,
                                                               std::size_t bytes) {
  if (auto region = captured_->find(key_, stream.capture))
    return bytes <= region->bytes() ? region : nullptr;
  if (stream.capture == 0 || bytes > layout_.totalBytes() || bytes == 0) return nullptr;
  std::size_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    wanted = roundUpToAlignment(std::max(bytes, wantedBytes_));
  }
  return captured_->allocate(key_, stream, std::min(layout_.totalBytes(), wanted));
}

WorkspaceOwner::Grant WorkspaceOwner::grantOfCapture(const PlanRequest& request,
                                                     Convolution& convolution,
                                                     const CallStream& stream) {
  Grant grant;
  grant.region = captured_->find(key_, stream.capture);
  const std::size_t most = grant.region ? grant.region->bytes() : layout_.totalBytes();
  grant.plan = planForGrant(request, convolution, most, Measuring::kNever);
  if (!grant.plan) {  // it may have been measured within less
    const std::lock_guard lock(mutex_);
    grant.plan = convolution.plan;
  }
  if (!grant.plan) return grant;
  const std::size_t wanted = grant.plan->workspaceBytes;
  if (!grant.region) grant.region = captureRegion(stream, wanted);
  const std::size_t bytes = grant.region ? grant.region->bytes() : 0;
  if (wanted > bytes) grant.plan = planForGrant(request, convolution, bytes, Measuring::kNever);
  if (grant.plan && grant.plan->workspaceBytes == 0) grant.region = nullptr;
  return grant;
}

/// REQUIRES: the lock is held.
void WorkspaceOwner::forgetIdle() {
  const std::uint64_t now = uses();
  if (now < forgotten_ + kIdleUses) return;
  forgotten_ = now;
  // Convolutions in use are looked up every kIdleUses uses, when the epoch changes.
  network_.forgetIdle(now > 2 * kIdleUses ? now - 2 * kIdleUses : 0);
}

void WorkspaceOwner::perform(Task task, const PlanRequest& request) {
  struct Done {
    WorkspaceOwner& owner;
    ~Done() {
      const std::lock_guard lock(owner.mutex_);
      owner.performing_ = false;
    }
  } const done{*this};
  if (task == Task::kDivide) return divide(request);
  {
    const std::lock_guard lock(mutex_);
    compared_ = watch_.version();
  }
  if (const auto seen = watch_.take()) compare(request, *seen);
}

void WorkspaceOwner::divide(const PlanRequest& request) {
  std::vector<Segment> wanted;
  {
    const std::lock_guard lock(mutex_);
    // The first division has all convolutions that were asked about, later ones those that have
    // run.
    for (const auto& convolution : network_.all())
      if (!attempted_ || convolution->called)
        wanted.push_back({convolution, requestFor(request, *convolution), 0, nullptr});
    attempted_ = true;
  }
  const auto segments = divideNetwork(std::move(wanted), layout_.totalBytes());
  {
    const std::lock_guard lock(mutex_);
    unsettled_ = false;
    if (!segments) return;
    layout_.layOutSegments();
    startLayout();
    for (const Segment& segment : *segments) {
      segment.convolution->plan = segment.plan;
      if (segment.bytes > 0)
        segment.convolution->region = layout_.takeRegion(roundUpToAlignment(segment.bytes));
      segment.convolution->placed = true;
      wantedBytes_ = std::max(wantedBytes_, segment.bytes);
    }
    logInfo("{} of workspace: {} convolutions divide it",
            formatSize(layout_.totalBytes()),
            segments->size());
  }
  for (const Segment& segment : *segments)
    logPlacement(segment.request, *segment.convolution, segment.plan.get());
}

void WorkspaceOwner::compare(const PlanRequest& request, const std::vector<WatchedUse>& seen) {
  std::vector<WorkspaceUse> onStreams;
  ArenaCount::Window window;
  for (const WatchedUse& watched : seen) {
    onStreams.push_back(watched.use);
    window.plannedMs += watched.plan->predictedMs;
  }
  window.overlap = overlapOf(onStreams);
  window.referenceMs = plannedMs(request, seen, layout_.totalBytes());
  ArenaCount count = count_;  // only this thread writes it
  logDebug(
      "{} uses of workspace on {} streams in {}: {:.3f} ms, one after another {:.3f}; {} "
      "groups; predicted {:.3f}, in one arena {:.3f}",
      seen.size(),
      window.overlap.groupOf.size(),
      describe(count.current()),
      window.overlap.elapsedMs,
      window.overlap.serialMs,
      window.overlap.groups,
      window.plannedMs,
      window.referenceMs);
  const std::size_t arenas = count.next(window, [&](std::size_t wanted) {
    return plannedMs(request, seen, layout_.arenaBytes(wanted));
  });
  const std::lock_guard lock(mutex_);
  // Measurements within kept arenas follow, so plans may change once more.
  const bool isKept = count_.isTentative() && !count.isTentative();
  if (arenas != count_.current() || isKept) layOutArenas(arenas, window.overlap);
  count_ = count;
  const std::size_t usesOfWindow = windowUses(network_);
  const std::uint64_t rest =
      count.isComparing() ? usesOfWindow / 2 : count.windowsOfRest() * usesOfWindow;
  watch_.schedule(uses() + rest, usesOfWindow);
}

/// REQUIRES: the lock is held.
void WorkspaceOwner::layOutArenas(std::size_t arenas, const Overlap& seen) {
  layout_.layOutArenas(arenas, seen.groupOf);
  startLayout();
  logInfo("{} of workspace: {}", formatSize(layout_.totalBytes()), describe(arenas));
}

/// All that was placed in the former layout must be placed anew. REQUIRES: the lock is held.
void WorkspaceOwner::startLayout() {
  epoch_.fetch_add(1, std::memory_order_release);
  network_.displace();
  placements_.clear();
}

std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key) {
  static auto& all = *new SharedByKey<WorkspaceOwner::Key, WorkspaceOwner>;
  return all.get(key, key);
}

}  // namespace ucudnn
