// In how many bands, or tiles, a plan runs.
#pragma once

#include <algorithm>

#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "plan/plan.hpp"

namespace ucudnn::test {

/// The most of a step's engine.
inline int bandsOf(const Plan& plan) {
  int bands = 1;
  for (const Plan::Step& step : plan.steps)
    if (step.kernel.source == kEngines)
      bands = std::max(bands, engineConfigurationOf(step.kernel.id).bands);
  return bands;
}

inline int tilesOf(const Plan& plan) {
  int tiles = 1;
  for (const Plan::Step& step : plan.steps)
    if (step.kernel.source == kEngines)
      tiles = std::max(tiles, engineConfigurationOf(step.kernel.id).tiles);
  return tiles;
}

}  // namespace ucudnn::test
