#include "planner/measured_kernels.hpp"

#include <algorithm>
#include <utility>

#include "kernels/engines.hpp"

namespace ucudnn {

std::vector<Measurement> kernelsWithin(const Measurements& measurements,
                                       int batch,
                                       std::size_t limitBytes) {
  std::vector<Measurement> kernels;
  const auto size = measurements.find(batch);
  if (size == measurements.end()) return kernels;
  for (const Measurement& kernel : size->second.kernels)
    if (kernel.workspaceBytes <= limitBytes) kernels.push_back(kernel);
  return kernels;
}

void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from) {
  for (Measurement m : from.kernels) {
    const auto place =
        std::find_if(to.kernels.begin(), to.kernels.end(), [&](const Measurement& other) {
          return other.kernel == m.kernel;
        });
    if (place == to.kernels.end()) {
      to.kernels.push_back(m);
    } else {
      if (m.error == kUnknownError) m.error = place->error;  // it is not measured again
      *place = m;
    }
  }
}

void addUnconfirmed(SizeMeasurements& to, const SizeMeasurements& stored) {
  to.kernels.reserve(to.kernels.size() + stored.kernels.size());
  for (const Measurement& m : stored.kernels)
    if (findKernel(to.kernels, m.kernel) == nullptr) to.kernels.push_back(m);
}

void addConfirmed(SizeMeasurements& to,
                  const std::vector<Kernel>& wanted,
                  const SizeMeasurements& confirmed) {
  std::vector<Measurement> kept;
  kept.reserve(to.kernels.size());
  for (const Measurement& m : to.kernels) {
    const bool isOpen = !m.confirmed && contains(wanted, m.kernel);
    const Measurement* const known = isOpen ? findKernel(confirmed.kernels, m.kernel) : &m;
    if (known != nullptr) kept.push_back(*known);
  }
  to.kernels = std::move(kept);
}

void dropEngines(Measurements& measurements) {
  for (auto& [batch, size] : measurements) {
    std::vector<Measurement>& kernels = size.kernels;
    kernels.erase(std::remove_if(kernels.begin(),
                                 kernels.end(),
                                 [](const Measurement& m) { return m.kernel.source == kEngines; }),
                  kernels.end());
  }
}

}  // namespace ucudnn
