#include "planner/confirmation.hpp"

#include <algorithm>
#include <utility>

#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "planner/measured_kernels.hpp"

namespace ucudnn {
namespace {

bool keepsTheSame(const KernelTraits& a, const KernelTraits& b) noexcept {
  return a.deterministic == b.deterministic && a.accurate == b.accurate && a.anyCall == b.anyCall;
}

/// Whether a row differs from cuDNN only because it was stored for calls that overwrite.
bool isStoredToOverwrite(PreparedKernels& kernels, int batch, const Measurement& m, Calls calls) {
  if (calls != Calls::kAll || m.kernel.source != kEngines) return false;
  int failures = 0;
  const auto offer = kernels.offer(batch, m.kernel, Calls::kOverwriting, &failures);
  return offer && offer->workspaceBytes == m.workspaceBytes;
}

/// The kernels to ask about: without the algorithms that need no more workspace at this size than
/// at another, `confirmed` size of the plan. The plan has that much workspace anyway, and whoever
/// runs it asks about each of its steps (executor/checked_plans.hpp).
std::vector<Kernel> withoutCovered(std::vector<Kernel> kernels,
                                   const SizeMeasurements& size,
                                   const std::vector<Measurement>& confirmed) {
  const auto covers = [](const Measurement& there, const Measurement& here) {
    return there.kernel == here.kernel && keepsTheSame(there, here) &&
           here.workspaceBytes <= there.workspaceBytes;
  };
  const auto isCovered = [&](Kernel kernel) {
    if (kernel.source != kAlgorithms) return false;
    const Measurement* const here = findKernel(size.kernels, kernel);
    return here != nullptr &&
           std::any_of(confirmed.begin(), confirmed.end(), [&](const Measurement& there) {
             return covers(there, *here);
           });
  };
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isCovered), kernels.end());
  return kernels;
}

KernelsAtSizes kernelsOf(const Measurements& measurements) {
  KernelsAtSizes kernels;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) kernels[batch].push_back(m.kernel);
  return kernels;
}

}  // namespace

Confirmation confirm(PreparedKernels& kernels,
                     int batch,
                     const std::vector<Kernel>& wanted,
                     Calls calls,
                     const std::set<Kernel>& unrepeatable,
                     SizeMeasurements& size,
                     int* failures) {
  // A finding for calls that overwrite does not hold for calls that add.
  const auto isOther = [&](const Measurement& m) {
    return calls == Calls::kAll && m.calls == Calls::kOverwriting;
  };
  const auto isOpen = [&](const Measurement& m) {
    return (!m.confirmed || isOther(m)) && contains(wanted, m.kernel);
  };
  auto confirmation = Confirmation::kAsAssumed;
  if (std::none_of(size.kernels.begin(), size.kernels.end(), isOpen)) return confirmation;
  std::vector<Measurement> kept;
  kept.reserve(size.kernels.size());
  for (Measurement m : size.kernels) {
    if (isOpen(m)) {
      const int failed = *failures;
      auto offer = kernels.offer(batch, m.kernel, calls, failures);
      const bool isAnswered = *failures == failed;
      if (offer && unrepeatable.count(m.kernel) > 0) offer->deterministic = false;
      if (offer && calls == Calls::kOverwriting && m.kernel.source == kEngines)
        offer->workspaceBytes = std::max(offer->workspaceBytes, m.workspaceBytes);
      const bool isSame = offer && offer->workspaceBytes == m.workspaceBytes;
      const bool isWrong = isAnswered && !isSame && !isOther(m) &&
                           !isStoredToOverwrite(kernels, batch, m, calls) &&
                           (offer || !mayBeBarred(kernels.problem().withBatch(batch), m.kernel));
      if (isWrong)
        confirmation = Confirmation::kWrongRow;
      else if (!isSame || !keepsTheSame(*offer, m))
        confirmation = std::max(confirmation, Confirmation::kOtherwise);
      if (!offer) continue;
      const double error = m.error;
      static_cast<KernelOffer&>(m) = *offer;
      m.error = error;  // cuDNN doesn't know it
      m.confirmed = calls == Calls::kAll || m.kernel.source != kEngines;
    }
    kept.push_back(m);
  }
  size.kernels = std::move(kept);
  return confirmation;
}

bool confirmKernels(MeasurementStore& store,
                    const PlanRequest& request,
                    PreparedKernels& prepared,
                    const KernelsAtSizes& wanted,
                    Measurements& measurements,
                    Asking asking) {
  auto confirmation = Confirmation::kAsAssumed;
  std::vector<Measurement> larger;
  const auto unrepeatable = store.read(request, [](const Known* known, const KnownQuestion*) {
    return known != nullptr ? known->unrepeatable : std::set<Kernel>();
  });
  for (auto place = wanted.rbegin(); place != wanted.rend(); ++place) {
    const int batch = place->first;
    const auto size = measurements.find(batch);
    if (size == measurements.end()) continue;
    const auto kernels = asking == Asking::kAll
                             ? place->second
                             : withoutCovered(place->second, size->second, larger);
    int failures = 0;
    const Calls calls = request.callsAt(batch);
    confirmation =
        std::max(confirmation,
                 confirm(prepared, batch, kernels, calls, unrepeatable, size->second, &failures));
    for (const Measurement& m : size->second.kernels)
      if (contains(kernels, m.kernel)) larger.push_back(m);
    if (failures > 0) continue;  // to be asked again
    store.addConfirmed(request, batch, kernels, size->second);
  }
  if (confirmation == Confirmation::kWrongRow) store.warnOfLies(request);
  return confirmation == Confirmation::kAsAssumed;
}

bool confirmAll(MeasurementStore& store,
                const PlanRequest& request,
                PreparedKernels& prepared,
                Measurements& measurements) {
  return confirmKernels(store, request, prepared, kernelsOf(measurements), measurements);
}

std::vector<Measurement> undividedKernels(MeasurementStore& store, const PlanRequest& request) {
  const int miniBatch = request.problem.batch();
  Measurements found = store.read(request, [&](const Known* known, const KnownQuestion*) {
    Measurements within;
    if (known != nullptr)
      within[miniBatch].kernels = kernelsWithin(known->measurements, miniBatch, request.limitBytes);
    return within;
  });
  PreparedKernels prepared(request.handle, request.problem);
  confirmAll(store, request, prepared, found);
  return kernelsWithin(found, miniBatch, request.limitBytes);
}

}  // namespace ucudnn
