// The state behind one handle: its settings, and what its queries and calls have found.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "context/hot_plans.hpp"
#include "context/snapshot.hpp"
#include "context/stated_limits.hpp"
#include "executor/checked_plans.hpp"
#include "executor/substitutes.hpp"
#include "host/host_plan.hpp"
#include "host/pass.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Whether μ-cuDNN has made a handle, or was handed one.
enum class Origin { kCreated, kAdopted };

/// The latest value of ucudnnSetProcessWorkspaceLimit.
struct WorkspaceLimit {
  std::size_t bytes = SIZE_MAX;
  std::uint64_t changes = 0;  ///< how often it has been set
};

/// The context of one native handle. It keeps the state, and classes that borrow it do the work:
/// CallPath runs calls, Queries answers queries. Not thread-safe, like the handle, except
/// `snapshot` and PlanQuestion. The planner has what contexts share.
class Context {
 public:
  /// `device` is the one that the handle was made on. Throws Error, BadSetting.
  Context(cudnnHandle_t handle, int device, Settings settings, Origin origin);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Notes that this thread makes a client's call on the handle.
  void noteThread() noexcept {
    const std::uintptr_t thread = now_->threads.note();
    if (thread_.load(std::memory_order_relaxed) != thread)
      thread_.store(thread, std::memory_order_relaxed);
  }

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Settings& settings() const noexcept { return now_->settings; }
  bool isDisabled() const noexcept { return now_->isDisabled; }
  /// Whether tensors may be in host memory.
  bool hasDeviceMemory() const noexcept { return now_->staging != nullptr; }
  /// Whether calls are recorded, for the trace or the report.
  bool isRecorded() const noexcept { return now_->isRecorded; }

  /// Whether cuDNN's own answers to queries may name what the settings forbid.
  bool restrictsAnswers() const noexcept {
    return !isDisabled() && (settings().deterministic || now_->isCapped());
  }

  /// The current snapshot. May be called on any thread. Throws std::system_error.
  std::shared_ptr<const Snapshot> snapshot() const;

  /// To be called before the handle is destroyed. Waits until no question about a client's plan
  /// uses it; none begins from then on.
  void retire() noexcept;

  /// Makes the handle's device current, for work besides the client's calls. An adopted handle
  /// belongs to the device that is current at each use: plain cudnnDestroy may have destroyed it,
  /// and another handle may have got its address. Throws Error, BadSetting.
  DeviceScope useDevice();
  /// Moves an adopted handle to the current device, if that is another one. False: it can't.
  bool followDevice() noexcept;

  /// Whether to read the file of plans again if the settings have named it before.
  enum class PlansFile { kKept, kRead };

  /// Replaces the settings; plans are looked up anew. Throws Error, BadSetting; then nothing has
  /// changed.
  void setSettings(Settings settings, PlansFile file = PlansFile::kKept);
  /// Applies the limit, unless it has been applied already. Throws Error, BadSetting.
  void follow(const WorkspaceLimit& limit);

  /// Memory for a client's tensors: the device's if UCUDNN_DEVICE_MEMORY leaves some. Throws Error.
  void* allocate(std::size_t bytes);
  /// Frees it. Throws Error.
  void free(void* memory);

  /// Frees the workspace of the graphs that the handle's network has captured.
  void releaseGraphs() {
    if (now_->owner) now_->owner->releaseGraphs();
  }

 private:
  friend class CallPath;
  friend class CallPlans;
  friend class HostCall;
  friend class HostPass;
  friend class OwnedCall;
  friend class PlanQuestion;
  friend class Queries;
  friend std::optional<std::vector<int>> sharesOf(const Context&, int, const std::vector<int>&);

  /// Names this context in objects that contexts share. None of these keeps the name when it ends.
  std::uint64_t owner() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }
  void replaceSnapshot(int device, Settings settings, PlansFile file);
  void moveTo(int device);

  const cudnnHandle_t handle_;
  const Origin origin_;
  /// Other threads only read it, under the lock. The handle's own calls exchange it.
  std::shared_ptr<const Snapshot> now_;
  mutable ForkMutex exchanging_;  ///< guards `now_` on other threads
  std::atomic<std::uintptr_t> thread_{
      0};  ///< the thread that used the handle last, as CallingThreads knows it
  std::uint64_t limitChanges_ = 0;  ///< of the last limit that was followed
  /// Held by all contexts, because graphs' memory outlives the handles that captured them.
  std::shared_ptr<CapturedMemory> captured_ = capturedMemory();
  StatedLimits limits_;
  HotPlans hotPlans_;
  CheckedPlans checkedPlans_;
  Substitutes substitutes_;
  HostPlans hostPlans_{kMostHostPlans};
  PassPlans passPlans_{kMostHostPlans};
  /// Held while a question about a client's plan is answered. Calls don't wait for it.
  LongForkMutex questions_;
  bool isRetired_ = false;  ///< guarded by questions_
  /// The limit of a client that states none.
  struct DefaultLimit {
    std::size_t bytes = 0, findBytes = 0;  ///< 0: not asked yet, or none
    bool memoryWasShort = false;
  };
  // The same capacity as the planner's problems.
  BoundedMap<Problem, DefaultLimit, ProblemHash> defaultLimits_{kMostProblems};

  // State of the current call.
  Problem problem_;  ///< of a legacy call; readProblem writes all of it, so it need not be cleared
  CallRecord record_;
  double unreportedMs_ = 0;  ///< predicted time of hot calls that the planner has not heard of
};

/// A question about a client's plan. By cuDNN's rules it needs no handle. So any thread may ask it
/// while another thread calls with the handle, changes its settings or destroys it. It is answered
/// by the snapshot that the context had when it began, and the handle stays until it ends.
class PlanQuestion {
 public:
  /// Waits for the context's other questions. Throws std::system_error.
  explicit PlanQuestion(std::shared_ptr<Context> context);

  /// Null if the handle is destroyed. Its contents are valid as long as the question.
  const Snapshot* snapshot() const noexcept { return snapshot_.get(); }
  /// Whether the handle's stream is captured, as far as this thread may ask: another thread may use
  /// the handle. REQUIRES: a snapshot. Throws Error.
  bool isCapturing() const;

 private:
  const std::shared_ptr<Context> context_;
  const std::unique_lock<LongForkMutex> lock_;
  const std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace ucudnn
