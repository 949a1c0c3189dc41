#pragma once

#include "benchmark/measurement.hpp"

namespace ucudnn::test {

/// A measurement. The device takes as long as the host, unless another time is given.
inline Measurement measured(Kernel kernel,
                            double timeMs,
                            std::size_t workspaceBytes,
                            bool deterministic = true,
                            bool accurate = true,
                            double deviceMs = -1) {
  return {{{workspaceBytes, deterministic, accurate}, kernel},
          {timeMs, deviceMs < 0 ? timeMs : deviceMs}};
}

inline Measurement withError(Measurement measured, double error) {
  measured.error = error;
  return measured;
}

}  // namespace ucudnn::test
