// Times kernels on one device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "benchmark/background_build.hpp"
#include "benchmark/kernel_timer.hpp"
#include "benchmark/question.hpp"
#include "benchmark/task_queue.hpp"

namespace ucudnn {

struct TimingOutcome {
  enum class Status {
    kTimed,
    kRefused,  ///< NOT_SUPPORTED or BAD_PARAM: not offered
    kFailed,   ///< otherwise
    kNoMemory
  };
  Status status = Status::kTimed;
  double timeMs = 0;
  double deviceMs = 0;        ///< what the device needs of it, replayed
  bool isReplayTimed = true;  ///< false: it was not, deviceMs is timeMs
  bool lacksMemory = false;   ///< for a replay
  double error = kUnknownError;
};

/// Creates events for the first kernel, and takes memory for the first kernel that fits into it;
/// until then it doesn't touch the device. Not thread-safe. REQUIRES: the handle's device is
/// current.
class DeviceTimer {
 public:
  /// `buffers`: the caller's; null: scratch memory.
  DeviceTimer(cudnnHandle_t handle,
              const BenchmarkRequest& request,
              const TensorBuffers* buffers,
              const Question& question);

  /// Whether the kernel can be timed without compiling. If not, another thread compiles it, one
  /// kernel at a time; ask again later. Touches no device. Throws Error.
  bool isReady(const KernelCall& call);
  /// First waits for the stream's work so far. Throws Error if no kernel can be timed.
  void prepare();
  /// How long it has waited so. The work would have taken as long anyway.
  double waitedMs() const noexcept { return waitedMs_; }
  /// Throws Error for a failed CUDA call. REQUIRES: prepare.
  TimingOutcome run(const TimingTask& task);
  /// Gives memory and events back. Returns the device's time spent since `prepare`.
  double finish() noexcept;
  /// The same, but the timer can go on later.
  double pause() noexcept;
  /// `buffers`: null if there were none.
  void resume(cudnnHandle_t handle, const TensorBuffers* buffers) noexcept;

 private:
  bool mayTakeMemoryFor(const KernelCall& call) const;
  void takeMemory(std::size_t workspaceBytes);
  std::optional<PlacedCall> place(const TimingTask& task);
  void takeBuilt(const KernelCall& call);
  std::shared_ptr<const BuiltKernel> build(const TimingTask& task);
  Timing glance(const TimingTask& task, const PlacedCall& placed);
  Timing timeAs(const TimingTask& task, const PlacedCall& placed);
  Timing quickTime(const TimingTask& task, const PlacedCall& placed);
  Timing carefulTime(const TimingTask& task, const PlacedCall& placed);
  void timeReplayed(const TimingTask& task, const PlacedCall& placed, TimingOutcome& outcome);
  double error(const PlacedCall& placed);
  TimingOutcome::Status statusOf(cudnnStatus_t status) const;

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  const TensorBuffers* buffers_;
  const Question& question_;
  cudaStream_t stream_ = nullptr;
  Event begin_;
  double waitedMs_ = 0;
  std::optional<TimingMemory> memory_;
  std::size_t workspaceBytes_ = 0;  ///< that scratch memory was taken for
  std::optional<KernelTimer> timer_;
  std::map<int, std::vector<ExactOutput>> exact_;  ///< by batch size
  /// Kernels that may be timed again: the host takes as long to build an engine as a timing takes.
  std::map<std::pair<int, Kernel>, std::shared_ptr<const BuiltKernel>> built_;
  std::optional<BackgroundBuild> background_;  ///< that is under way, or done and not taken yet
};

}  // namespace ucudnn
