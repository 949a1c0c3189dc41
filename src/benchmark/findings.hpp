// The results that a benchmark has found so far, on all its devices.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "benchmark/device_timer.hpp"
#include "benchmark/question.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// A kernel that this benchmark has measured, and the device.
struct Found {
  Measurement measurement;
  int device = 0;
};

/// Several threads may note results. The other methods are for the thread that runs the benchmark,
/// while no other thread notes anything about the same size.
class Findings {
 public:
  void note(const Question::Judgement& judgement);
  void note(const TimingTask& task, const TimingOutcome& outcome, int device);
  /// On the benchmark's own device.
  void add(int batch, const Measurement& measured);
  /// Notes that time was too short to try everything; `noteIncomplete`: at one size.
  void noteLate();
  void noteIncomplete(int batch);
  void noteDeviceTime(double ms);

  const std::vector<Found>& at(int batch) { return found_[batch]; }
  const std::map<int, std::vector<Found>>& all() const noexcept { return found_; }
  bool has(int batch, Kernel kernel) const;
  bool lacksMemory() const noexcept { return lacksMemory_; }
  long long kernelsMeasured() const noexcept { return result_.kernelsMeasured; }

  /// The result. Call it once. `wallMs`: the time since the benchmark began.
  BenchmarkResult result(const BenchmarkRequest& request, const Question& question, double wallMs);

 private:
  static void update(Measurement& measurement,
                     const TimingTask& task,
                     const TimingOutcome& outcome);

  ForkMutex mutex_;
  std::map<int, std::vector<Found>> found_;
  BenchmarkResult result_;
  std::set<int> incomplete_;  ///< sizes of which something is untried or has failed
  bool everyOfferFits_ = true, lacksMemory_ = false, lacksTime_ = false;
  double deviceMs_ = 0;  ///< of the device that took longest
};

}  // namespace ucudnn
