// What lives behind one handle: settings, and the way from a client's call to the planner and the
// executor.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "context/hot_plans.hpp"
#include "context/workspace_owner.hpp"
#include "executor/executor.hpp"
#include "planner/planner.hpp"
#include "support/settings.hpp"

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

/// The context of one native handle. Not thread-safe, as the handle is not; what contexts share is
/// the planner's.
class Context {
 public:
  /// `device` is the one that the handle was made on. Throws Error, BadSetting.
  Context(cudnnHandle_t handle, int device, Settings settings);

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Settings& settings() const noexcept { return settings_; }

  /// Replaces the settings; plans are looked up anew. Throws Error, BadSetting (nothing has changed
  /// then).
  void setSettings(Settings settings);

  /// Runs a convolution: its plan, or, where there is none or it cannot be started, cuDNN as it is.
  cudnnStatus_t convolve(Operation operation, const ConvolutionCall& call, LayerId layer) noexcept;

  /// The algorithms of a problem, ours first, then cuDNN's own by time; remembers the limit for
  /// later calls. Empty limit: the client gave none. `buffers` are FindEx's. Empty answer: not
  /// planned, ask cuDNN. Throws Error.
  std::vector<AlgorithmPerformance> algorithms(Operation operation,
                                               const ConvolutionDescriptors& descriptors,
                                               std::optional<std::size_t> limitBytes,
                                               const TensorBuffers* buffers,
                                               LayerId layer);

  /// Gives back the workspace of what the handle's network has captured.
  void releaseGraphs() {
    if (owner_) owner_->releaseGraphs();
  }

  /// What GetWorkspaceSize answers for an algorithm. Empty: not planned, ask cuDNN. Throws Error.
  std::optional<std::size_t> workspaceBytes(Operation operation,
                                            const ConvolutionDescriptors& descriptors,
                                            int algorithm,
                                            LayerId layer);

  /// Room for the diagnosis functions of plan.h. Throw Error; an empty plan, or no candidates: not
  /// planned.
  std::shared_ptr<const Plan> describePlan(const Problem& problem, std::size_t limitBytes);
  Measurements describeCandidates(const Problem& problem);
  std::vector<Configuration> describeFront(const Problem& problem);

 private:
  PlanRequest request(const Problem& problem, std::size_t limitBytes, bool deterministic) const;
  std::size_t defaultLimit(const Problem& problem);
  bool isCapturing() const;
  /// The plan that a query under a limit is answered from; null: ask cuDNN.
  std::shared_ptr<const Plan> planForQuery(const PlanRequest& request);
  /// The plan for a call; null: run cuDNN. Remembers the answer.
  std::shared_ptr<const Plan> planForCall(const HotPlans::Key& key, std::uint64_t epoch) noexcept;
  std::optional<std::shared_ptr<const Plan>> lookUpPlan(const HotPlans::Key& key);
  /// `call` with the workspace that the plan has; `clients` as it was made.
  cudnnStatus_t runPlanned(const HotPlans::Key& key,
                           const Plan& plan,
                           const ConvolutionCall& call,
                           const ConvolutionCall& clients) noexcept;

  // Where μ-cuDNN owns the workspace: context_owned.cpp.
  bool ownsWorkspace() const noexcept { return owner_ && owner_->works(); }
  /// Registers a convolution that was asked about, and lists algorithms without measuring. False:
  /// cuDNN has none without workspace.
  bool addToNetwork(const Problem& problem,
                    const ConvolutionDescriptors& descriptors,
                    LayerId layer,
                    std::vector<AlgorithmPerformance>* answer);
  /// Empty: the memory could not be had, the caller's workspace is to be used.
  std::optional<cudnnStatus_t> convolveInOwned(HotPlans::Key& key,
                                               const ConvolutionCall& call) noexcept;
  /// What the call runs with; remembered where it lasts.
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
  /// What cuDNN has for a problem, asked once.
  const std::vector<KernelOffer>& offersOf(const Problem& problem,
                                           const ConvolutionDescriptors& descriptors);
  std::optional<int> algorithmWithoutWorkspace(const std::vector<KernelOffer>& offers) const;
  /// The call for cuDNN alone, with an algorithm that runs in the workspace at hand: a query may
  /// have named none for an algorithm that needs some.
  ConvolutionCall runnable(Operation operation, const ConvolutionCall& call) noexcept;

  cudnnStatus_t bypass(Operation operation, const ConvolutionCall& call) noexcept;

  cudnnHandle_t handle_;
  int device_;
  int machine_;
  Settings settings_;
  std::vector<int> benchmarkDevices_;
  /// Held by all contexts: what graphs use outlives the handles that captured them.
  std::shared_ptr<CapturedMemory> captured_ = capturedMemory();
  std::shared_ptr<WorkspaceOwner> owner_;  ///< null: each convolution has the caller's workspace
  HotPlans hotPlans_;
  HotPlans::Key
      callsKey_;  ///< of the call under way: readProblem writes it all, so it need not be cleared
  std::unordered_map<Problem, std::size_t, ProblemHash> defaultLimits_;
  std::unordered_map<Problem, std::vector<KernelOffer>, ProblemHash> offers_;
  std::unordered_set<Problem, ProblemHash> warned_;  ///< that determinism can't be kept
};

}  // namespace ucudnn
