// The choices of the environment, read once. The variables are described in misc/docs/SIMULATOR.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// The leaks that are named at exit.
enum class Leaks { kNone, kResources, kAll };

struct Settings {
  std::vector<std::string> deviceNames;  ///< UCUDNN_SIMULATOR_DEVICES
  Arithmetic arithmetic;                 ///< UCUDNN_SIMULATOR_ARITHMETIC: full, sampled, off, timed
  Rounding rounding;                     ///< UCUDNN_SIMULATOR_ROUNDING: 0, 1, kernels
  Lie lie;                               ///< UCUDNN_SIMULATOR_LIES
  std::int64_t failCall;                 ///< UCUDNN_SIMULATOR_FAIL_CALL; 0: none
  std::int64_t callMicroseconds;         ///< UCUDNN_SIMULATOR_CALL_US
  std::uint64_t randomTimesSeed;         ///< UCUDNN_SIMULATOR_RANDOM_TIMES; 0: off
  bool measuringCost;                    ///< UCUDNN_SIMULATOR_MEASURING_COST=1
  Leaks leaks;                           ///< UCUDNN_SIMULATOR_LEAKS: 0, 1, all
  bool abortOnViolation;                 ///< UCUDNN_SIMULATOR_STRICT=abort
};

/// A variable with a value that is not understood ends the process with status 2 and a message: a
/// test that silently ran under other settings than it asked for would prove nothing.
const Settings& settings();

/// Ends the process as `settings` does.
[[noreturn]] void refuseSetting(const std::string& message);

}  // namespace ucudnn::simulator
