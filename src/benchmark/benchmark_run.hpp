// One benchmark: what is asked, dealt out to the devices, and what they have found.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "benchmark/device_timer.hpp"
#include "benchmark/helper_devices.hpp"
#include "benchmark/question.hpp"
#include "benchmark/task_queue.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Used once, by one thread; the threads of further devices join it. The mutex guards the results
/// and is never held while a device is waited for.
class BenchmarkRun {
 public:
  /// Throws Error.
  BenchmarkRun(cudnnHandle_t handle, const BenchmarkRequest& request);
  ~BenchmarkRun();
  BenchmarkRun(const BenchmarkRun&) = delete;
  BenchmarkRun& operator=(const BenchmarkRun&) = delete;

  /// Throws Error where no kernel can be timed.
  BenchmarkResult run();

 private:
  /// What has been measured now, and where.
  struct Found {
    Measurement measurement;
    int device = 0;
  };

  /// The best of a kernel's variants at one size, so far.
  struct Climb {
    std::shared_ptr<const ProblemDescriptors> descriptors;
    int batch = 0;
    Measurement best;
    double glancedMs = 0;  ///< the best one's; 0: not yet
  };

  void invite();
  void measureAnchors();
  void refineAnchors();
  void lookAgain();
  void tryVariants();
  /// Throws Error.
  void climbFromFastest();
  Measurements measuredForPlans() const;
  /// `measured`: at that size.
  Measurement climb(int batch, const Measurement& start, const std::vector<Measurement>& measured);
  bool isFaster(Climb& climb, const KernelOffer& variant);
  std::optional<Measurement> known(int batch, Kernel kernel) const;
  bool isFound(int batch, Kernel kernel) const;
  std::optional<double> glance(const Climb& climb, const KernelOffer& offer);
  /// REQUIRES: the timer is prepared.
  std::optional<Measurement> timeCarefully(const KernelCall& call, double expectedMs);
  void tryNearby(int batch, const Measurement& best);
  void addTimings(std::vector<TimingTask> tasks);
  void workOff();
  void help(int device, cudnnHandle_t handle) noexcept;
  void runTask(const TaskQueue::Task& task, int device, DeviceTimer& timer, cudnnHandle_t handle);
  /// Throws Error where a further device fails.
  TimingOutcome time(const TimingTask& task, int device, DeviceTimer& timer) const;
  void giveBack(TimingTask task);
  void note(int batch, const Question::Judgement& judgement);
  void note(const TimingTask& task, const TimingOutcome& outcome, int device);
  static void update(Measurement& measurement,
                     const TimingTask& task,
                     const TimingOutcome& outcome);
  BenchmarkResult result();

  using Clock = std::chrono::steady_clock;

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Clock::time_point begin_ = Clock::now();
  Question question_;
  DeviceTimer timer_;
  TaskQueue queue_;
  std::vector<std::shared_ptr<Invitation>> invitations_;

  ForkMutex mutex_;
  std::map<int, std::vector<Found>> found_;
  BenchmarkResult result_;
  std::set<int> incomplete_;  ///< sizes of which something is untried or has failed
  bool everyOfferFits_ = true, lacksMemory_ = false, lacksTime_ = false;
  double deviceMs_ = 0;  ///< of the device that took longest
};

}  // namespace ucudnn
