// Turns measurements into the optimizer's candidates.
#pragma once

#include <optional>

#include "benchmark/measurement.hpp"
#include "optimizer/configuration.hpp"
#include "planner/configuration_times.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// A candidate's number is its kernel's index in the size's list; its time is that at the pace.
/// Leaves out kernels whose error is above the allowed one, kernels that are not accurate at batch
/// sizes below `accurateBelow`, and, if the request asks for determinism, kernels that are not
/// deterministic.
CandidateTable candidates(const PlanRequest& request,
                          const Measurements& measurements,
                          int accurateBelow,
                          Pace pace);

/// The fastest candidate at the mini-batch itself within the limit. Empty if none is known.
std::optional<Candidate> fastestUndivided(const PlanRequest& request,
                                          const Measurements& measurements,
                                          Pace pace);

}  // namespace ucudnn
