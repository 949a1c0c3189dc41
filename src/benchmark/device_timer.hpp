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

/// Takes events for the first kernel, and memory for the first that has room in what may be taken;
/// until then the device is not touched. Not thread-safe. REQUIRES: the handle's device is current.
class DeviceTimer {
 public:
  /// `buffers`: the caller's, null: scratch memory.
  DeviceTimer(cudnnHandle_t handle,
              const BenchmarkRequest& request,
              const TensorBuffers* buffers,
              const Question& question);

  /// Whether nothing has to be compiled to time it: else another thread does that, one kernel at a
  /// time, and it is to be asked again. Touches no device. Throws Error.
  bool isReady(const KernelCall& call);
  /// Throws Error where no kernel can be timed.
  void prepare();
  /// Throws Error for a failed CUDA call. REQUIRES: prepare.
  TimingOutcome run(const TimingTask& task);
  /// Gives memory and events back. What was spent since `prepare`, in time of the device's.
  double finish() noexcept;
  /// The same, to go on later.
  double pause() noexcept;
  /// `buffers`: null where there were none.
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
  std::optional<TimingMemory> memory_;
  std::size_t workspaceBytes_ = 0;  ///< that scratch memory was taken for
  std::optional<KernelTimer> timer_;
  std::map<int, std::vector<ExactOutput>> exact_;  ///< by batch size
  /// What may be timed again: an engine takes the host as long to build as a timing takes.
  std::map<std::pair<int, Kernel>, std::shared_ptr<const BuiltKernel>> built_;
  std::optional<BackgroundBuild> background_;  ///< that is under way, or done and not taken yet
};

}  // namespace ucudnn
