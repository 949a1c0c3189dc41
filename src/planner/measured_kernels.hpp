// Selects from lists of measured kernels, and adds to them.
#pragma once

#include <cstddef>
#include <vector>

#include "benchmark/measurement.hpp"

namespace ucudnn {

/// The kernels measured at one batch size that need no more than the limit. Larger ones may have
/// been measured as well, here or by another process.
std::vector<Measurement> kernelsWithin(const Measurements& measurements,
                                       int batch,
                                       std::size_t limitBytes);

/// Adds or replaces kernels one by one.
void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from);

}  // namespace ucudnn
