#include "planner/belief.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "benchmark/exact_outputs.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"

namespace ucudnn {
namespace {

// Ten times what the fastest GPU of 2025 reaches with its narrowest type: 1e16 multiply-adds a
// second, and 1e14 bytes a second, which is beyond any cache's bandwidth.
constexpr double kMostMultiplyAddsPerMs = 1e13;
constexpr double kMostBytesPerMs = 1e11;
// A launch takes 2 us on an H200.
constexpr double kShortestMs = 1e-4;
// Eleven days: sums of such times over a mini-batch stay finite.
constexpr double kLongestMs = 1e9;

double elementsOf(const Problem::Sizes& sizes, int dimensions) noexcept {
  double elements = 1;
  for (int i = 0; i < dimensions; ++i) elements *= sizes[static_cast<std::size_t>(i)];
  return elements;
}

/// No algorithm does with fewer multiplications: Winograd's and Fourier's save a factor that is
/// below the filter's area.
double leastMultiplyAdds(const Problem& problem) noexcept {
  double area = 1;
  for (int i = 2; i < problem.dimensions; ++i) area *= problem.wSizes[static_cast<std::size_t>(i)];
  return problem.multiplyAdds() / area;
}

/// The output at least is written.
double leastBytes(const Problem& problem) noexcept {
  switch (problem.operation) {
    case Operation::kBackwardData:
      return elementsOf(problem.xSizes, problem.dimensions) *
             static_cast<double>(elementBytes(problem.xType));
    case Operation::kBackwardFilter:
      return elementsOf(problem.wSizes, problem.dimensions) *
             static_cast<double>(elementBytes(problem.wType));
    default:
      return elementsOf(problem.ySizes, problem.dimensions) *
             static_cast<double>(elementBytes(problem.yType));
  }
}

double leastMs(const Problem& problem) noexcept {
  return std::max({kShortestMs,
                   leastMultiplyAdds(problem) / kMostMultiplyAddsPerMs,
                   leastBytes(problem) / kMostBytesPerMs});
}

/// NaN compares with nothing.
bool isBetween(double least, double timeMs) noexcept {
  return timeMs >= least && timeMs <= kLongestMs;
}

bool keepsTheSame(const KernelTraits& a, const KernelTraits& b) noexcept {
  return a.deterministic == b.deterministic && a.accurate == b.accurate && a.anyCall == b.anyCall;
}

}  // namespace

bool isPossibleTime(const Problem& problem, double timeMs) noexcept {
  return isBetween(leastMs(problem), timeMs);
}

bool isPossibleError(const Problem& problem, double error) noexcept {
  return error >= leastError(problem.outputType()) && error <= kLargestError;
}

Measurements fromStored(const Problem& problem, const StoredMeasurements& stored, int* refused) {
  Measurements measurements;
  // A kernel has a row at each of some ten sizes.
  std::unordered_map<std::string_view, std::optional<KernelOffer>> offers;
  for (const auto& [batch, size] : stored) {
    SizeMeasurements& found = measurements[batch];
    found.kernels.reserve(size.kernels.size());
    const double least = leastMs(problem.withBatch(batch));
    for (const StoredMeasurement& row : size.kernels) {
      const auto [place, isNew] = offers.try_emplace(row.kernel);
      if (isNew) place->second = parseKernel(problem, row.kernel);
      auto offer = place->second;
      const bool isReplayTimed = row.deviceMs != 0;
      const double deviceMs = isReplayTimed ? row.deviceMs : row.timeMs;
      const bool hasError = row.error != 0;
      if (!offer || !isBetween(least, row.timeMs) || !isBetween(least, deviceMs) ||
          (hasError && !isPossibleError(problem, row.error))) {
        if (refused != nullptr) ++*refused;
        continue;
      }
      offer->workspaceBytes = row.workspaceBytes;
      if (hasError) offer->error = row.error;
      found.kernels.push_back({*offer, {row.timeMs, deviceMs}, false, isReplayTimed});
    }
  }
  return measurements;
}

StoredMeasurements toStored(const Problem& problem, const Measurements& measurements) {
  StoredMeasurements stored;
  for (const auto& [batch, size] : measurements) {
    StoredSize& row = stored[batch];
    for (const Measurement& m : size.kernels)
      row.kernels.push_back({toText(problem.operation, m.kernel),
                             m.timeMs,
                             m.workspaceBytes,
                             m.deterministic,
                             m.isReplayTimed ? m.deviceMs : 0,
                             isPossibleError(problem, m.error) ? m.error : 0});
  }
  return stored;
}

void addUnconfirmed(SizeMeasurements& to, const SizeMeasurements& stored) {
  to.kernels.reserve(to.kernels.size() + stored.kernels.size());
  for (const Measurement& m : stored.kernels) {
    const auto isSame = [&](const Measurement& other) { return other.kernel == m.kernel; };
    if (std::none_of(to.kernels.begin(), to.kernels.end(), isSame)) to.kernels.push_back(m);
  }
}

namespace {

/// Whether a row says of calls that overwrite what is not so of those that add.
bool isStoredToOverwrite(PreparedKernels& kernels, int batch, const Measurement& m, Calls calls) {
  if (calls != Calls::kAll || m.kernel.source != kEngines) return false;
  int failures = 0;
  const auto offer = kernels.offer(batch, m.kernel, Calls::kOverwriting, &failures);
  return offer && offer->workspaceBytes == m.workspaceBytes;
}

}  // namespace

Confirmation confirm(PreparedKernels& kernels,
                     int batch,
                     const std::vector<Kernel>& wanted,
                     Calls calls,
                     SizeMeasurements& size,
                     int* failures) {
  // What was found out for calls that overwrite is another matter for those that add.
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
      if (offer && calls == Calls::kOverwriting && m.kernel.source == kEngines)
        offer->workspaceBytes = std::max(offer->workspaceBytes, m.workspaceBytes);
      const bool isSame = offer && offer->workspaceBytes == m.workspaceBytes;
      const bool isLie =
          isAnswered && !isSame && !isOther(m) && !isStoredToOverwrite(kernels, batch, m, calls);
      if (isLie)
        confirmation = Confirmation::kLie;
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

std::vector<Kernel> withoutCovered(std::vector<Kernel> kernels,
                                   const SizeMeasurements& size,
                                   const std::vector<Measurement>& confirmed) {
  const auto covers = [](const Measurement& there, const Measurement& here) {
    return there.kernel == here.kernel && keepsTheSame(there, here) &&
           here.workspaceBytes <= there.workspaceBytes;
  };
  const auto isCovered = [&](Kernel kernel) {
    if (kernel.source != kAlgorithms) return false;
    const auto here = std::find_if(size.kernels.begin(), size.kernels.end(), [&](const auto& m) {
      return m.kernel == kernel;
    });
    return here != size.kernels.end() &&
           std::any_of(confirmed.begin(), confirmed.end(), [&](const Measurement& there) {
             return covers(there, *here);
           });
  };
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isCovered), kernels.end());
  return kernels;
}

void addConfirmed(SizeMeasurements& to,
                  const std::vector<Kernel>& wanted,
                  const SizeMeasurements& confirmed) {
  std::vector<Measurement> kept;
  kept.reserve(to.kernels.size());
  for (const Measurement& m : to.kernels) {
    const bool isWanted = contains(wanted, m.kernel);
    const auto place = std::find_if(
        confirmed.kernels.begin(), confirmed.kernels.end(), [&](const Measurement& other) {
          return other.kernel == m.kernel;
        });
    if (m.confirmed || !isWanted)
      kept.push_back(m);
    else if (place != confirmed.kernels.end())
      kept.push_back(*place);
  }
  to.kernels = std::move(kept);
}

}  // namespace ucudnn
