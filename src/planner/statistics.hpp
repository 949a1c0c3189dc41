// What the library has done in this process.
#pragma once

#include <atomic>

namespace ucudnn {

/// Counters for ucudnnGetStatistics; each is exact, together they are no snapshot.
struct Statistics {
  std::atomic<long long> kernelsMeasured{0}, kernelsLoaded{0}, plans{0};
  std::atomic<long long> splitCalls{0}, undividedCalls{0}, bypassedCalls{0};
  std::atomic<long long> planningMicroseconds{0};
};

}  // namespace ucudnn
