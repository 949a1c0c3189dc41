#include "planner/measurement_rows.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "benchmark/exact_outputs.hpp"
#include "kernels/source.hpp"

namespace ucudnn {
namespace {

// Ten times the rate of the fastest GPU of 2025 with its narrowest type, 1e16 multiply-adds a
// second; and 1e14 bytes a second, which is beyond any cache's bandwidth.
constexpr double kMostMultiplyAddsPerMs = 1e13;
constexpr double kMostBytesPerMs = 1e11;
// A launch takes 2 us on an H200.
constexpr double kShortestMs = 1e-4;
// Eleven days: sums of such times over a mini-batch stay finite.
constexpr double kLongestMs = 1e9;

/// No algorithm needs fewer multiply-adds: Winograd's and Fourier's transforms save a factor that
/// is below the filter's area.
double leastMultiplyAdds(const Problem& problem) noexcept {
  double area = 1;
  for (int i = 2; i < problem.dimensions; ++i) area *= problem.wSizes[static_cast<std::size_t>(i)];
  return problem.multiplyAdds() / area;
}

/// Every kernel writes at least the output.
double leastBytes(const Problem& problem) noexcept {
  const Problem::Sizes& sizes = problem.operation == Operation::kBackwardData     ? problem.xSizes
                                : problem.operation == Operation::kBackwardFilter ? problem.wSizes
                                                                                  : problem.ySizes;
  auto bytes = static_cast<double>(elementBytes(problem.outputType()));
  for (int i = 0; i < problem.dimensions; ++i) bytes *= sizes[static_cast<std::size_t>(i)];
  return bytes;
}

double leastMs(const Problem& problem) noexcept {
  return std::max({kShortestMs,
                   leastMultiplyAdds(problem) / kMostMultiplyAddsPerMs,
                   leastBytes(problem) / kMostBytesPerMs});
}

/// False for NaN.
bool isBetween(double least, double timeMs) noexcept {
  return timeMs >= least && timeMs <= kLongestMs;
}

}  // namespace

bool isPossibleError(const Problem& problem, double error) noexcept {
  return error >= leastError(problem.outputType()) && error <= kLargestError;
}

Measurements fromStored(const Problem& problem, const StoredMeasurements& stored, int* refused) {
  Measurements measurements;
  // A kernel has a row at each of some ten sizes. Its text is parsed once.
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

}  // namespace ucudnn
