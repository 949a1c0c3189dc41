// What the library has done in this process.
#pragma once

#include <atomic>
#include <chrono>

namespace ucudnn {

/// Counters for ucudnnGetStatistics; each is exact, together they are no snapshot.
struct Statistics {
  std::atomic<long long> kernelsMeasured{0}, kernelsLoaded{0}, plans{0};
  std::atomic<long long> splitCalls{0}, undividedCalls{0}, bypassedCalls{0};
  std::atomic<long long> planningMicroseconds{0};
  std::atomic<long long> replayedCalls{0};          ///< of splitCalls and undividedCalls
  std::atomic<long long> graphs{0}, graphBytes{0};  ///< kept now; device memory, as estimated
};

/// Adds its own lifetime to a counter.
class PlanningTime {
 public:
  explicit PlanningTime(std::atomic<long long>& microseconds) : microseconds_(microseconds) {}
  ~PlanningTime() {
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    microseconds_ += std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  }
  PlanningTime(const PlanningTime&) = delete;
  PlanningTime& operator=(const PlanningTime&) = delete;

 private:
  std::atomic<long long>& microseconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace ucudnn
