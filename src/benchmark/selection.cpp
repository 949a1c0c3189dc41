#include "benchmark/selection.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "benchmark/timing_limits.hpp"

namespace ucudnn {
namespace {

/// A kernel at the largest size below another where it was measured.
struct AtSize {
  int batch = 0;  ///< 0: it was measured nowhere, and the others are null
  const Measurement* kernel = nullptr;
  const std::vector<Measurement>* all = nullptr;  ///< at that size
};

AtSize largestBelow(const Measurements& measured, Kernel kernel, int batch) {
  for (auto size = std::make_reverse_iterator(measured.lower_bound(batch)); size != measured.rend();
       ++size)
    for (const Measurement& measurement : size->second.kernels)
      if (measurement.kernel == kernel) return {size->first, &measurement, &size->second.kernels};
  return {};
}

/// On the line through the times at two sizes.
double onLine(int near, double nearMs, int far, double farMs, int batch) {
  return nearMs + (nearMs - farMs) / (near - far) * (batch - near);
}

/// One of the two times of a kernel.
using Clock = double KernelTiming::*;

bool isOffFront(Clock clock,
                const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor) {
  const double perSample = timing.*clock / batch;
  for (const auto& [other, size] : measured)
    for (const Measurement& m : size.kernels)
      if (m.*clock / other * factor <= perSample && canStandInFor(m, offer)) return true;
  return false;
}

double hopedForMs(Clock clock, const Measurements& measured, Kernel kernel, int batch) {
  double hopedMs = std::numeric_limits<double>::infinity();
  const auto timeAt = [&](Measurements::const_iterator size) -> std::optional<double> {
    for (const Measurement& m : size->second.kernels)
      if (m.kernel == kernel) return m.*clock;
    return std::nullopt;
  };
  const auto above = measured.upper_bound(batch);
  if (above != measured.end())
    if (const auto timeMs = timeAt(above)) hopedMs = *timeMs * batch / above->first;
  if (above == measured.begin()) return hopedMs;
  const auto below = std::prev(above);
  const auto timeMs = timeAt(below);
  if (!timeMs) return hopedMs;
  hopedMs = std::min(hopedMs, *timeMs * batch / below->first);
  if (below == measured.begin()) return hopedMs;
  const auto further = std::prev(below);
  if (const auto furtherMs = timeAt(further))
    hopedMs = std::min(hopedMs, onLine(below->first, *timeMs, further->first, *furtherMs, batch));
  return hopedMs;
}

}  // namespace

double expectedMs(const Measurements& measured, Kernel kernel, int batch) {
  const AtSize below = largestBelow(measured, kernel, batch);
  return below.batch == 0 ? 0 : below.kernel->timeMs * batch / below.batch;
}

bool isWorthTrying(const Measurements& measured, const KernelOffer& offer, int batch) {
  const AtSize below = largestBelow(measured, offer.kernel, batch);
  if (below.batch == 0) return true;
  Measurement here = *below.kernel;
  here.workspaceBytes = offer.workspaceBytes;
  return !isDominated(here, *below.all, static_cast<double>(batch) / below.batch);
}

/// By the line through the two largest sizes: a kernel may have a fixed part, as the transform of
/// the filter.
bool isHopeless(const Measurements& measured, Kernel kernel, int batch) {
  const AtSize near = largestBelow(measured, kernel, batch);
  const AtSize far = largestBelow(measured, kernel, near.batch);
  if (far.batch == 0 || near.kernel->timeMs < kLongMs) return false;
  const double nearMs = near.kernel->timeMs;
  const double leastMs = std::min(nearMs * batch / near.batch,
                                  onLine(near.batch, nearMs, far.batch, far.kernel->timeMs, batch));
  KernelOffer anyWorkspace = *near.kernel;
  anyWorkspace.workspaceBytes = std::numeric_limits<std::size_t>::max();
  return isOffFront(measured, batch, {leastMs, leastMs}, anyWorkspace, kHopeless);
}

bool mayJoinFront(
    const Measurements& measured, const KernelOffer& offer, int batch, int middle, bool isRest) {
  int nearest = 0;  // the largest below, else the smallest above
  const Measurement* there = nullptr;
  for (auto size = measured.lower_bound(batch > middle ? middle : 0); size != measured.end();
       ++size)
    for (const Measurement& m : size->second.kernels)
      if (m.kernel == offer.kernel && (there == nullptr || size->first <= batch)) {
        nearest = size->first;
        there = &m;
      }
  if (there == nullptr) return true;
  if (nearest < batch && isHopeless(measured, offer.kernel, batch)) return false;
  const bool mayBeSlower = nearest < batch || isRest;
  // Otherwise fewer samples are worth it only where they need less workspace.
  if (!mayBeSlower && there->workspaceBytes <= offer.workspaceBytes) return false;
  const auto scaled = [&](double timeMs) {
    const double fixedMs = nearest < batch ? std::min(timeMs, kFixedMs) : 0;
    return fixedMs + (timeMs - fixedMs) * batch / nearest;
  };
  return !isOffFront(measured,
                     batch,
                     {scaled(there->timeMs), scaled(there->deviceMs)},
                     offer,
                     mayBeSlower ? kFasterAtLargerBatches : 1);
}

bool isOffFront(const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor) {
  return isOffFront(&KernelTiming::timeMs, measured, batch, timing, offer, factor) &&
         isOffFront(&KernelTiming::deviceMs, measured, batch, timing, offer, factor);
}

KernelTiming hopedFor(const Measurements& measured, Kernel kernel, int batch) {
  return {hopedForMs(&KernelTiming::timeMs, measured, kernel, batch),
          hopedForMs(&KernelTiming::deviceMs, measured, kernel, batch)};
}

std::vector<Kernel> neighbouringKernels(const Measurements& measured, int batch) {
  std::vector<Kernel> kernels;
  const auto addFrom = [&](const SizeMeasurements& size) {
    for (const Measurement& m : size.kernels)
      if (!contains(kernels, m.kernel)) kernels.push_back(m.kernel);
  };
  const auto above = measured.upper_bound(batch);
  if (above != measured.end()) addFrom(above->second);
  if (above != measured.begin()) addFrom(std::prev(above)->second);
  return kernels;
}

bool needsNoSplit(const Measurements& measured, const KernelOffer& offer, int miniBatch) {
  const auto whole = measured.find(miniBatch);
  if (whole == measured.end()) return false;
  const auto& kernels = whole->second.kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
    return m.kernel == offer.kernel && m.workspaceBytes <= offer.workspaceBytes;
  });
}

}  // namespace ucudnn
