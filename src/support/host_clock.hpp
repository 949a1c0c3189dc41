// The host's clock, as far as it decides how long a call is held up. Tests on the simulator have
// its virtual one instead.
#pragma once

#include <atomic>
#include <chrono>

namespace ucudnn {

using HostClock = double (*)();  ///< in ms, from some moment on

inline double steadyMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

inline std::atomic<HostClock>& hostClock() noexcept {
  static std::atomic<HostClock> clock{steadyMs};
  return clock;
}

inline double hostMs() {
  return hostClock().load(std::memory_order_relaxed)();
}

}  // namespace ucudnn
