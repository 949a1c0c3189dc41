// Knobs of an engine, turned one at a time: cuDNN's heuristics set them by rules, and time none.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/engine_configuration.hpp"

namespace ucudnn {

/// The choices that an engine has for a knob: from `low` to `high` by `step`. Not every combination
/// exists.
struct KnobRange {
  int type = 0;  ///< cudnnBackendKnobType_t
  std::int64_t low = 0, high = 0, step = 1;
};

/// The configurations that differ from `value` in only one knob, one list for each of its knobs. A
/// knob that counts, such as the parts that a sum is split into, gets a few numbers.
std::vector<std::vector<EngineConfiguration>> withOtherKnobs(const EngineConfiguration& value,
                                                             const std::vector<KnobRange>& ranges);

}  // namespace ucudnn
