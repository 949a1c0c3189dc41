// In how many bands, or tiles, a plan runs.
#pragma once

#include <algorithm>

#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "plan/plan.hpp"

namespace ucudnn::test {

/// The most of a step's engine.
inline int mostOf(const Plan& plan, int EngineConfiguration::*parts) {
  int most = 1;
  for (const Plan::Step& step : plan.steps)
    if (step.kernel.source == kEngines)
      most = std::max(most, engineConfigurationOf(step.kernel.id).*parts);
  return most;
}

inline int bandsOf(const Plan& plan) {
  return mostOf(plan, &EngineConfiguration::bands);
}

}  // namespace ucudnn::test
