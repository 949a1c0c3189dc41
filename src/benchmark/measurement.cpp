#include "benchmark/measurement.hpp"

#include <algorithm>

namespace ucudnn {

KernelErrors largestErrors(const Measurements& measurements) {
  KernelErrors largest;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) {
      if (m.error == kUnknownError) continue;
      KnownError& known = largest[m.kernel];
      known = {std::max(known.error, m.error), std::max(known.batch, batch)};
    }
  return largest;
}

double errorOf(const Measurement& measured,
               Operation operation,
               int batch,
               const KernelErrors& largest) noexcept {
  if (measured.error != kUnknownError) return measured.error;
  const auto known = largest.find(measured.kernel);
  if (known == largest.end()) return kUnknownError;
  if (operation == Operation::kBackwardFilter && known->second.batch < batch) return kUnknownError;
  return known->second.error;
}

const Measurement* fastestOf(const std::vector<Measurement>& kernels) noexcept {
  const auto fastest = std::min_element(
      kernels.begin(), kernels.end(), [](const Measurement& a, const Measurement& b) {
        return a.timeMs < b.timeMs;
      });
  return fastest == kernels.end() ? nullptr : &*fastest;
}

bool isDominated(const Measurement& kernel,
                 const std::vector<Measurement>& kernels,
                 double factor) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& other) {
    return !(other.kernel == kernel.kernel) && other.timeMs * factor <= kernel.timeMs &&
           other.deviceMs * factor <= kernel.deviceMs && canStandInFor(other, kernel);
  });
}

}  // namespace ucudnn
