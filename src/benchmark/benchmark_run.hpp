// One benchmark: what is asked, dealt out to the devices, and what they have found.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/device_timer.hpp"
#include "benchmark/findings.hpp"
#include "benchmark/helper_devices.hpp"
#include "benchmark/question.hpp"
#include "benchmark/task_queue.hpp"
#include "benchmark/variant_search.hpp"

namespace ucudnn {

/// Made of steps: one size that cuDNN is asked about, or one kernel that is timed. Used once, by
/// one thread at a time; the threads of further devices join it.
class BenchmarkRun {
 public:
  /// `request` outlives the run.
  BenchmarkRun(cudnnHandle_t handle, const BenchmarkRequest& request);
  ~BenchmarkRun();
  BenchmarkRun(const BenchmarkRun&) = delete;
  BenchmarkRun& operator=(const BenchmarkRun&) = delete;

  /// Takes one step. False: there was none left. Throws Error where no kernel can be timed.
  bool advance();
  /// Whether the last step did nothing, as all that is left of its stage is being built.
  bool isWaiting() const noexcept { return isWaiting_; }
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
  enum class Stage { kAsking, kAnchors, kRefining, kAgain, kBetween, kVariants, kDone };

  /// The next task, unless what is left is being built.
  std::optional<TaskQueue::Task> takeReady();
  /// What follows once no task is left. False: nothing.
  bool beginStage();
  void invite();
  bool measureNextAnchor();
  void endAnchor();
  void refineAnchors();
  void lookAgain();
  void addTimings(std::vector<TimingTask> tasks);
  void help(int device, cudnnHandle_t handle) noexcept;
  void runTask(const TaskQueue::Task& task, int device, DeviceTimer& timer, cudnnHandle_t handle);
  /// Throws Error where a further device fails.
  TimingOutcome time(const TimingTask& task, int device, DeviceTimer& timer) const;
  void giveBack(TimingTask task);

  using Clock = std::chrono::steady_clock;

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Clock::time_point begin_ = Clock::now();
  Stage stage_ = Stage::kAsking;
  std::size_t anchorsBegun_ = 0;
  std::size_t anchorTasks_ = 0;  ///< of the anchor that was begun last
  bool isAnchorLate_ = false;
  bool isWaiting_ = false;
  std::vector<TimingTask> beingBuilt_;               ///< or waiting for that
  std::optional<std::pair<int, Kernel>> lastTimed_;  ///< batch and kernel, if that was the step
  Question question_;
  DeviceTimer timer_;
  TaskQueue queue_;
  std::vector<std::shared_ptr<Invitation>> invitations_;
  Findings findings_;
  VariantSearch variants_;
};

}  // namespace ucudnn
