// From measurements to what the optimizer chooses among.
#pragma once

#include <optional>

#include "benchmark/measurement.hpp"
#include "optimizer/configuration.hpp"
#include "planner/configuration_times.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// Kernels are numbered by their place in the size's list, their times those at the pace. Where
/// only deterministic ones are asked for others are left out, and so are those whose error is not
/// within the largest that is allowed, and those that are not accurate at batch sizes below
/// `accurateBelow`.
CandidateTable candidates(const PlanRequest& request,
                          const Measurements& measurements,
                          int accurateBelow,
                          Pace pace);

/// The fastest at the mini-batch itself within the limit, as `candidates`; empty: none is known.
std::optional<Candidate> fastestUndivided(const PlanRequest& request,
                                          const Measurements& measurements,
                                          Pace pace);

}  // namespace ucudnn
