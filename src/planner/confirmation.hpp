// What cuDNN says of kernels that are known from a database, or from other calls.
#pragma once

#include <vector>

#include "benchmark/measurement.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// What came of asking cuDNN about stored kernels.
enum class Confirmation {
  kAsAssumed,
  kOtherwise,  ///< a kernel does not keep what was assumed of it, as no row says it; or no answer
  kLie         ///< what a row says is not so
};

/// Asks cuDNN about those kernels of a size that are `wanted` and unconfirmed: takes its answer for
/// what was stored or assumed, and drops what it does not have. Of `calls` that overwrite an engine
/// may need less than is stored, which is what it needs of all. Asks on the host; runs nothing.
/// `failures` counts kernels that cuDNN could not be asked about; they are dropped. Throws Error.
Confirmation confirm(PreparedKernels& kernels,
                     int batch,
                     const std::vector<Kernel>& wanted,
                     Calls calls,
                     SizeMeasurements& size,
                     int* failures);

/// The kernels without algorithms of a plan that need no more at this size than at another one of
/// the plan, where they are `confirmed`: the plan has that much workspace whatever they need here,
/// and whoever runs it asks about each of its steps (executor/checked_plans.hpp).
std::vector<Kernel> withoutCovered(std::vector<Kernel> kernels,
                                   const SizeMeasurements& size,
                                   const std::vector<Measurement>& confirmed);

}  // namespace ucudnn
