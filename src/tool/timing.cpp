#include "tool/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "tool/simulator_control.hpp"

namespace ucudnn::tool {
namespace {

// Events resolve half a microsecond: 5 ms are measured to 0.01 %.
constexpr double kTimingMs = 5;
// The most calls of a timing. With very short kernels more of them would keep the host busy for
// longer than the device.
constexpr int kMostCalls = 500;
// The first call may load kernels, the second ran while clocks rose. The second is also the one
// that a replayed plan is captured at, so from the third on a call is as all later ones.
constexpr int kWarmUpCalls = 3;
// A call this long warms up by itself: one before it is enough, and none between two contestants.
constexpr double kLongMs = 20;

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  /// After one call that is not counted.
  double measureMs(const std::function<void()>& enqueue, int calls) {
    enqueue();
    return measureFirstMs(enqueue, calls);
  }

  double measureFirstMs(const std::function<void()>& enqueue, int calls) {
    const long long replayedBefore = statisticsNow().replayedCalls;
    check(cudaEventRecord(begin_.get(), stream_), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) enqueue();
    check(cudaEventRecord(end_.get(), stream_), "cudaEventRecord");
    replayedCalls_ = statisticsNow().replayedCalls - replayedBefore;
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float elapsedMs = 0;
    check(cudaEventElapsedTime(&elapsedMs, begin_.get(), end_.get()), "cudaEventElapsedTime");
    restDevice(static_cast<double>(elapsedMs));
    return static_cast<double>(elapsedMs) / calls;
  }

  /// Calls in the last measurement.
  long long replayedCalls() const noexcept { return replayedCalls_; }

 private:
  cudaStream_t stream_;
  long long replayedCalls_ = 0;
  Event begin_ = makeEvent();
  Event end_ = makeEvent();
};

}  // namespace

void restDevice(double busyMs) {
  constexpr double kRestFactor = 3;
  constexpr double kLongestRestMs = 100;
  if (onSimulator()) return;
  const double restMs = std::min(busyMs * kRestFactor, kLongestRestMs);
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(restMs));
}

double msSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

int callsForTiming(double timeMs) {
  if (timeMs * kMostCalls <= kTimingMs) return kMostCalls;
  return static_cast<int>(std::ceil(kTimingMs / timeMs));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double timeOnceMs(cudaStream_t stream, const std::function<void()>& enqueue) {
  return Stopwatch(stream).measureFirstMs(enqueue, 1);
}

void timeBackToBack(cudaStream_t stream, int rounds, std::vector<Contestant>& contestants) {
  Stopwatch stopwatch(stream);
  std::vector<int> calls;
  std::vector<bool> areLong;
  for (const Contestant& contestant : contestants) {
    double timeMs = stopwatch.measureMs(contestant.enqueue, 1);  // calls twice
    areLong.push_back(timeMs >= kLongMs);
    if (!areLong.back()) {
      for (int i = 2; i < kWarmUpCalls; ++i) contestant.enqueue();
      timeMs = stopwatch.measureMs(contestant.enqueue, 1);
    }
    calls.push_back(callsForTiming(timeMs));
  }
  std::vector<std::vector<double>> times(contestants.size());
  std::vector<long long> replayed(contestants.size(), 0);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const auto& enqueue = contestants[i].enqueue;
      times[i].push_back(areLong[i] ? stopwatch.measureFirstMs(enqueue, calls[i])
                                    : stopwatch.measureMs(enqueue, calls[i]));
      replayed[i] += stopwatch.replayedCalls();
    }
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    contestants[i].timeMs = median(times[i]);
    contestants[i].replayedCalls =
        static_cast<double>(replayed[i]) / (static_cast<double>(rounds) * calls[i]);
  }
}

}  // namespace ucudnn::tool
