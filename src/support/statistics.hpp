// Counts what the library has done in this process.
#pragma once

#include <atomic>
#include <chrono>

namespace ucudnn {

/// Counters for ucudnnGetStatistics. Each is exact; together they are no snapshot.
struct Statistics {
  std::atomic<long long> kernelsMeasured{0}, kernelsLoaded{0}, plans{0};
  std::atomic<long long> splitCalls{0}, undividedCalls{0}, bypassedCalls{0};
  std::atomic<long long> planningMicroseconds{0};
  std::atomic<long long> kernelsChecked{0}, kernelsWrong{0};
  /// Measuring that nobody asked for: the calls that waited for it, and for how long.
  std::atomic<long long> slices{0}, sliceMicroseconds{0}, longestSliceMicroseconds{0};
  std::atomic<long long> replayedCalls{0};  ///< also counted in splitCalls or undividedCalls
  std::atomic<long long> graphs{0}, graphBytes{0};  ///< kept now; device memory, as estimated
};

/// Counts one more slice.
inline void addSlice(Statistics& statistics, double ms) {
  const auto microseconds = static_cast<long long>(ms * 1000);
  ++statistics.slices;
  statistics.sliceMicroseconds += microseconds;
  long long longest = statistics.longestSliceMicroseconds;
  while (longest < microseconds &&
         !statistics.longestSliceMicroseconds.compare_exchange_weak(longest, microseconds)) {
  }
}

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
