// The algorithm that a query names for a plan.
#pragma once

#include "benchmark/measurement.hpp"
#include "plan/plan.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// Chooses what a query names as the plan's algorithm: the fastest undivided one that is as
/// deterministic as the plan (naming a deterministic algorithm at the call asks for a deterministic
/// plan) and runs within the plan's own workspace, or else needs the least.
void nameAlgorithm(Plan& plan, const PlanRequest& request, const Measurements& measurements);

}  // namespace ucudnn
