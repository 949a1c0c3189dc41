// The way of queries and calls where μ-cuDNN owns the workspace.
#include <algorithm>

#include "context/context.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// The layout may change between the look-up and the turn, each time because another convolution or
// stream has come; a call that meets that many changes in a row runs without workspace.
constexpr int kAttempts = 4;

ConvolutionCall withWorkspace(const ConvolutionCall& call, void* memory, std::size_t bytes) {
  ConvolutionCall other = call;
  other.pointers.workspace = memory;
  other.pointers.workspaceBytes = bytes;
  return other;
}

}  // namespace

const std::vector<KernelOffer>& Context::offersOf(const Problem& problem,
                                                  const ConvolutionDescriptors& descriptors) {
  if (const auto* const known = offers_.find(problem)) return *known;
  return offers_[problem] = offeredKernels(handle_, problem, descriptors);
}

/// One that leaves the choice of kernels open where there is one: naming a deterministic algorithm
/// at the call asks for a deterministic plan.
std::optional<int> Context::algorithmWithoutWorkspace(
    const std::vector<KernelOffer>& offers) const {
  std::optional<int> found;
  for (const KernelOffer& offer : offers) {
    if (offer.workspaceBytes > 0 || (settings_.deterministic && !offer.deterministic)) continue;
    if (!found || !offer.deterministic) found = offer.kernel.algorithm;
    if (!offer.deterministic) break;
  }
  return found;
}

bool Context::addToNetwork(const Problem& problem,
                           const ConvolutionDescriptors& descriptors,
                           LayerId layer,
                           std::vector<AlgorithmPerformance>* answer) {
  const std::vector<KernelOffer>& offers = offersOf(problem, descriptors);
  const auto first = algorithmWithoutWorkspace(offers);
  if (!first) return false;
  const bool deterministic = isDeterministic(problem.operation, *first);
  owner_->add(problem, layer, deterministic, isCapturing());
  if (answer == nullptr) return true;
  // Nothing has been measured: the times are unknown, as cuDNN's heuristics leave them.
  const auto entry = [&](int algorithm, std::size_t memory) {
    answer->push_back({algorithm,
                       CUDNN_STATUS_SUCCESS,
                       -1.0F,
                       memory,
                       isDeterministic(problem.operation, algorithm) ? CUDNN_DETERMINISTIC
                                                                     : CUDNN_NON_DETERMINISTIC,
                       static_cast<cudnnMathType_t>(problem.mathType)});
  };
  entry(*first, 0);
  for (const KernelOffer& offer : offers)
    if (offer.kernel.algorithm != *first) entry(offer.kernel.algorithm, offer.workspaceBytes);
  return true;
}

ConvolutionCall Context::runnable(Operation operation, const ConvolutionCall& call) noexcept {
  std::size_t bytes = 0;
  if (nativeWorkspaceSize(handle_, operation, call.descriptors, call.algorithm, &bytes) ==
          CUDNN_STATUS_SUCCESS &&
      bytes <= (call.pointers.workspace != nullptr ? call.pointers.workspaceBytes : 0))
    return call;
  ConvolutionCall other = call;
  try {
    Problem problem;
    if (!readProblem(operation, call.descriptors, problem)) return call;
    for (const KernelOffer& offer : offeredKernels(handle_, problem, call.descriptors)) {
      if (offer.workspaceBytes > 0 ||
          (!offer.deterministic && isDeterministic(operation, call.algorithm)))
        continue;
      other.algorithm = offer.kernel.algorithm;
      break;
    }
  } catch (const std::exception&) {  // no memory for the list
  }
  return other;
}

std::optional<cudnnStatus_t> Context::convolveInOwned(HotPlans::Key& key,
                                                      const ConvolutionCall& call) noexcept {
  const Operation operation = key.problem.operation;
  CallStream stream;
  try {
    stream = streamOf(handle_);
  } catch (const std::exception& error) {
    logWarn("{} is left to cuDNN: {}", key.problem.text(), error.what());
    return bypass(operation, call);
  }
  key.stream = stream.id;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t epoch = owner_->epoch();
    const HotPlans::Entry* const hot = hotPlans_.find(key, epoch);
    WorkspaceOwner::Share share;
    if (hot != nullptr)
      share = {hot->plan, hot->region};
    else
      share = shareForCall(key, call, stream, epoch);
    if (!owner_->works()) return std::nullopt;
    if (!share.plan) return bypass(operation, call);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const auto turn = runInRegion(key, *share.plan, share.region.get(), call, stream, &status);
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
      const DeviceScope scope(device_);
      // One that cuDNN cannot run without workspace keeps the caller's, and has no share.
      if (algorithmWithoutWorkspace(offersOf(key.problem, call.descriptors)))
        share = owner_->share(request(key.problem, 0, key.deterministic), key.layer, stream);
      else
        share.lasts = true;
      if (share.plan &&
          !checkedPlans_.accepts(handle_, *share.plan, share.region ? share.region->bytes() : 0))
        share.plan = nullptr;
    } catch (const std::exception& error) {
      logWarn("{} is left to cuDNN: {}", key.problem.text(), error.what());
      share.lasts = true;
    }
    if (share.lasts) hotPlans_.put(key, epoch, share.plan, share.region);
    return share;
  } catch (...) {  // out of memory for the table, or for the warning
    return {};
  }
}

WorkspaceRegion::Turn Context::runInRegion(const HotPlans::Key& key,
                                           const Plan& plan,
                                           WorkspaceRegion* region,
                                           const ConvolutionCall& call,
                                           const CallStream& stream,
                                           cudnnStatus_t* status) noexcept {
  if (region == nullptr) {
    *status = runPlanned(key, plan, withWorkspace(call, nullptr, 0), call);
    return WorkspaceRegion::Turn::kReady;
  }
  std::unique_lock<std::mutex> lock;
  const auto turn = region->begin(stream, lock);
  if (turn != WorkspaceRegion::Turn::kReady) return turn;
  *status = runPlanned(key, plan, withWorkspace(call, region->memory(), region->bytes()), call);
  region->end(stream);
  return turn;
}

cudnnStatus_t Context::runWithoutRegion(const HotPlans::Key& key,
                                        const ConvolutionCall& call,
                                        const CallStream& stream) noexcept {
  try {
    const DeviceScope scope(device_);
    const auto plan =
        WorkspaceOwner::planWithin(request(key.problem, 0, key.deterministic), 0, stream.capturing);
    if (plan && checkedPlans_.accepts(handle_, *plan, 0))
      return runPlanned(key, *plan, withWorkspace(call, nullptr, 0), call);
  } catch (const std::exception& error) {
    logWarn("{} is left to cuDNN: {}", key.problem.text(), error.what());
  }
  return bypass(key.problem.operation, call);
}

}  // namespace ucudnn
