#include "context/workspace_owner.hpp"

#include <algorithm>
#include <utility>

#include "support/log.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t roundDown(std::size_t bytes) noexcept {
  return bytes / kWorkspaceGranularity * kWorkspaceGranularity;
}

}  // namespace

WorkspaceOwner::WorkspaceOwner(const Key& key)
    : key_(key), totalBytes_(roundDown(key.totalBytes)) {}

WorkspaceOwner::~WorkspaceOwner() {
  for (const auto& region : regions_)
    if (region->isBound()) return;  // a graph may be launched at any time
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
  find(problem, layer, deterministic);
  return true;
}

WorkspaceOwner::Convolution& WorkspaceOwner::find(const Problem& problem,
                                                  LayerId layer,
                                                  bool deterministic) {
  Convolution*& place = byKey_[{problem, layer}];
  if (place == nullptr) {
    auto added = std::make_unique<Convolution>();
    added->key = {problem, layer};
    convolutions_.push_back(std::move(added));
    place = convolutions_.back().get();
    place->deterministic = deterministic;
  } else if (deterministic && !place->deterministic) {
    place->deterministic = true;
    place->hasFront = place->placed = false;
  }
  return *place;
}

PlanRequest WorkspaceOwner::requestFor(const PlanRequest& request,
                                       const Convolution& convolution) const {
  PlanRequest own = request;
  own.problem = convolution.key.problem;
  own.deterministic = convolution.deterministic || key_.deterministic;
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

WorkspaceOwner::Share WorkspaceOwner::share(PlanRequest request,
                                            LayerId layer,
                                            const CallStream& stream) {
  const std::lock_guard lock(mutex_);
  Convolution& convolution = find(request.problem, layer, request.deterministic);
  convolution.called = true;
  request = requestFor(request, convolution);
  if (!requireMemory(stream.capturing)) return {};
  if (stream.capturing) {
    if (layout_ == Layout::kDivided && convolution.placed) return convolution.share;
    if (layout_ == Layout::kShared) return shareOfArena(request, stream);
    return {planWithin(request, 0, true), nullptr, false};
  }
  const RelaxedCapture relaxed;
  const DeviceScope device(key_.device);
  const bool newStream = streams_.try_emplace(stream.id).second;
  ++callsSinceNewcomer_;
  if (layout_ == Layout::kNone || (newStream && layout_ == Layout::kShared) ||
      (unsettled_ && callsSinceNewcomer_ >= convolutions_.size()))
    solve(request);
  if (layout_ == Layout::kDivided) return shareOfSegment(request, convolution);
  const bool newcomer = !std::exchange(convolution.placed, true);
  if (newcomer && mayDivide()) noticeNewcomer();
  Share share = shareOfArena(request, stream);
  if (newcomer) reportNewcomer(request, convolution, share.plan);
  return share;
}

/// From here on a new division is waited for.
void WorkspaceOwner::noticeNewcomer() {
  callsSinceNewcomer_ = 0;
  if (unsettled_) return;
  unsettled_ = true;
  // The streams in use will all be seen again until it has settled.
  if (layout_ == Layout::kDivided) streams_.clear();
  epoch_.fetch_add(1, std::memory_order_release);
}

/// A newcomer's is cut from what the division has left.
WorkspaceOwner::Share WorkspaceOwner::shareOfSegment(const PlanRequest& request,
                                                     Convolution& convolution) {
  Share& own = convolution.share;
  if (!convolution.placed) {
    own.plan = planWithin(request, own.region ? own.region->bytes() : leftBytes(), false);
    if (own.plan && own.plan->workspaceBytes > 0 && !own.region)
      own.region = takeRegion(roundUpWorkspace(own.plan->workspaceBytes));
    convolution.placed = true;
    noticeNewcomer();
    reportNewcomer(request, convolution, own.plan);
  }
  Share share = own;
  if (!share.plan || share.plan->workspaceBytes == 0) share.region = nullptr;
  share.lasts = !unsettled_;
  return share;
}

WorkspaceOwner::Share WorkspaceOwner::shareOfArena(const PlanRequest& request,
                                                   const CallStream& stream) const {
  const auto use = streams_.find(stream.id);
  Share share;
  share.lasts = !unsettled_ && !stream.capturing;
  if (use != streams_.end()) share.region = use->second;
  // A capture often runs on a stream of its own: it may have the arena of the only other one.
  if (use == streams_.end() && streams_.size() == 1) share.region = streams_.begin()->second;
  share.plan = planWithin(request, share.region ? share.region->bytes() : 0, stream.capturing);
  if (!share.plan || share.plan->workspaceBytes == 0) share.region = nullptr;
  return share;
}

std::shared_ptr<WorkspaceOwner> workspaceOwner(const WorkspaceOwner::Key& key) {
  struct Owners {
    std::mutex mutex;
    std::map<WorkspaceOwner::Key, std::weak_ptr<WorkspaceOwner>> byKey;
  };
  static Owners& owners = *new Owners;  // never destroyed: handles are used in static destructors
  const std::lock_guard lock(owners.mutex);
  std::weak_ptr<WorkspaceOwner>& place = owners.byKey[key];
  std::shared_ptr<WorkspaceOwner> owner = place.lock();
  if (!owner) place = owner = std::make_shared<WorkspaceOwner>(key);
  return owner;
}

}  // namespace ucudnn
