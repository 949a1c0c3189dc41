// What lives behind one handle: its settings, and what its queries and calls have found.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "context/hot_plans.hpp"
#include "context/snapshot.hpp"
#include "context/stated_limits.hpp"
#include "executor/checked_plans.hpp"
#include "executor/substitutes.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Whether μ-cuDNN has made a handle, or was handed one.
enum class Origin { kCreated, kAdopted };

/// What ucudnnSetProcessWorkspaceLimit has said last.
struct WorkspaceLimit {
  std::size_t bytes = 0;
  std::uint64_t changes = 0;  ///< how often it has said something
};

/// The context of one native handle. It keeps, and classes that borrow it do: CallPath what a call
/// takes, Queries what is asked before. Not thread-safe, as the handle is not, but for `snapshot`
/// and PlanQuestion; what contexts share is the planner's.
class Context {
 public:
  /// `device` is the one that the handle was made on. Throws Error, BadSetting.
  Context(cudnnHandle_t handle, int device, Settings settings, Origin origin);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// A call of the client's on the handle, by this thread.
  void noteThread() noexcept {
    const std::uintptr_t thread = now_->threads.note();
    if (thread_.load(std::memory_order_relaxed) != thread)
      thread_.store(thread, std::memory_order_relaxed);
  }

  const Settings& settings() const noexcept { return now_->settings; }
  bool isDisabled() const noexcept { return now_->isDisabled; }
  /// Calls are, for the trace or the report.
  bool isRecorded() const noexcept { return now_->isRecorded; }

  /// Whether cuDNN's own answers to queries may name what the settings forbid.
  bool restrictsAnswers() const noexcept {
    return !isDisabled() && (settings().deterministic || now_->isCapped());
  }

  /// What it goes by now. On any thread. Throws std::system_error.
  std::shared_ptr<const Snapshot> snapshot() const;

  /// Before its handle is destroyed: waits until no question about a client's plan uses it; none
  /// begins from here on.
  void retire() noexcept;

  /// Makes the handle's device current, for whatever is done besides the client's calls. An adopted
  /// handle is one of the device that is current, each time: it may have been destroyed by plain
  /// cudnnDestroy, and another one have got its address. Throws Error, BadSetting.
  DeviceScope useDevice();
  /// To the current device, if it is another one and the handle is adopted; false: it can't.
  bool followDevice() noexcept;

  /// Whether a file of plans is read again that the settings named before.
  enum class PlansFile { kKept, kRead };

  /// Replaces the settings; plans are looked up anew. Throws Error, BadSetting (nothing has changed
  /// then).
  void setSettings(Settings settings, PlansFile file = PlansFile::kKept);
  /// Sets a limit that this handle has not had yet. Throws Error, BadSetting.
  void follow(const WorkspaceLimit& limit);

  /// Gives back the workspace of what the handle's network has captured.
  void releaseGraphs() {
    if (now_->owner) now_->owner->releaseGraphs();
  }

 private:
  friend class CallPath;
  friend class CallPlans;
  friend class OwnedCall;
  friend class PlanQuestion;
  friend class Queries;

  /// Names it to what contexts share. None outlives its context there.
  std::uint64_t owner() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }
  void replaceSnapshot(int device, Settings settings, PlansFile file);
  void moveTo(int device);

  const cudnnHandle_t handle_;
  const Origin origin_;
  /// Read on other threads under the lock, and only there; the handle's own calls exchange it.
  std::shared_ptr<const Snapshot> now_;
  mutable ForkMutex exchanging_;  ///< guards `now_` on other threads
  std::atomic<std::uintptr_t> thread_{
      0};                           ///< that used the handle last, as CallingThreads knows it
  std::uint64_t limitChanges_ = 0;  ///< of the last limit that was followed
  /// Held by all contexts: what graphs use outlives the handles that captured them.
  std::shared_ptr<CapturedMemory> captured_ = capturedMemory();
  StatedLimits limits_;
  HotPlans hotPlans_;
  CheckedPlans checkedPlans_;
  Substitutes substitutes_;
  /// Held as long as a question about a client's plan takes: calls don't wait for it.
  LongForkMutex questions_;
  bool isRetired_ = false;  ///< guarded by it
  /// Of a client that states none.
  struct DefaultLimit {
    std::size_t bytes = 0, findBytes = 0;  ///< 0: not asked yet, or none
    bool memoryWasShort = false;
  };
  // As many as the planner remembers problems.
  BoundedMap<Problem, DefaultLimit, ProblemHash> defaultLimits_{kMostProblems};

  // Of the call under way.
  Problem problem_;  ///< a legacy one's: readProblem writes it all, so it need not be cleared
  CallRecord record_;
  double unreportedMs_ = 0;  ///< predicted time of hot calls that the planner has not heard of
};

/// A question about a client's plan. It needs no handle by cuDNN's rules: so any thread may ask it,
/// while another calls with the handle, changes its settings or destroys it. It is answered by the
/// context's snapshot as it was when it began, and the handle stays until it ends.
class PlanQuestion {
 public:
  /// Waits for the context's other questions. Throws std::system_error.
  explicit PlanQuestion(std::shared_ptr<Context> context);

  /// Null: its handle is destroyed. What it names is valid as long as the question.
  const Snapshot* snapshot() const noexcept { return snapshot_.get(); }
  /// Whether the handle's stream is captured, as far as this thread may ask that: the handle is
  /// another thread's perhaps. REQUIRES: a snapshot. Throws Error.
  bool isCapturing() const;

 private:
  const std::shared_ptr<Context> context_;
  const std::unique_lock<LongForkMutex> lock_;
  const std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace ucudnn
