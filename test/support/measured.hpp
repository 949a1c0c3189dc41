#pragma once

#include "benchmark/measurement.hpp"

namespace ucudnn::test {

inline Measurement measured(Kernel kernel,
                            double timeMs,
                            std::size_t workspaceBytes,
                            bool deterministic = true,
                            bool accurate = true,
                            double deviceMs = 0) {
  return {{{workspaceBytes, deterministic, accurate}, kernel}, {timeMs, deviceMs}};
}

}  // namespace ucudnn::test
