// What cuDNN says of kernels that are known from a database, or from other calls.
#pragma once

#include <vector>

#include "benchmark/measurement.hpp"
#include "kernels/source.hpp"
#include "planner/measurement_store.hpp"

namespace ucudnn {

/// What came of asking cuDNN about stored kernels.
enum class Confirmation {
  kAsAssumed,
  kOtherwise,  ///< a kernel does not keep what was assumed of it, as no row says it; or no answer
  kWrongRow    ///< what a row says is not so
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

enum class Asking {
  kAll,
  kOfOnePlan,  ///< not what a larger size of the plan covers
};
/// The same for the wanted kernels among measurements of the store, which takes over what cuDNN
/// says. Only what a plan uses is asked about: cuDNN takes 30 to 300 us to answer, and a row that
/// makes a kernel look worse than it is makes a plan slow at worst. False: something was not as
/// stored or assumed, and the measurements have changed. Throws Error.
bool confirmKernels(MeasurementStore& store,
                    const PlanRequest& request,
                    PreparedKernels& prepared,
                    const KernelsAtSizes& wanted,
                    Measurements& measurements,
                    Asking asking = Asking::kAll);
bool confirmAll(MeasurementStore& store,
                const PlanRequest& request,
                PreparedKernels& prepared,
                Measurements& measurements);

/// What is known at the mini-batch itself and needs no more than the limit. Throws Error.
std::vector<Measurement> undividedKernels(MeasurementStore& store, const PlanRequest& request);

}  // namespace ucudnn
