// One benchmark: what is asked, dealt out to the devices, and what they have found.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/device_timer.hpp"
#include "benchmark/helper_devices.hpp"
#include "benchmark/question.hpp"
#include "benchmark/task_queue.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Made of steps: one size that cuDNN is asked about, or one kernel that is timed. Used once, by
/// one thread at a time; the threads of further devices join it. The mutex guards the results and
/// is never held while a device is waited for.
class BenchmarkRun {
 public:
  /// `request` outlives the run.
  BenchmarkRun(cudnnHandle_t handle, const BenchmarkRequest& request);
  ~BenchmarkRun();
  BenchmarkRun(const BenchmarkRun&) = delete;
  BenchmarkRun& operator=(const BenchmarkRun&) = delete;

  /// Takes one step. False: there was none left. Throws Error where no kernel can be timed.
  bool advance();
  /// The last step, for the log: a kernel's, or of the stage.
  std::string lastStep() const;
  /// Gives back all device memory and waits for the device: `advance` goes on later, on a handle
  /// that may be another, in buffers that may be elsewhere (null where the request has none). What
  /// was spent since the last time, in the device's time. REQUIRES: the request has no further
  /// devices.
  double pause() noexcept;
  void resume(cudnnHandle_t handle, const TensorBuffers* buffers) noexcept;
  /// What has been found; once, after the last step, or earlier: then time was short.
  BenchmarkResult finish();

 private:
  /// What has been measured now, and where.
  struct Found {
    Measurement measurement;
    int device = 0;
  };

  enum class Stage { kAsking, kAnchors, kRefining, kAgain, kBetween, kVariants, kDone };

  /// The variants of one kernel at one size, one choice varied after the other from the best so
  /// far.
  struct Climb {
    std::shared_ptr<const ProblemDescriptors> descriptors;
    int batch = 0;
    Measurement start, best;
    double glancedMs = 0;  ///< the best one's; 0: not yet
    std::vector<Kernel> tried;
    std::vector<std::vector<Kernel>> variants;  ///< of the best when its choice was come to
    Kernel before;                              ///< the best then
    int round = 0;
    std::size_t choice = 0, place = 0;
    bool gains = false;  ///< in this round
  };
  /// Of a size's kernels, the fastest first.
  struct VariantSearch {
    int batch = 0;
    std::vector<Measurement> kernels;
    std::size_t next = 0;
    std::vector<Kernel> kinds;  ///< begun with
    std::optional<Climb> climb;
    Measurement best;  ///< of the last climb, which is to be timed at sizes nearby
    std::vector<int> nearby;
  };

  /// What follows once no task is left. False: nothing.
  bool beginStage();
  void invite();
  bool measureNextAnchor();
  void endAnchor();
  void refineAnchors();
  void lookAgain();
  /// Throws Error.
  bool stepVariants();
  bool wantsVariants() const;
  bool beginSearch();
  bool beginNextClimb();
  /// False: it is at its end.
  bool stepClimb(Climb& climb);
  void endClimb(const Climb& climb);
  Measurements measuredForPlans() const;
  bool isFaster(Climb& climb, const KernelOffer& variant);
  std::optional<Measurement> known(int batch, Kernel kernel) const;
  bool isFound(int batch, Kernel kernel) const;
  std::optional<double> glance(const Climb& climb, const KernelOffer& offer);
  /// REQUIRES: the timer is prepared.
  std::optional<Measurement> timeCarefully(const KernelCall& call, double expectedMs);
  std::vector<int> sizesNear(int batch) const;
  void timeNearby(int size, int batch, const Measurement& best);
  void addTimings(std::vector<TimingTask> tasks);
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
  Stage stage_ = Stage::kAsking;
  std::size_t anchorsBegun_ = 0;
  std::size_t anchorTasks_ = 0;  ///< of the anchor that was begun last
  bool isAnchorLate_ = false;
  std::optional<VariantSearch> search_;
  std::optional<std::pair<int, Kernel>> lastTimed_;  ///< batch and kernel, if that was the step
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
