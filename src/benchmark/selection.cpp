#include "benchmark/selection.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "benchmark/timing_limits.hpp"
#include "kernels/engines.hpp"

namespace ucudnn {
namespace {

/// A kernel at a size where it was measured.
struct AtSize {
  int batch = 0;  ///< 0: it was measured nowhere, and the others are null
  const Measurement* kernel = nullptr;
  const std::vector<Measurement>* all = nullptr;  ///< at that size
};

AtSize at(Measurements::const_reference size, Kernel kernel) {
  const auto& [batch, all] = size;
  for (const Measurement& measurement : all.kernels)
    if (measurement.kernel == kernel) return {batch, &measurement, &all.kernels};
  return {};
}

AtSize largestBelow(const Measurements& measured, Kernel kernel, int batch) {
  AtSize found;
  for (auto size = std::make_reverse_iterator(measured.lower_bound(batch));
       size != measured.rend() && found.batch == 0;
       ++size)
    found = at(*size, kernel);
  return found;
}

AtSize smallestAbove(const Measurements& measured, Kernel kernel, int batch) {
  AtSize found;
  for (auto size = measured.upper_bound(batch); size != measured.end() && found.batch == 0; ++size)
    found = at(*size, kernel);
  return found;
}

/// A kernel at the largest size up to `batch` where it was measured, else at the smallest size
/// above. If `batch` is larger than `middle`, smaller sizes than `middle` don't count.
AtSize nearest(const Measurements& measured, Kernel kernel, int batch, int middle) {
  const AtSize below = largestBelow(measured, kernel, batch + 1);
  return below.batch >= (batch > middle ? middle : 1) ? below
                                                      : smallestAbove(measured, kernel, batch);
}

/// The time that the kernel may take at `batch`: as much for each sample as at the other size,
/// except for the fixed part of a larger call.
KernelTiming scaledTo(int batch, const AtSize& near) {
  const auto scaled = [&](double timeMs) {
    const double fixedMs = near.batch < batch ? std::min(timeMs, kFixedMs) : 0;
    return fixedMs + (timeMs - fixedMs) * batch / near.batch;
  };
  return {scaled(near.kernel->timeMs), scaled(near.kernel->deviceMs)};
}

/// The offer with unlimited workspace, so that comparisons ignore workspace.
KernelOffer inAnyWorkspace(KernelOffer offer) {
  offer.workspaceBytes = std::numeric_limits<std::size_t>::max();
  return offer;
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
                double factor,
                int largest) {
  const double perSample = timing.*clock / batch;
  for (const auto& [other, size] : measured)
    for (const Measurement& m : size.kernels)
      if (other <= largest && m.*clock / other * factor <= perSample && canStandInFor(m, offer))
        return true;
  return false;
}

/// By both clocks, against kernels at sizes up to `largest`.
bool isOffFront(const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor,
                int largest) {
  return isOffFront(&KernelTiming::timeMs, measured, batch, timing, offer, factor, largest) &&
         isOffFront(&KernelTiming::deviceMs, measured, batch, timing, offer, factor, largest);
}

double hopedForMs(Clock clock, const Measurements& measured, Kernel kernel, int batch) {
  double hopedMs = std::numeric_limits<double>::infinity();
  const auto timeAt = [&](Measurements::const_iterator size) -> std::optional<double> {
    const AtSize found = at(*size, kernel);
    return found.batch != 0 ? std::optional(found.kernel->*clock) : std::nullopt;
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
  if (below.batch != 0) return below.kernel->timeMs * batch / below.batch;
  const AtSize above = smallestAbove(measured, kernel, batch);
  const double leastMs = above.batch == 0 ? 0 : above.kernel->timeMs * batch / above.batch;
  return leastMs < kTakenTwiceMs ? leastMs : 0;
}

double mostExpectedMs(const Measurements& measured, Kernel kernel, int batch) {
  double mostMs = std::numeric_limits<double>::infinity();
  if (const AtSize below = largestBelow(measured, kernel, batch); below.batch != 0)
    mostMs = below.kernel->timeMs * batch / below.batch;
  if (const AtSize above = smallestAbove(measured, kernel, batch); above.batch != 0)
    mostMs = std::min(mostMs, above.kernel->timeMs);
  return mostMs;
}

bool isWorthTrying(const Measurements& measured, const KernelOffer& offer, int batch) {
  const AtSize below = largestBelow(measured, offer.kernel, batch);
  if (below.batch == 0) return true;
  Measurement here = *below.kernel;
  here.workspaceBytes = offer.workspaceBytes;
  return !isDominated(here, *below.all, static_cast<double>(batch) / below.batch);
}

/// Follows the line through the two largest sizes: a kernel may have a fixed part, such as the
/// transform of the filter.
bool isHopeless(const Measurements& measured, Kernel kernel, int batch) {
  const AtSize near = largestBelow(measured, kernel, batch);
  const AtSize far = largestBelow(measured, kernel, near.batch);
  if (far.batch == 0 || near.kernel->timeMs < kLongMs) return false;
  const double nearMs = near.kernel->timeMs;
  const double leastMs = std::min(nearMs * batch / near.batch,
                                  onLine(near.batch, nearMs, far.batch, far.kernel->timeMs, batch));
  return isOffFront(measured, batch, {leastMs, leastMs}, inAnyWorkspace(*near.kernel), kHopeless);
}

bool mayJoinFront(
    const Measurements& measured, const KernelOffer& offer, int batch, int middle, bool isRest) {
  const AtSize near = nearest(measured, offer.kernel, batch, middle);
  if (near.batch == 0) return true;
  if (near.batch < batch && isHopeless(measured, offer.kernel, batch)) return false;
  const bool mayBeSlower = near.batch < batch || isRest;
  // Otherwise fewer samples are worth it only if they need less workspace.
  if (!mayBeSlower && near.kernel->workspaceBytes <= offer.workspaceBytes) return false;
  return !isOffFront(
      measured, batch, scaledTo(batch, near), offer, mayBeSlower ? kFasterAtLargerBatches : 1);
}

bool isFarBehind(const Measurements& measured,
                 KernelOffer offer,
                 int batch,
                 int middle,
                 std::size_t limitBytes,
                 double factor) {
  const AtSize near = nearest(measured, offer.kernel, batch, middle);
  if (near.batch == 0) return false;
  offer.workspaceBytes = std::max(offer.workspaceBytes, limitBytes / 2);
  const int largest = near.batch < batch ? std::numeric_limits<int>::max() : near.batch;
  return isOffFront(measured, batch, scaledTo(batch, near), offer, factor, largest);
}

bool isOffFront(const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor) {
  return isOffFront(measured, batch, timing, offer, factor, std::numeric_limits<int>::max());
}

KernelTiming hopedFor(const Measurements& measured, Kernel kernel, int batch) {
  return {hopedForMs(&KernelTiming::timeMs, measured, kernel, batch),
          hopedForMs(&KernelTiming::deviceMs, measured, kernel, batch)};
}

void keepMostHopeful(std::vector<Measurement>& hopes, bool enginesAlone) {
  std::stable_sort(hopes.begin(), hopes.end(), [](const Measurement& a, const Measurement& b) {
    return a.deviceMs < b.deviceMs;
  });
  std::vector<Measurement> kept;
  for (const Measurement& hope : hopes) {
    const bool byEngines = enginesAlone && hope.kernel.source == kEngines;
    const KernelOffer offer = inAnyWorkspace(hope);
    const auto better = std::count_if(kept.begin(), kept.end(), [&](const Measurement& other) {
      return (!byEngines || other.kernel.source == kEngines) && other.timeMs <= hope.timeMs &&
             canStandInFor(other, offer);
    });
    if (better < kMostBetween) kept.push_back(hope);
  }
  hopes = std::move(kept);
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
