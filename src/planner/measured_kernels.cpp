#include "planner/measured_kernels.hpp"

#include <algorithm>

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

}  // namespace ucudnn
