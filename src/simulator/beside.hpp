// Whether a kernel runs beside another stream's work.
#pragma once

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// Whether another stream of the device had work when this thread's latest work began.
UCUDNN_SIMULATOR_API bool runsBesideOthers();

}  // namespace ucudnn::simulator
