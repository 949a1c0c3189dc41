// Asks cuDNN about kernels that are known from a database, or from other calls.
#pragma once

#include <set>
#include <vector>

#include "benchmark/measurement.hpp"
#include "kernels/source.hpp"
#include "planner/measurement_store.hpp"

namespace ucudnn {

/// The result of asking cuDNN about stored kernels.
enum class Confirmation {
  kAsAssumed,
  kOtherwise,  ///< no row is wrong, but a kernel differs from what was assumed; or no answer
  kWrongRow    ///< a row is wrong
};

/// Asks cuDNN about those kernels of a size that are `wanted` and unconfirmed. Its answer replaces
/// what was stored or assumed; kernels that it does not have are dropped. If `calls` overwrite, an
/// engine may need less workspace than is stored, because the stored size serves all calls. Asks on
/// the host; runs nothing. Checks have found that the `unrepeatable` ones are not deterministic,
/// whatever cuDNN says. `failures` counts kernels that cuDNN could not be asked about; they are
/// dropped. Throws Error.
Confirmation confirm(PreparedKernels& kernels,
                     int batch,
                     const std::vector<Kernel>& wanted,
                     Calls calls,
                     const std::set<Kernel>& unrepeatable,
                     SizeMeasurements& size,
                     int* failures);

enum class Asking {
  kAll,
  kOfOnePlan,  ///< leaves out kernels that a larger size of the plan covers
};
/// The same for the wanted kernels among the store's measurements; cuDNN's answers are stored. Only
/// kernels that a plan uses are asked about: cuDNN takes 30 to 300 us to answer, and a row that
/// makes a kernel look worse than it is makes a plan slow at worst. Returns false if something was
/// not as stored or assumed; the measurements have changed then. Throws Error.
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

/// The known kernels at the mini-batch itself that need no more than the limit. Throws Error.
std::vector<Measurement> undividedKernels(MeasurementStore& store, const PlanRequest& request);

}  // namespace ucudnn
