#include "planner/measured_kernels.hpp"

#include <algorithm>

#include "kernels/engines.hpp"

namespace ucudnn {

namespace {

/// An error that is not measured again is the one of before.
Measurement withKnownError(Measurement measurement, double error) {
  if (measurement.error == kUnknownError) measurement.error = error;
  return measurement;
}

}  // namespace

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
  for (const Measurement& measurement : from.kernels) {
    const auto place =
        std::find_if(to.kernels.begin(), to.kernels.end(), [&](const Measurement& m) {
          return m.kernel == measurement.kernel;
        });
    if (place == to.kernels.end())
      to.kernels.push_back(measurement);
    else
      *place = withKnownError(measurement, place->error);
  }
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
