#include "benchmark/measurement.hpp"

#include <algorithm>

namespace ucudnn {

void addErrors(KernelErrors& to, int batch, const std::vector<Measurement>& kernels) {
  for (const Measurement& m : kernels) {
    if (m.error == kUnknownError) continue;
    KnownError& known = to[m.kernel];
    known = {std::max(known.error, m.error), std::max(known.batch, batch)};
  }
}

KernelErrors largestErrors(const Measurements& measurements) {
  KernelErrors largest;
  for (const auto& [batch, size] : measurements) addErrors(largest, batch, size.kernels);
  return largest;
}

const KnownError* knownError(const KernelErrors& errors,
                             Operation operation,
                             int batch,
                             Kernel kernel) noexcept {
  const auto known = errors.find(kernel);
  if (known == errors.end()) return nullptr;
  if (operation == Operation::kBackwardFilter && known->second.batch < batch) return nullptr;
  return &known->second;
}

double errorOf(const Measurement& measured,
               Operation operation,
               int batch,
               const KernelErrors& largest) noexcept {
  if (measured.error != kUnknownError) return measured.error;
  const KnownError* const known = knownError(largest, operation, batch, measured.kernel);
  if (known == nullptr) return kUnknownError;
  return known->error;
}

const Measurement* findKernel(const std::vector<Measurement>& kernels, Kernel kernel) noexcept {
  for (const Measurement& m : kernels)
    if (m.kernel == kernel) return &m;
  return nullptr;
}

const Measurement* findKernel(const Measurements& measurements, int batch, Kernel kernel) noexcept {
  const auto size = measurements.find(batch);
  return size == measurements.end() ? nullptr : findKernel(size->second.kernels, kernel);
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
