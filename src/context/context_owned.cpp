// The way of queries and calls where μ-cuDNN owns the workspace.
#include <algorithm>
#include <cstdint>

#include "context/context.hpp"
#include "support/fork.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// The layout may change between the look-up and the turn, each time because another convolution or
// stream has come; a call that meets that many changes in a row runs without workspace.
constexpr int kAttempts = 16;

ConvolutionCall withWorkspace(const ConvolutionCall& call, void* memory, std::size_t bytes) {
  ConvolutionCall other = call;
  other.pointers.workspace = memory;
  other.pointers.workspaceBytes = bytes;
  return other;
}

}  // namespace

Context::Route Context::routeOf(const Problem& problem,
                                const ConvolutionDescriptors& descriptors,
                                LayerId layer) {
  return now_->routeOf(problem, descriptors, layer, ownsWorkspace() ? isCapturing(handle_) : false);
}

std::vector<AlgorithmPerformance> Context::algorithmsInOwned(
    const Problem& problem, const ConvolutionDescriptors& descriptors, std::size_t limitBytes) {
  const Offers offers = now_->offersOf(problem, descriptors);
  const KernelOffer* const first = now_->offerWithoutWorkspace(*offers);
  if (first == nullptr) return {};
  std::vector<AlgorithmPerformance> answer = {entryOf(*first, 0)};
  for (const KernelOffer& offer : *offers)
    if (&offer != first && offer.workspaceBytes <= limitBytes &&
        (offer.deterministic || !settings().deterministic))
      answer.push_back(entryOf(offer, offer.workspaceBytes));
  return answer;
}

PlanRequest Context::requestFor(const HotPlans::Key& key, const ConvolutionCall& call) const {
  PlanRequest wanted = request(key.problem, 0, key.deterministic);
  wanted.calls = callsOf(kindOf(call, key.problem));
  return wanted;
}

std::optional<cudnnStatus_t> Context::convolveInOwned(HotPlans::Key& key,
                                                      const ConvolutionCall& call) noexcept {
  const Operation operation = key.problem.operation;
  CallStream stream;
  try {
    stream = streamOf(handle_);
  } catch (const std::exception& error) {
    logInfo("{} is left to cuDNN: {}", Late{[&] { return key.problem.text(); }}, error.what());
    return bypass(operation, call, left::kFailed);
  }
  key.stream = stream.id;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t epoch = now_->owner->epoch();
    const HotPlans::Entry* const hot = stream.capturing ? nullptr : findHot(key, call, epoch);
    WorkspaceOwner::Share share;
    if (hot != nullptr && (!hot->plan || !isOnlyForOthers(*hot->plan, call, key.problem)))
      share = {hot->plan, hot->region};
    else
      share = shareForCall(key, call, stream, epoch);
    if (!now_->owner->works()) return std::nullopt;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const auto turn = runInRegion(key, share, call, stream, &status);
    if (turn == WorkspaceRegion::Turn::kReady) return status;
    if (turn == WorkspaceRegion::Turn::kUnavailable) break;
  }
  return runWithoutRegion(key, call, stream);
}

WorkspaceOwner::Share Context::shareForCall(const HotPlans::Key& key,
                                            const ConvolutionCall& call,
                                            const CallStream& stream,
                                            std::uint64_t epoch) noexcept {
  try {
    WorkspaceOwner::Share share;
    try {
      const DeviceScope scope(now_->device);
      // One that cuDNN cannot run without workspace keeps the caller's, and has no share.
      // Of a fused call nobody can ask before: it has one whatever it needs.
      if (call.fused != nullptr ||
          now_->offerWithoutWorkspace(*now_->offersOf(key.problem, call.descriptors)) != nullptr)
        share = now_->owner->share(requestFor(key, call), key.layer, stream);
      else
        share.lasts = true;
      if (share.plan &&
          !checkedPlans_.accepts(handle_, *share.plan, share.region ? share.region->bytes() : 0))
        share.plan = nullptr;
      if (!share.plan && !share.region && stream.capturing)
        share.region = regionForUnplanned(key, call, stream);
    } catch (const std::exception& error) {
      logInfo("{} is left to cuDNN: {}", Late{[&] { return key.problem.text(); }}, error.what());
      share.lasts = true;
    }
    if (share.lasts && !stream.capturing) hotPlans_.put(key, epoch, share.plan, share.region);
    return share;
  } catch (...) {  // out of memory for the table, or for the warning
    return {};
  }
}

/// What a call needs that is captured before it has been planned: nothing, or workspace for the
/// deterministic algorithm that it names, where others would not do.
std::shared_ptr<WorkspaceRegion> Context::regionForUnplanned(const HotPlans::Key& key,
                                                             const ConvolutionCall& call,
                                                             const CallStream& stream) {
  if (!key.deterministic && !settings().deterministic) return nullptr;
  std::size_t least = 0;
  const Offers offers = now_->offersOf(key.problem, call.descriptors);
  for (const KernelOffer& offer : *offers) {
    if (!offer.deterministic) continue;
    if (offer.workspaceBytes == 0) return nullptr;
    if (offer.kernel.id == call.algorithm || least == 0) least = offer.workspaceBytes;
    if (offer.kernel.id == call.algorithm) break;
  }
  return least > 0 ? now_->owner->captureRegion(stream, least) : nullptr;
}

WorkspaceRegion::Turn Context::runInRegion(const HotPlans::Key& key,
                                           const WorkspaceOwner::Share& share,
                                           const ConvolutionCall& call,
                                           const CallStream& stream,
                                           cudnnStatus_t* status) noexcept {
  WorkspaceRegion* const region = share.region.get();
  OverlapWatch& watch = now_->owner->watch();
  const auto ticket = watch.begin(stream);
  std::unique_lock<LongForkMutex> lock;
  const auto turn = region != nullptr ? region->begin(stream, lock) : WorkspaceRegion::Turn::kReady;
  if (turn == WorkspaceRegion::Turn::kReady) {
    void* const memory = region != nullptr ? region->memory() : nullptr;
    const std::size_t bytes = region != nullptr ? region->bytes() : 0;
    const ConvolutionCall inRegion = withWorkspace(call, memory, bytes);
    const bool callersIsLarger =
        call.pointers.workspace != nullptr && call.pointers.workspaceBytes > bytes;
    const ConvolutionCall& unplanned = callersIsLarger ? call : inRegion;
    *status = share.plan ? runPlanned(key, *share.plan, inRegion, unplanned)
                         : runUnplanned(key, unplanned, left::kNoShare);
    if (region != nullptr) region->end(stream);
  }
  if (turn == WorkspaceRegion::Turn::kReady)
    watch.end(ticket, stream, region, share.plan, key.deterministic);
  else
    watch.end(ticket, stream, nullptr, nullptr, key.deterministic);
  return turn;
}

cudnnStatus_t Context::runWithoutRegion(const HotPlans::Key& key,
                                        const ConvolutionCall& call,
                                        const CallStream& stream) noexcept {
  try {
    const DeviceScope scope(now_->device);
    const auto plan = WorkspaceOwner::planWithin(requestFor(key, call), 0, stream.capturing);
    if (plan && checkedPlans_.accepts(handle_, *plan, 0))
      return runPlanned(key, *plan, withWorkspace(call, nullptr, 0), call);
  } catch (const std::exception& error) {
    logInfo("{} is left to cuDNN: {}", Late{[&] { return key.problem.text(); }}, error.what());
  }
  return runUnplanned(key, call, left::kNoShare);
}

}  // namespace ucudnn
