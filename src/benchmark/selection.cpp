#include "benchmark/selection.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace ucudnn {
namespace {

// Between measured sizes a kernel's time bends by steps of its tiles; twice the step that was seen
// on an H200 (12 %).
constexpr double kNearFastest = 1.25;

/// Calls `visit(batch, measurement, all at that batch)` for the kernel at the largest size below
/// `batch`, if any.
template <typename Visit>
void atLargestBelow(const Measurements& measured, Kernel kernel, int batch, Visit visit) {
  for (auto size = std::make_reverse_iterator(measured.lower_bound(batch)); size != measured.rend();
       ++size)
    for (const Measurement& measurement : size->second.kernels)
      if (measurement.kernel == kernel)
        return visit(size->first, measurement, size->second.kernels);
}

void addNearFastest(std::vector<Kernel>& kernels, const SizeMeasurements& size) {
  std::vector<Measurement> all = size.kernels;
  for (Measurement& measurement : all)
    measurement.workspaceBytes = 0;  // within the limit all are alike
  for (const Measurement& measurement : all)
    if (!isDominated(measurement, all, kNearFastest) &&
        std::find(kernels.begin(), kernels.end(), measurement.kernel) == kernels.end())
      kernels.push_back(measurement.kernel);
}

}  // namespace

double expectedMs(const Measurements& measured, Kernel kernel, int batch) {
  double expected = 0;
  atLargestBelow(measured, kernel, batch, [&](int below, const Measurement& m, const auto&) {
    expected = m.timeMs * batch / below;
  });
  return expected;
}

bool isWorthTrying(const Measurements& measured, const KernelOffer& offer, int batch) {
  bool worth = true;
  atLargestBelow(
      measured, offer.kernel, batch, [&](int below, const Measurement& m, const auto& others) {
        const Measurement here{m.kernel, m.timeMs, offer.workspaceBytes, m.deterministic};
        worth = !isDominated(here, others, static_cast<double>(batch) / below);
      });
  return worth;
}

bool isOffFront(const Measurements& measured,
                int batch,
                double timeMs,
                const KernelOffer& offer,
                double factor) {
  const double perSample = timeMs / batch;
  for (const auto& [other, size] : measured)
    for (const Measurement& m : size.kernels)
      if (m.workspaceBytes <= offer.workspaceBytes && m.timeMs / other * factor <= perSample &&
          (m.deterministic || !offer.deterministic))
        return true;
  return false;
}

double hopedForMs(const Measurements& measured, Kernel kernel, int batch) {
  double perSample = std::numeric_limits<double>::infinity();
  const auto look = [&](Measurements::const_iterator size) {
    for (const Measurement& m : size->second.kernels)
      if (m.kernel == kernel) perSample = std::min(perSample, m.timeMs / size->first);
  };
  const auto above = measured.upper_bound(batch);
  if (above != measured.end()) look(above);
  if (above != measured.begin()) look(std::prev(above));
  return perSample * batch;
}

std::vector<Kernel> promisingKernels(const Measurements& measured, int batch) {
  std::vector<Kernel> kernels;
  const auto above = measured.upper_bound(batch);
  if (above != measured.end()) addNearFastest(kernels, above->second);
  if (above != measured.begin()) addNearFastest(kernels, std::prev(above)->second);
  return kernels;
}

}  // namespace ucudnn
