// What lives behind one handle: settings, and the way from a client's call to the planner and the
// executor.
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
#include "executor/executor.hpp"
#include "executor/substitutes.hpp"
#include "planner/planner.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// One entry of a query's answer: what cudnnConvolution*AlgoPerf_t holds, for all three operations.
struct AlgorithmPerformance {
  int algorithm = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  float timeMs = 0;
  std::size_t memory = 0;
  cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
  cudnnMathType_t mathType = CUDNN_DEFAULT_MATH;
};

/// Without a time: it is unknown, as cuDNN's heuristics leave it.
AlgorithmPerformance entryOf(const KernelOffer& offer,
                             std::size_t memory,
                             double timeMs = -1) noexcept;

/// What a client asks for by Get*Algorithm_v7, Find* and Find*Ex.
struct AlgorithmQuery {
  std::optional<std::size_t> limitBytes;   ///< empty: the client named none
  bool find = false;                       ///< it expects to wait for measurements
  const TensorBuffers* buffers = nullptr;  ///< FindEx's
  LayerId layer = -1;
  int most = 1;  ///< entries that are read
};

/// Whether μ-cuDNN has made a handle, or was handed one.
enum class Origin { kCreated, kAdopted };

/// What ucudnnSetProcessWorkspaceLimit has said last.
struct WorkspaceLimit {
  std::size_t bytes = 0;
  std::uint64_t changes = 0;  ///< how often it has said something
};

