// Engines whose code cuDNN compiles, which takes 0.3 to 1.5 s: the last few are kept.
#pragma once

#include <functional>
#include <memory>

#include "kernels/engine_configuration.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// What `build` gives, or what it gave for the same arguments on this device before: a plan runs
/// what was compiled to time it. Nothing is locked while it builds. Throws Error. Thread-safe.
/// REQUIRES: the device is current that the kernel is built for.
std::shared_ptr<const BuiltKernel> compiledOnce(
    const Problem& problem,
    const EngineConfiguration& engine,
    Calls calls,
    const std::function<std::shared_ptr<const BuiltKernel>()>& build);

}  // namespace ucudnn
