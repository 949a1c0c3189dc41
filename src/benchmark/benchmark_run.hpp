// One benchmark: the question, the tasks dealt out to the devices, and their findings.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/device_timer.hpp"
#include "benchmark/findings.hpp"
#include "benchmark/first_answer.hpp"
#include "benchmark/helper_devices.hpp"
#include "benchmark/question.hpp"
#include "benchmark/task_queue.hpp"
#include "benchmark/variant_search.hpp"

namespace ucudnn {

/// Made of steps. A step asks cuDNN about one size, or times one kernel. Used once, by one thread
/// at a time; the threads of further devices join it.
class BenchmarkRun {
 public:
  /// `request` outlives the run.
  BenchmarkRun(cudnnHandle_t handle, const BenchmarkRequest& request);
  ~BenchmarkRun();
  BenchmarkRun(const BenchmarkRun&) = delete;
  BenchmarkRun& operator=(const BenchmarkRun&) = delete;

  /// Takes one step. False: there was none left. Throws Error if no kernel can be timed.
  bool advance();
  /// Whether the last step did nothing because all remaining kernels of its stage are being built,
  /// or another thread is asking cuDNN.
  bool isWaiting() const noexcept { return isWaiting_; }
  /// The last step, for the log: a kernel or the stage.
  std::string lastStep() const;
  /// Gives back all device memory and waits for the device. Returns the device's time spent since
  /// the last time. `advance` may go on later, on another handle and in other buffers (null if the
  /// request has none). REQUIRES: the request has no further devices.
  double pause() noexcept;
  /// DeviceTimer::waitedMs, so far.
  double waitedMs() const noexcept { return timer_.waitedMs(); }
  void resume(cudnnHandle_t handle, const TensorBuffers* buffers) noexcept;
  /// What has been measured so far and won't be timed again.
  Measurements settled();
  /// The findings. Call it once: after the last step, or earlier if time is short.
  BenchmarkResult finish();

 private:
  enum class Stage { kAsking, kAnchors, kRefining, kAgain, kBetween, kVariants, kDone };

  /// The next task, unless all remaining ones are being built.
  std::optional<TaskQueue::Task> takeReady();
  /// Begins the next stage when no task is left. False: there is none.
  bool beginStage();
  void invite();
  bool measureNextAnchor();
  void endAnchor();
  void refineAnchors();
  void lookAgain();
  void addTimings(std::vector<TimingTask> tasks);
  void help(int device, cudnnHandle_t handle) noexcept;
  void runTask(const TaskQueue::Task& task, int device, DeviceTimer& timer, cudnnHandle_t handle);
  /// Throws Error if a further device fails.
  TimingOutcome time(const TimingTask& task, int device, DeviceTimer& timer) const;
  void giveBack(TimingTask task);

  using Clock = std::chrono::steady_clock;

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Clock::time_point begin_ = Clock::now();
  Stage stage_ = Stage::kAsking;
  std::size_t anchorsBegun_ = 0;
  std::size_t anchorTasks_ = 0;  ///< of the anchor that was begun last
  bool isWaiting_ = false;
  std::vector<TimingTask> beingBuilt_;               ///< or waiting for that
  std::optional<std::pair<int, Kernel>> lastTimed_;  ///< batch and kernel, if that was the step
  std::optional<FirstAnswer> firstAnswer_;           ///< empty: no other thread helps
  Question question_;
  DeviceTimer timer_;
  TaskQueue queue_;
  std::vector<std::shared_ptr<Invitation>> invitations_;
  Findings findings_;
  VariantSearch variants_;
};

}  // namespace ucudnn
