// What is believed of a database: times that hardware could have, and errors. All that cuDNN can
// tell is asked of cuDNN.
#pragma once

#include "benchmark/measurement.hpp"
#include "cache/database.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// Whether any GPU, today's or tomorrow's, could compute the problem in this time. Takes no device
/// into account: a wrong refusal would measure for ever, a wrong acceptance only makes a slow plan.
bool isPossibleTime(const Problem& problem, double timeMs) noexcept;

/// Whether a kernel of the problem could have this error: no less than the rounding of its output.
bool isPossibleError(const Problem& problem, double error) noexcept;

/// What the rows say of a problem, as far as it can be true; workspace and support are unconfirmed.
/// Determinism, accuracy and the math type follow from kernel and problem alone, whatever the rows
/// say. `refused`, if not null, counts the kernels that were left out.
Measurements fromStored(const Problem& problem,
                        const StoredMeasurements& stored,
                        int* refused = nullptr);

/// The reverse.
StoredMeasurements toStored(const Problem& problem, const Measurements& measurements);

/// Adds kernels that are not there yet: what this process has found out itself stays.
void addUnconfirmed(SizeMeasurements& to, const SizeMeasurements& stored);

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

/// Takes over what `confirm` has found out about a copy.
void addConfirmed(SizeMeasurements& to,
                  const std::vector<Kernel>& wanted,
                  const SizeMeasurements& confirmed);

}  // namespace ucudnn
