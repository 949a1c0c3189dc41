#include "workspace/workspace_owner.hpp"

#include <algorithm>
#include <utility>

#include "support/alignment.hpp"
#include "support/log.hpp"
#include "support/shared_by_key.hpp"
#include "support/sizes.hpp"

namespace ucudnn {

WorkspaceOwner::WorkspaceOwner(const Key& key)
    : key_(key), totalBytes_(roundDownToAlignment(key.totalBytes)), captured_(capturedMemory()) {}

WorkspaceOwner::~WorkspaceOwner() {
  if (memory_ == nullptr) return;
  try {
    const RelaxedCapture relaxed;
    const DeviceScope device(key_.device);
    static_cast<void>(cudaFree(memory_));  // waits for what is still at work
  } catch (const std::exception&) {        // the process ends, and with it the memory
  }
}

bool WorkspaceOwner::requireMemory(bool capturing) {
  if (memory_ != nullptr || totalBytes_ == 0 || capturing) return true;
  if (!works()) return false;
  const RelaxedCapture relaxed;
  const DeviceScope device(key_.device);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, totalBytes_);
  if (error == cudaSuccess) {
    memory_ = static_cast<char*>(memory);
    return true;
  }
  static_cast<void>(cudaGetLastError());
  failed_.store(true, std::memory_order_release);
  logWarn(
      "the total workspace of {} can't be allocated on device {} ({}): each convolution keeps "
      "to the workspace of its caller",
      formatSize(totalBytes_),
      key_.device,
      cudaGetErrorName(error));
  return false;
}

bool WorkspaceOwner::add(const Problem& problem,
                         LayerId layer,
                         bool deterministic,
                         bool capturing) {
  const std::lock_guard lock(mutex_);
  if (!requireMemory(capturing)) return false;
  find(problem, layer, deterministic, Calls::kOverwriting);
  return true;
}

const std::shared_ptr<WorkspaceOwner::Convolution>& WorkspaceOwner::find(const Problem& problem,
                                                                         LayerId layer,
                                                                         bool deterministic,
                                                                         Calls calls) {
  std::shared_ptr<Convolution>& place = byKey_[{problem, layer}];
  if (place == nullptr) {
    auto added = std::make_shared<Convolution>();
    added->key = {problem, layer};
    added->deterministic = deterministic;
    // What can't borrow gains nothing by knowing; and few calls add but those of filter gradients.
    added->adds = calls == Calls::kAll || problem.overwrittenSampleBytes() == 0;
    convolutions_.push_back(added);
    place = std::move(added);
  } else if ((deterministic && !place->deterministic) || (calls == Calls::kAll && !place->adds)) {
    place->deterministic = deterministic || place->deterministic;
    place->adds = calls == Calls::kAll || place->adds;
    place->hasFront = place->placed = false;
  }
  place->seen = uses_.load(std::memory_order_relaxed);
  return place;
}

PlanRequest WorkspaceOwner::requestFor(const PlanRequest& request,
                                       const Convolution& convolution) const {
  PlanRequest own = request;
  own.problem = convolution.key.problem;
  own.deterministic = convolution.deterministic || key_.deterministic;
  own.calls = convolution.adds ? Calls::kAll : Calls::kOverwriting;
  own.limitBytes = totalBytes_;
  return own;
}

std::shared_ptr<const Plan> WorkspaceOwner::planWithin(PlanRequest request,
                                                       std::size_t limitBytes,
                                                       bool capturing) {
  request.limitBytes = limitBytes;
  if (capturing) return planner().planWithoutMeasuring(request).value_or(nullptr);
  return planner().plan(request);
}

