#include "context/snapshot.hpp"

#include <utility>

#include "context/report.hpp"
#include "kernels/errata.hpp"
#include "kernels/fitting.hpp"
#include "planner/frozen_plans.hpp"

namespace ucudnn {
namespace {

std::shared_ptr<FrozenPlans> frozenOf(const Settings& settings,
                                      const Snapshot* former,
                                      bool isKept) {
  if (settings.plansPath.empty()) return nullptr;
  const bool isSame = former != nullptr && former->settings.plansPath == settings.plansPath;
  return isKept && isSame ? former->frozen : frozenPlans(settings.plansPath);
}

std::shared_ptr<WorkspaceOwner> ownerOf(const Settings& settings,
                                        int device,
                                        const FrozenPlans* frozen) {
  if (settings.totalWorkspaceBytes == 0) return nullptr;
  return workspaceOwner({device,
                         settings.totalWorkspaceBytes,
                         settings.totalWorkspacePolicy == TotalWorkspacePolicy::kDivide,
                         settings.batchSizePolicy,
                         settings.kernels,
                         settings.tuning,
                         settings.maxError,
                         settings.deterministic,
                         frozen,
                         settings.plansStrict,
                         settings.borrowOutput});
}

}  // namespace

Snapshot::Snapshot(cudnnHandle_t itsHandle,
                   int itsDevice,
                   Settings itsSettings,
                   const Snapshot* former,
                   bool isFrozenKept)
    : handle(itsHandle),
      device(itsDevice),
      machine(planner().machines().ofDevice(itsDevice)),
      threads(callingThreads(itsDevice)),
      settings(std::move(itsSettings)),
      frozen(frozenOf(settings, former, isFrozenKept)),
      benchmarkDevices(ucudnn::benchmarkDevices(
          settings.benchmarkDevices, settings.allBenchmarkDevices, device, planner().machines())),
      owner(ownerOf(settings, device, frozen.get())),
      replays(settings.graphMemoryBytes > 0 ? replaysOf(device, planner().statistics()) : nullptr),
      staging(settings.deviceMemoryBytes > 0 ? stagingOf(device) : nullptr),
      trace(settings.tracePath.empty() ? nullptr : &traceFile(settings.tracePath)),
      isRecorded(trace != nullptr || settings.report),
      isDisabled(settings.disabled),
      offers_(former != nullptr && former->device == device ? former->offers_
                                                            : std::make_shared<DeviceOffers>()) {
  useErrata(settings.errataPath);
  if (settings.report) static_cast<void>(report());
  prepareBenchmarkDevices(benchmarkDevices);
}

PlanRequest Snapshot::request(const Problem& problem,
                              std::size_t limitBytes,
                              bool deterministic) const {
  PlanRequest request;
  request.handle = handle;
  request.device = device;
  request.machine = machine;
  request.problem = problem;
  request.limitBytes = limitBytes;
  request.deterministic = deterministic || settings.deterministic;
  request.settings = &settings;
  request.benchmarkDevices = &benchmarkDevices;
  request.frozen = frozen.get();
  return request;
}

PlanRequest Snapshot::queryFor(const Problem& problem,
                               std::size_t limitBytes,
                               bool deterministic) const {
  PlanRequest query = request(problem, limitBytes, deterministic);
  query.calls = CallKind::kOverwriting;
  return query;
}

Offers Snapshot::rankedOf(const Problem& problem, const ConvolutionDescriptors& descriptors) const {
  return offers_->ranked.get(problem,
                             [&] { return rankedAlgorithms(handle, problem, descriptors); });
}

Offers Snapshot::offersOf(const Problem& problem, const ConvolutionDescriptors& descriptors) const {
  return offers_->offered.get(problem,
                              [&] { return offeredAlgorithms(handle, problem, descriptors); });
}

Offers Snapshot::kernelsOf(const Problem& part, bool withEngines, Calls calls) const {
  return offers_->kernels[withEngines ? 1 : 0][calls == Calls::kAll ? 0 : 1].get(part, [&] {
    return offeredKernels(
        handle, part, ProblemDescriptors(part).get(), withEngines, nullptr, calls);
  });
}

/// Prefers an algorithm that isn't deterministic, because naming a deterministic one at the call
/// asks for a deterministic plan.
const KernelOffer* Snapshot::offerWithoutWorkspace(const std::vector<KernelOffer>& offers) const {
  const KernelOffer* found = nullptr;
  for (const KernelOffer& offer : offers) {
    if (offer.workspaceBytes > 0 || (settings.deterministic && !offer.deterministic)) continue;
    if (found == nullptr || !offer.deterministic) found = &offer;
    if (!offer.deterministic) break;
  }
  return found;
}

Snapshot::Route Snapshot::routeOf(const Problem& problem,
                                  const ConvolutionDescriptors& descriptors,
                                  LayerId layer,
                                  bool capturing) const {
  if (!ownsWorkspace()) return Route::kCallers;
  const Offers offers = offersOf(problem, descriptors);
  const KernelOffer* const named = offerWithoutWorkspace(*offers);
  if (named == nullptr) return Route::kUnshared;
  const bool isOwned = owner->add(problem, layer, named->deterministic, capturing);
  return isOwned ? Route::kOwned : Route::kCallers;
}

}  // namespace ucudnn
