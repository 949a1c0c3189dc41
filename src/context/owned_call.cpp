#include "context/owned_call.hpp"

#include "context/call_path.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// The layout may change between the look-up and the turn, each time because another convolution or
// stream has come. A call that meets so many changes in a row runs without workspace.
constexpr int kAttempts = 16;

ConvolutionCall withWorkspace(const ConvolutionCall& call, void* memory, std::size_t bytes) {
  ConvolutionCall other = call;
  other.pointers.workspace = memory;
  other.pointers.workspaceBytes = bytes;
  return other;
}

void logLeft(const Problem& problem, const std::exception& error) noexcept {
  logInfo("{} is left to cuDNN: {}", Late{[&] { return problem.text(); }}, error.what());
}

}  // namespace

PlanRequest OwnedCall::request() const {
  PlanRequest wanted = context_.now_->request(key_.problem, 0, key_.deterministic);
  wanted.calls = plannedFor(kindOf(call_, key_.problem));
  return wanted;
}

std::optional<cudnnStatus_t> OwnedCall::run() noexcept {
  try {
    stream_ = streamOf(context_.handle_);
  } catch (const std::exception& error) {
    logLeft(key_.problem, error);
    return CallPath(context_, key_, call_, call_).descend(CallPath::kCudnn, reason::kFailed);
  }
  key_.stream = stream_.id;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t epoch = owner().epoch();
    const HotPlans::Entry* const hot =
        stream_.capturing ? nullptr : context_.hotPlans_.find(ticketOf(call_), key_, epoch);
    const bool isKnown =
        hot != nullptr && (!hot->plan || !isOnlyForOthers(*hot->plan, call_, key_.problem));
    const WorkspaceOwner::Grant found =
        isKnown ? WorkspaceOwner::Grant{hot->plan, hot->region} : findGrant(epoch);
    if (!owner().works()) return std::nullopt;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const auto turn = runInRegion(found, &status);
    if (turn == WorkspaceRegion::Turn::kReady) return status;
    if (turn == WorkspaceRegion::Turn::kUnavailable) break;
  }
  return runWithoutRegion();
}

/// A convolution that cuDNN cannot run without workspace keeps the caller's, and gets no grant. No
/// query comes before a fused call, so it gets a grant whatever it needs.
WorkspaceOwner::Grant OwnedCall::lookUpGrant() {
  const Snapshot& now = *context_.now_;
  const DeviceScope scope(now.device);
  WorkspaceOwner::Grant found;
  if (call_.fused != nullptr ||
      now.offerWithoutWorkspace(*now.offersOf(key_.problem, call_.descriptors)) != nullptr)
    found = owner().grant(request(), key_.layer, stream_);
  else
    found.isStable = true;
  if (found.plan && !context_.checkedPlans_.accepts(
                        context_.handle_, *found.plan, found.region ? found.region->bytes() : 0))
    found.plan = nullptr;
  if (!found.plan && !found.region && stream_.capturing) found.region = regionForUnplanned();
  return found;
}

WorkspaceOwner::Grant OwnedCall::findGrant(std::uint64_t epoch) noexcept {
  try {
    WorkspaceOwner::Grant found;
    try {
      found = lookUpGrant();
    } catch (const std::exception& error) {
      logLeft(key_.problem, error);
      found.isStable = true;
    }
    if (found.isStable && !stream_.capturing)
      context_.hotPlans_.put(key_, epoch, found.plan, found.region);
    return found;
  } catch (...) {  // out of memory for the table
    return {};
  }
}

/// The region of a call that is captured before it has been planned. Null, unless the call must be
/// deterministic and that needs workspace: for the algorithm that it names, else for another one.
std::shared_ptr<WorkspaceRegion> OwnedCall::regionForUnplanned() const {
  const Snapshot& now = *context_.now_;
  if (!key_.deterministic && !now.settings.deterministic) return nullptr;
  std::size_t least = 0;
  const Offers offers = now.offersOf(key_.problem, call_.descriptors);
  for (const KernelOffer& offer : *offers) {
    if (!offer.deterministic) continue;
    if (offer.workspaceBytes == 0) return nullptr;
    if (offer.kernel.id == call_.algorithm || least == 0) least = offer.workspaceBytes;
    if (offer.kernel.id == call_.algorithm) break;
  }
  return least > 0 ? owner().captureRegion(stream_, least) : nullptr;
}

WorkspaceRegion::Turn OwnedCall::runInRegion(const WorkspaceOwner::Grant& grant,
                                             cudnnStatus_t* status) noexcept {
  WorkspaceRegion* const region = grant.region.get();
  OverlapWatch& watch = owner().watch();
  const auto ticket = watch.begin(stream_);
  std::unique_lock<LongForkMutex> lock;
  const auto turn =
      region != nullptr ? region->begin(stream_, lock) : WorkspaceRegion::Turn::kReady;
  if (turn != WorkspaceRegion::Turn::kReady) {
    watch.end(ticket, stream_, nullptr, nullptr, key_.deterministic);
    return turn;
  }
  void* const memory = region != nullptr ? region->memory() : nullptr;
  const std::size_t bytes = region != nullptr ? region->bytes() : 0;
  const ConvolutionCall inRegion = withWorkspace(call_, memory, bytes);
  const bool callersIsLarger =
      call_.pointers.workspace != nullptr && call_.pointers.workspaceBytes > bytes;
  CallPath path(context_, key_, inRegion, callersIsLarger ? call_ : inRegion);
  *status = grant.plan ? path.runPlan(*grant.plan) : path.descend(CallPath::kAll, reason::kNoShare);
  if (region != nullptr) region->end(stream_);
  watch.end(ticket, stream_, region, grant.plan, key_.deterministic);
  return turn;
}

cudnnStatus_t OwnedCall::runWithoutRegion() noexcept {
  const ConvolutionCall without = withWorkspace(call_, nullptr, 0);
  CallPath path(context_, key_, without, call_);
  try {
    const DeviceScope scope(context_.now_->device);
    const auto plan = WorkspaceOwner::planWithin(request(), 0, stream_.capturing);
    if (plan && context_.checkedPlans_.accepts(context_.handle_, *plan, 0))
      return path.runPlan(*plan);
  } catch (const std::exception& error) {
    logLeft(key_.problem, error);
  }
  return path.descend(CallPath::kAll, reason::kNoShare);
}

}  // namespace ucudnn