/// Determinism is given up where it is known that nothing deterministic fits. kIfKnown: measures
/// only what has not been measured within any more.
std::shared_ptr<const Plan> WorkspaceOwner::planForShare(PlanRequest request,
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

WorkspaceOwner::Share WorkspaceOwner::share(PlanRequest request,
                                            LayerId layer,
                                            const CallStream& stream) {
  std::shared_ptr<Convolution> convolution;
  if (stream.capturing) {
    {
      const std::lock_guard lock(mutex_);
      convolution = find(request.problem, layer, request.deterministic, request.calls);
      request = requestFor(request, *convolution);
    }
    return shareOfCapture(request, *convolution, stream);
  }
  const RelaxedCapture relaxed;
  const DeviceScope device(key_.device);
  captured_->freeGone();
  Task task = Task::kNone;
  {
    const std::lock_guard lock(mutex_);
    convolution = find(request.problem, layer, request.deterministic, request.calls);
    convolution->called = true;
    request = requestFor(request, *convolution);
    if (!requireMemory(false)) return {};
    forgetIdle();
    if (regions_.empty() && totalBytes_ > 0) layOut(1, std::nullopt);
    ++callsSinceNewcomer_;
    task = nextTask();
    performing_ = performing_ || task != Task::kNone;
  }
  if (task != Task::kNone) perform(task, request);
  return shareOfCall(request, *convolution, stream);
}

/// REQUIRES: the lock.
WorkspaceOwner::Task WorkspaceOwner::nextTask() {
  if (performing_ || totalBytes_ == 0) return Task::kNone;
  if (!divides()) return watch_.version() != compared_ ? Task::kCompare : Task::kNone;
  const bool isDue = !attempted_ || (unsettled_ && callsSinceNewcomer_ >= convolutions_.size());
  return isDue && workspaceDivisionAvailable() ? Task::kDivide : Task::kNone;
}

WorkspaceOwner::Share WorkspaceOwner::shareOfCall(const PlanRequest& request,
                                                  Convolution& convolution,
                                                  const CallStream& stream) {
  std::shared_ptr<WorkspaceRegion> arena;
  Measuring measuring = Measuring::kNow;
  {
    const std::lock_guard lock(mutex_);
    if (divided_ && convolution.placed) {
      Share share = convolution.share;
      share.lasts = !unsettled_;
      return share;
    }
    if (!divided_) arena = arenaOf(stream);
    if (!divided_ && !arena && totalBytes_ > 0) return {};
    if (count_.isOnTrial()) measuring = Measuring::kIfKnown;
  }
  return arena || totalBytes_ == 0 ? shareOfArena(request, convolution, std::move(arena), measuring)
                                   : shareOfNewcomer(request, convolution);
}

/// REQUIRES: the lock, arenas.
std::shared_ptr<WorkspaceRegion> WorkspaceOwner::arenaOf(const CallStream& stream) {
  if (regions_.size() < 2) return regions_.empty() ? nullptr : regions_.front();
  std::size_t leastUsed = 0;
  for (std::size_t i = 0; i < regions_.size(); ++i)
    if (regions_[i]->lastUse() < regions_[leastUsed]->lastUse()) leastUsed = i;
  const std::uint64_t now = uses_.load(std::memory_order_relaxed);
  return regions_[streams_.arenaOf(stream.id, leastUsed, now) % regions_.size()];
}

WorkspaceOwner::Share WorkspaceOwner::shareOfArena(const PlanRequest& request,
                                                   Convolution& convolution,
                                                   std::shared_ptr<WorkspaceRegion> arena,
                                                   Measuring measuring) {
  Share share;
  share.plan = planForShare(request, convolution, arena ? arena->bytes() : 0, measuring);
  std::unique_lock lock(mutex_);
  if (!share.plan || share.plan->workspaceBytes > 0) share.region = std::move(arena);
  if (divided_) return share;  // laid out anew meanwhile
  convolution.share.plan = share.plan;
  if (share.plan) wantedBytes_ = std::max(wantedBytes_, share.plan->workspaceBytes);
  const bool isNew = !std::exchange(convolution.placed, true);
  if (isNew) noticeNewcomer();
  share.lasts = !unsettled_;
  lock.unlock();
  if (isNew) report(request, convolution, share.plan.get());
  return share;
}

/// REQUIRES: the lock. From here on a new division is waited for; or the watch begins anew.
void WorkspaceOwner::noticeNewcomer() {
  callsSinceNewcomer_ = 0;
  if (!divides() && !count_.hasDecided() && !count_.isComparing())
    watch_.schedule(uses_.load(std::memory_order_relaxed) + windowUses() / 2, windowUses());
  if (!divides() || unsettled_ || !workspaceDivisionAvailable()) return;
  unsettled_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
}

/// A newcomer to a division gets what it has left, else its turn in the largest segment.
WorkspaceOwner::Share WorkspaceOwner::shareOfNewcomer(const PlanRequest& request,
                                                      Convolution& convolution) {
  std::shared_ptr<WorkspaceRegion> own, largest;
  std::size_t bytes = 0;
  std::uint64_t layout = 0;
  {
    const std::lock_guard lock(mutex_);
    own = convolution.share.region;
    for (const auto& region : regions_)
      if (!largest || region->bytes() > largest->bytes()) largest = region;
    bytes = own ? own->bytes() : leftBytes();
    layout = layouts_;
  }
  std::shared_ptr<const Plan> plan;
  if (!request.deterministic || !largest || bytes >= largest->bytes())
    plan = planForShare(request, convolution, bytes, Measuring::kNow);
  else if (!(plan = planWithin(request, bytes, false)))
    plan = planForShare(request, convolution, largest->bytes(), Measuring::kNow);
  std::unique_lock lock(mutex_);
  if (layout != layouts_ || !divided_) return {std::move(plan), nullptr, false};
  Share& share = convolution.share;
  share = {std::move(plan), nullptr, false};
  if (!share.plan) {
    share.region = own ? own : largest;
  } else if (const std::size_t wanted = roundUpToAlignment(share.plan->workspaceBytes);
             wanted > 0) {
    if (own && wanted <= own->bytes())
      share.region = own;
    else
      share.region = wanted <= leftBytes() ? takeRegion(wanted) : largest;
  }
  convolution.placed = true;
  noticeNewcomer();
  Share answer = share;
  answer.lasts = !unsettled_;
  lock.unlock();
  report(request, convolution, answer.plan.get());
  return answer;
}

std::shared_ptr<WorkspaceRegion> WorkspaceOwner::captureRegion(const CallStream& stream,
                                                               std::size_t bytes) {
  if (auto region = captured_->find(key_, stream.capture))
    return bytes <= region->bytes() ? region : nullptr;
  const bool asNeeded = key_.graphBytes == kGraphWorkspaceAsNeeded;
  std::size_t most = asNeeded ? totalBytes_ : roundDownToAlignment(key_.graphBytes);
  if (stream.capture == 0 || bytes > most || bytes == 0) return nullptr;
  if (asNeeded) {
    const std::lock_guard lock(mutex_);
    most = std::min(most, roundUpToAlignment(std::max(bytes, wantedBytes_)));
  }
  return captured_->allocate(key_, stream, most);
}

WorkspaceOwner::Share WorkspaceOwner::shareOfCapture(const PlanRequest& request,
                                                     Convolution& convolution,
                                                     const CallStream& stream) {
  Share share;
  share.region = captured_->find(key_, stream.capture);
  const std::size_t most =
      share.region ? share.region->bytes() : std::min(totalBytes_, key_.graphBytes);
  share.plan = planForShare(request, convolution, most, Measuring::kNever);
  if (!share.plan) {  // measured within less
    const std::lock_guard lock(mutex_);
    share.plan = convolution.share.plan;
  }
  if (!share.plan) return share;
  const std::size_t wanted = share.plan->workspaceBytes;
  if (!share.region) share.region = captureRegion(stream, wanted);
  const std::size_t bytes = share.region ? share.region->bytes() : 0;
  if (wanted > bytes) share.plan = planForShare(request, convolution, bytes, Measuring::kNever);
  if (share.plan && share.plan->workspaceBytes == 0) share.region = nullptr;
  return share;
}

/// REQUIRES: the lock.
void WorkspaceOwner::forgetIdle() {
  const std::uint64_t now = uses_.load(std::memory_order_relaxed);
  if (now < forgotten_ + kIdleUses) return;
  forgotten_ = now;
  // What is in use is looked up every kIdleUses uses, when the epoch changes.
  const std::uint64_t before = now > 2 * kIdleUses ? now - 2 * kIdleUses : 0;
  streams_.forgetIdleStreams(before);
  convolutions_.erase(std::remove_if(convolutions_.begin(),
                                     convolutions_.end(),
                                     [&](const auto& convolution) {
                                       if (convolution->seen >= before) return false;
                                       byKey_.erase(convolution->key);
                                       return true;
                                     }),
                      convolutions_.end());
}

std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key) {
  static auto& all = *new SharedByKey<WorkspaceOwner::Key, WorkspaceOwner>;
  return all.get(key, key);
}

}  // namespace ucudnn