/// The context of one native handle. Not thread-safe, as the handle is not, but for `snapshot` and
/// PlanQuestion; what contexts share is the planner's.
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

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Settings& settings() const noexcept { return now_->settings; }
  bool isDisabled() const noexcept { return now_->isDisabled; }

  /// Whether cuDNN's own answers to queries may name what the settings forbid.
  bool restrictsAnswers() const noexcept {
    return !isDisabled() && (settings().deterministic || isCapped());
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
  enum class Plans { kKept, kRead };

  /// Replaces the settings; plans are looked up anew. Throws Error, BadSetting (nothing has changed
  /// then).
  void setSettings(Settings settings, Plans plans = Plans::kKept);
  /// Sets a limit that this handle has not had yet. Throws Error, BadSetting.
  void follow(const WorkspaceLimit& limit);

  /// Runs a convolution: its plan, or, where there is none or it cannot be started, cuDNN as it is.
  cudnnStatus_t convolve(Operation operation, const ConvolutionCall& call, LayerId layer) noexcept;
  /// The same for the trace and the report, where `isRecorded`.
  cudnnStatus_t convolveRecorded(Operation operation,
                                 const ConvolutionCall& call,
                                 LayerId layer) noexcept;
  bool isRecorded() const noexcept { return now_->isRecorded; }
  /// Runs a client's execution plan as it is.
  cudnnStatus_t leaveToCudnn(const ClientExecution& execution) noexcept;
  /// For the trace and the report. `problem`: null where its graph is not understood.
  void noteLeft(Operation operation,
                const Problem* problem,
                const ClientExecution& execution,
                const char* why,
                cudnnStatus_t status) noexcept;
  /// Leaves a client's plan to cuDNN if its last call was, for a reason that still holds, and cuDNN
  /// runs it. Empty: all is to be looked up. `grantedBytes`: what the client was told.
  std::optional<cudnnStatus_t> leaveAgain(const ClientExecution& execution,
                                          std::size_t grantedBytes) noexcept;

  /// The algorithms of a problem, ours first, then cuDNN's own by time; remembers the limit for
  /// later calls on this handle. Empty answer: not planned, ask cuDNN. Throws Error.
  std::vector<AlgorithmPerformance> algorithms(Operation operation,
                                               const ConvolutionDescriptors& descriptors,
                                               const AlgorithmQuery& query);

  /// Gives back the workspace of what the handle's network has captured.
  void releaseGraphs() {
    if (now_->owner) now_->owner->releaseGraphs();
  }

  /// What GetWorkspaceSize answers for an algorithm. Empty: not planned, ask cuDNN. Throws Error.
  std::optional<std::size_t> workspaceBytes(Operation operation,
                                            const ConvolutionDescriptors& descriptors,
                                            int algorithm,
                                            LayerId layer);

  /// For the functions of diagnosis.h. Throw Error; an empty plan, or no candidates:
  /// not planned.
  std::shared_ptr<const Plan> describePlan(const Problem& problem, std::size_t limitBytes);
  Measurements describeCandidates(const Problem& problem);
  std::vector<Configuration> describeFront(const Problem& problem);

 private:
  friend class PlanQuestion;

  // The snapshot's, for the handle's own calls.
  bool isCapped() const noexcept { return now_->isCapped(); }
  std::size_t capped(std::size_t bytes) const noexcept { return now_->capped(bytes); }
  PlanRequest request(const Problem& problem, std::size_t limitBytes, bool deterministic) const {
    return now_->request(problem, limitBytes, deterministic);
  }
  PlanRequest queryFor(const Problem& problem, std::size_t limitBytes, bool deterministic) const {
    return now_->queryFor(problem, limitBytes, deterministic);
  }
  Offers rankedOf(const Problem& problem, const ConvolutionDescriptors& descriptors) const {
    return now_->rankedOf(problem, descriptors);
  }
  using Route = Snapshot::Route;
  Route routeOf(const Problem& problem, const ConvolutionDescriptors& descriptors, LayerId layer);
  Measuring measuringFor(bool mayMeasure) const;
  void replaceSnapshot(int device, Settings settings, Plans plans);

  // Queries: context_queries.cpp.
  struct DefaultLimit {
    std::size_t bytes = 0, findBytes = 0;  ///< 0: not asked yet, or none
    bool memoryWasShort = false;
  };
  std::size_t unstatedLimit(const Problem& problem,
                            const ConvolutionDescriptors& descriptors,
                            bool find);
  std::vector<AlgorithmPerformance> answerFrom(const Plan& plan,
                                               const PlanRequest& query,
                                               int most) const;
  std::vector<AlgorithmPerformance> answerUnmeasured(const Problem& problem,
                                                     const ConvolutionDescriptors& descriptors,
                                                     std::size_t limitBytes);
  std::shared_ptr<const Plan> planFor(const Problem& problem,
                                      const StatedLimit& limit,
                                      bool deterministic);
  /// Of what is not planned. Empty: cuDNN's own answer is within the cap, or there is none.
  std::optional<std::size_t> cappedBytes(const Problem& problem,
                                         const ConvolutionDescriptors& descriptors,
                                         int algorithm);
  std::optional<std::size_t> bytesWithoutShare(const Problem& problem,
                                               const ConvolutionDescriptors& descriptors,
                                               int algorithm);
  std::size_t keepWithin(std::size_t limitBytes,
                         const Problem& problem,
                         const ConvolutionDescriptors& descriptors,
                         int algorithm,
                         std::size_t bytes);
  std::size_t bytesWithinCap(const Problem& problem, int algorithm, std::size_t bytes);

  /// For the trace and the report, if there is one. Out of memory: what they say is incomplete.
  void noteRun(const Plan& plan, const ConvolutionCall& call, bool replayed) noexcept;
  void tell(Operation operation, const Problem* problem, cudnnStatus_t status) noexcept;

  /// What is known of a call. Null: nothing.
  HotPlans::Entry* findHot(const HotPlans::Key& key,
                           const ConvolutionCall& call,
                           std::uint64_t epoch) noexcept;
  /// The plan for a call; null: run cuDNN. Remembers an answer that lasts.
  std::shared_ptr<const Plan> planForCall(const HotPlans::Key& key,
                                          const ConvolutionCall& call,
                                          const char** why) noexcept;
  PlanRequest callersRequest(const HotPlans::Key& key, const ConvolutionCall& call);
  PlanAnswer unmeasuredPlan(const ConvolutionCall& call, const PlanRequest& wanted);
  PlanAnswer lookUpPlan(const HotPlans::Key& key, const ConvolutionCall& call);
  bool hasTooLittle(const ConvolutionCall& call, const PlanRequest& wanted) const;
  /// The plan of calls that overwrite, for those that add too; null: it can't be.
  std::shared_ptr<const Plan> completed(const HotPlans::Key& key, const Plan& plan) noexcept;
  /// `call` with the workspace that the plan has; `clients` as it was made.
  cudnnStatus_t runPlanned(const HotPlans::Key& key,
                           const Plan& plan,
                           const ConvolutionCall& call,
                           const ConvolutionCall& clients) noexcept;
  /// A call that suits no engine, by the plan for those, if cuDNN has what that runs.
  cudnnStatus_t runGeneral(const HotPlans::Key& key,
                           const Plan& plan,
                           const ConvolutionCall& call,
                           const ConvolutionCall& clients) noexcept;
  /// A cuDNN call for each micro-batch.
  cudnnStatus_t enqueuePlan(const HotPlans::Key& key,
                            const Plan& plan,
                            const ConvolutionCall& call,
                            const ConvolutionCall& clients) noexcept;
  /// Launches a call that repeats as a CUDA graph. False: it is to be enqueued, perhaps into a
  /// graph of the client's.
  bool replay(const Plan& plan, const ConvolutionCall& call, bool* clientsGraph) noexcept;
  /// A plan's call, or one of the client's own kernel in its place, which is timed; or the end of
  /// that.
  cudnnStatus_t runOnTrial(const HotPlans::Key& key,
                           HotPlans::Entry& hot,
                           const ConvolutionCall& call) noexcept;
  /// cuDNN as it is; what that refuses runs by a plan of others, or else by an unmeasured split.
  cudnnStatus_t runUnplanned(const HotPlans::Key& key,
                             const ConvolutionCall& call,
                             const char* why) noexcept;
  /// What was promised of a split before it could be measured.
  cudnnStatus_t divideUnmeasured(const HotPlans::Key& key,
                                 const ConvolutionCall& call,
                                 cudnnStatus_t refusal) noexcept;
  /// What is known to fit the call's workspace under any policy: the client may have asked on a
  /// handle with another policy or limit.
  std::shared_ptr<const Plan> planOfOthers(const HotPlans::Key& key,
                                           const ConvolutionCall& call) noexcept;
  /// What stands in for a call's kernels, if it must.
  Determinism determinismOf(const HotPlans::Key& key) const noexcept;
  /// After cuDNN has refused a micro-batch behind `enqueued` others: the right result all the same
  /// where it can still be had, else the refusal.
  cudnnStatus_t recover(const HotPlans::Key& key,
                        const Plan& plan,
                        const ConvolutionCall& call,
                        const ConvolutionCall& clients,
                        cudnnStatus_t refusal,
                        int enqueued) noexcept;
  /// The plan is not used again by this handle. Ends the life of plans that only it holds.
  void giveUp(const Plan& plan, cudnnStatus_t refusal) noexcept;

  // Where μ-cuDNN owns the workspace: context_owned.cpp.
  bool ownsWorkspace() const noexcept { return now_->ownsWorkspace(); }
  /// Lists algorithms without measuring, first one without workspace. Empty: there is none.
  std::vector<AlgorithmPerformance> algorithmsInOwned(const Problem& problem,
                                                      const ConvolutionDescriptors& descriptors,
                                                      std::size_t limitBytes);
  /// Empty: the memory could not be had, the caller's workspace is to be used.
  std::optional<cudnnStatus_t> convolveInOwned(HotPlans::Key& key,
                                               const ConvolutionCall& call) noexcept;
  /// What the call runs with; remembered where it lasts.
  PlanRequest requestFor(const HotPlans::Key& key, const ConvolutionCall& call) const;
  WorkspaceOwner::Share shareForCall(const HotPlans::Key& key,
                                     const ConvolutionCall& call,
                                     const CallStream& stream,
                                     std::uint64_t epoch) noexcept;
  std::shared_ptr<WorkspaceRegion> regionForUnplanned(const HotPlans::Key& key,
                                                      const ConvolutionCall& call,
                                                      const CallStream& stream);
  WorkspaceRegion::Turn runInRegion(const HotPlans::Key& key,
                                    const WorkspaceOwner::Share& share,
                                    const ConvolutionCall& call,
                                    const CallStream& stream,
                                    cudnnStatus_t* status) noexcept;
  cudnnStatus_t runWithoutRegion(const HotPlans::Key& key,
                                 const ConvolutionCall& call,
                                 const CallStream& stream) noexcept;
  void moveTo(int device);

  cudnnStatus_t bypass(Operation operation, const ConvolutionCall& call, const char* why) noexcept;

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
  /// Of the legacy call under way: readProblem writes it all, so it need not be cleared.
  Problem problem_;
  double hotMs_ = 0;  ///< predicted time of hot calls that the planner has not heard of
  // As many as the planner remembers problems.
  BoundedMap<Problem, DefaultLimit, ProblemHash> defaultLimits_{kMostProblems};
  CallRecord record_;  ///< of the call under way
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
