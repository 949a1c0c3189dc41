// Keeps the last few engines whose code cuDNN compiles, which takes 0.3 to 1.5 s.
#pragma once

#include <functional>
#include <memory>

#include "kernels/engine_configuration.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Returns the result of `build`, or its earlier result for the same arguments on this device: a
/// plan runs the engine that was compiled to time it. Nothing is locked while it builds. Throws
/// Error. Thread-safe. REQUIRES: the device that the kernel is built for is current.
std::shared_ptr<const BuiltKernel> compiledOnce(
    const Problem& problem,
    const EngineConfiguration& engine,
    Calls calls,
    const std::function<std::shared_ptr<const BuiltKernel>()>& build);

}  // namespace ucudnn
