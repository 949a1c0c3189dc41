// Between the planner's neighbours: measurements to the optimizer's candidates and to the
// database's rows, and the optimizer's configuration to a plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmark/measurement.hpp"
#include "cache/database.hpp"
#include "optimizer/configuration.hpp"
#include "optimizer/policy.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// The time of one more launch in a plan. Kernels are timed among calls enqueued back to back, so
/// each time holds its own launch already; this much is kept so that equally fast configurations do
/// not differ by launches alone.
constexpr double kLaunchMs = 1e-4;

/// The micro-batch sizes that the policy tries for a problem, ascending; the last is the
/// mini-batch. A filter gradient in half or bfloat16 is not split: each micro-batch would round
/// what it adds.
std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy);

/// About how long a convolution takes that nobody has timed: rather too short, on an H200.
double estimatedMs(const Problem& problem);

/// What the database keeps a question under, beside the problem's text.
std::string questionText(const Problem& problem, BatchSizePolicy policy);

/// Kernels are numbered by their place in the size's list. With `deterministicOnly` others are left
/// out, and so are those that are not accurate at batch sizes below `accurateBelow`.
CandidateTable candidates(const Measurements& measurements,
                          bool deterministicOnly,
                          int accurateBelow);

/// Those measured at one batch size that need no more than the limit; a larger one may have been
/// measured as well, here or by another process.
std::vector<Measurement> kernelsWithin(const Measurements& measurements,
                                       int batch,
                                       std::size_t limitBytes);

StoredMeasurements toStored(Operation operation, const Measurements& measurements);

/// Adds or replaces kernels one by one.
void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from);

/// Builds the kernels. With `deterministicOnly` a query names no other algorithm either.
/// REQUIRES: the configuration comes from `candidates(measurements, deterministicOnly, ...)`.
/// Throws Error.
std::shared_ptr<const Plan> buildPlan(cudnnHandle_t handle,
                                      const Problem& problem,
                                      std::size_t limitBytes,
                                      const Configuration& configuration,
                                      const Measurements& measurements,
                                      bool deterministicOnly = false);

}  // namespace ucudnn
