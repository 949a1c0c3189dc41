#include "context/call_path.hpp"

#include "context/call_plans.hpp"
#include "context/host_call.hpp"
#include "context/owned_call.hpp"
#include "context/report.hpp"
#include "executor/equivalence.hpp"
#include "kernels/fitting.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Exists for each operation.
constexpr int kFallbackAlgorithm = 1;

// The terms without the workspace, which the caller sets.
HotPlans::Terms termsOf(const ClientExecution& execution) noexcept {
  HotPlans::Terms terms;
  terms.deterministic = execution.deterministic;
  terms.isExecution = true;
  terms.repeatsBits = execution.repeatsBits;
  if (execution.kernel != nullptr) terms.own = execution.kernel->id;
  return terms;
}
HotPlans::Terms termsOf(Operation operation, const ConvolutionCall& call) noexcept {
  if (call.execution != nullptr) return termsOf(*call.execution);
  HotPlans::Terms terms;
  terms.deterministic = isDeterministic(operation, call.algorithm);
  return terms;
}

}  // namespace

cudnnStatus_t CallPath::run(Context& context,
                            Operation operation,
                            const ConvolutionCall& call,
                            LayerId layer) noexcept {
  if (context.now_->staging)
    if (const auto status = HostCall::run(context, operation, call, layer)) return *status;
  return runOnDevice(context, operation, call, layer);
}

cudnnStatus_t CallPath::runOnDevice(Context& context,
                                    Operation operation,
                                    const ConvolutionCall& call,
                                    LayerId layer) noexcept {
  const Problem* const problem = problemOf(operation, call, context.problem_);
  if (call.isOfAnyAlgorithm()) {
    ConvolutionCall named = call;
    std::optional<int> first;
    if (problem != nullptr)
      first = context.substitutes_.first(
          context.handle_, *problem, call, context.settings().deterministic);
    named.algorithm = first.value_or(kFallbackAlgorithm);
    return runOnDevice(context, operation, named, layer);
  }
  if (!context.isRecorded()) return runRead(context, problem, operation, call, layer);
  context.record_.passed(call, reason::kFailed);  // unless something else is noted
  const cudnnStatus_t status = runRead(context, problem, operation, call, layer);
  tell(context, operation, problem, status);
  return status;
}

cudnnStatus_t CallPath::runRead(Context& context,
                                const Problem* problem,
                                Operation operation,
                                const ConvolutionCall& call,
                                LayerId layer) noexcept {
  if (problem == nullptr) return runNoted(context, operation, call, reason::kUnknown);
  if (!readRest(call, context.problem_))
    return runNoted(context, operation, call, reason::kUnknownZ);
  HotPlans::Key key(*problem, termsOf(operation, call));
  CallPath path(context, key, call, call);
  if ((path.now().owner || path.now().replays) && !context.followDevice())
    return path.descend(kCudnn, reason::kFailed);
  if (path.now().ownsWorkspace() && !key.repeatsBits)
    if (const auto status = OwnedCall(context, key, call, layer).run()) return *status;
  key.workspaceBytes = call.pointers.grantedBytes();
  return path.runKnown();
}

cudnnStatus_t CallPath::runNoted(Context& context,
                                 Operation operation,
                                 const ConvolutionCall& call,
                                 const char* why) noexcept {
  if (context.isRecorded()) context.record_.passed(call, why);
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  return runNative(context.handle_, operation, call);
}

void CallPath::tell(Context& context,
                    Operation operation,
                    const Problem* problem,
                    cudnnStatus_t status) noexcept {
  try {
    if (context.settings().report) report().add(problem, context.record_);
    TraceFile* const trace = context.now_->trace;
    if (trace == nullptr) return;
    cudaStream_t stream = nullptr;
    static_cast<void>(cudnn().getStream(context.handle_, &stream));
    trace->write(traceLine(operation, problem, context.record_, stream, status));
  } catch (const std::bad_alloc&) {  // a line is missing
  }
}

/// Reads neither the pack nor the problem, because a call that is left alone must cost next to
/// nothing.
std::optional<cudnnStatus_t> CallPath::leaveAgain(Context& context,
                                                  const ClientExecution& execution,
                                                  std::size_t grantedBytes) noexcept {
  const Snapshot& now = *context.now_;
  if (now.isRecorded || now.owner || (now.replays && !context.followDevice())) return std::nullopt;
  HotPlans::Terms terms = termsOf(execution);
  terms.workspaceBytes = grantedBytes;
  HotPlans::Entry* const hot =
      context.hotPlans_.find(*execution.ticket, terms, context.limits_.epoch());
  if (hot == nullptr || hot->plan || hot->isUsedUp()) return std::nullopt;
  const cudnnStatus_t status = runExecution(context.handle_, execution);
  // If cuDNN has refused the call, something else may run it. A call that may have run isn't run
  // twice.
  if (status != CUDNN_STATUS_SUCCESS && !mayHaveRun(status)) return std::nullopt;
  static_cast<void>(hot->use());
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  return status;
}

cudnnStatus_t CallPath::leave(Context& context, const ClientExecution& execution) noexcept {
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  return runExecution(context.handle_, execution);
}

void CallPath::noteLeft(Context& context,
                        Operation operation,
                        const Problem* problem,
                        const ClientExecution& execution,
                        const char* why,
                        cudnnStatus_t status) noexcept {
  ConvolutionCall call{};
  call.pointers.workspace = execution.workspace;
  call.pointers.workspaceBytes = execution.neededBytes;
  context.record_.passed(call, why);
  const std::size_t told = execution.neededBytes;
  context.record_.beyondBytes = told - context.now_->capped(told);
  tell(context, operation, problem, status);
}

cudnnStatus_t CallPath::runKnown() noexcept {
  HotPlans::Entry* const hot =
      context_.hotPlans_.find(ticketOf(call_), key_, context_.limits_.epoch());
  const bool isKnown = hot != nullptr && hot->use();
  const bool isAdded = isKnown && hot->plan && isOnlyForOthers(*hot->plan, call_, key_.problem);
  if (isKnown && !isAdded) {
    if (!hot->plan) return descend(kAll, hot->why);
    context_.unreportedMs_ += hot->plan->predictedMs;
    if (key_.own >= 0 && ++hot->calls >= hot->checkAt) return runChecked(*hot);
    return runPlan(*hot->plan);
  }
  const char* why = nullptr;
  std::shared_ptr<const Plan> plan;
  CallPlans plans(context_, key_, call_);
  // Holds the plan, because the table is cleared if the handle moves to another device.
  if (isAdded) plan = plans.complete(*std::shared_ptr(hot->plan));
  if (!plan) plan = plans.find(&why);
  return plan ? runPlan(*plan) : descend(kAll, why);
}

/// Runs a plan's call, or the client's own kernel in its place, and times it; or ends the check.
/// The entry may be gone once something has run.
cudnnStatus_t CallPath::runChecked(HotPlans::Entry& hot) noexcept {
  const std::shared_ptr<const Plan> plan = hot.plan;
  const auto leaveOff = [&] {
    hot.check = nullptr;
    hot.checkAt = hot.calls * SpeedCheck::kTimesLater;
    return runPlan(*plan);
  };
  try {
    const CallStream stream = streamOf(context_.handle_);
    if (stream.capturing) return runPlan(*plan);
    if (!call_.execution->fits(call_.pointers)) return leaveOff();
    if (!hot.check) hot.check = std::make_shared<SpeedCheck>();
    const std::shared_ptr<SpeedCheck> check = hot.check;
    const SpeedCheck::Next next = check->next();
    if (next == SpeedCheck::Next::kWait) return runPlan(*plan);
    if (next == SpeedCheck::Next::kOver) {
      if (!check->ownIsFaster()) return leaveOff();
      planner().preferOwn(now().request(key_.problem, key_.workspaceBytes, key_.deterministic),
                          *call_.execution->kernel);
      context_.hotPlans_.put(key_, context_.limits_.epoch(), nullptr, nullptr, reason::kOwnIsBest);
      return descend(kAll, reason::kOwnIsBest);
    }
    const bool isTimed = check->begin(stream.stream);
    const cudnnStatus_t status =
        next == SpeedCheck::Next::kPlan ? runPlan(*plan) : descend(kCudnn, reason::kTimed);
    if (isTimed) static_cast<void>(check->end(stream.stream));
    return status;
  } catch (const std::exception&) {  // out of memory; the call itself reports other errors
    return runPlan(*plan);
  }
}

cudnnStatus_t CallPath::runPlan(const Plan& plan) noexcept {
  const Plan* const chosen = choose(plan, call_, key_.problem);
  if (chosen == nullptr) return descend(kAll, reason::kNoPlan);
  if (chosen != &plan) return runGeneral(*chosen);
  bool isGraph = false;  // the client's graph: there, too, the device sets the pace
  if (plan.replayed && now().replays && !now().settings.equivalenceTest && replay(plan, &isGraph))
    return CUDNN_STATUS_SUCCESS;
  return enqueue(plan.at(isGraph));
}

/// Runs a call that suits no engine, if cuDNN has the kernels of the plan for such calls.
cudnnStatus_t CallPath::runGeneral(const Plan& plan) noexcept {
  try {
    const DeviceScope scope(now().device);
    if (context_.checkedPlans_.accepts(context_.handle_, plan, call_.pointers.grantedBytes()))
      return runPlan(plan);
  } catch (const std::exception&) {  // cuDNN itself says what is wrong with the device
  }
  return descend(static_cast<Rungs>(kCudnn | kParts), reason::kRefused);
}

/// Launches a call that repeats as a CUDA graph. Returns false if it must be enqueued, perhaps into
/// a graph of the client's.
bool CallPath::replay(const Plan& plan, bool* clientsGraph) noexcept {
  try {
    const CallStream stream = streamOf(context_.handle_);
    *clientsGraph = stream.capturing;
    if (stream.capturing || !now().replays->run(context_.owner(),
                                                context_.handle_,
                                                plan,
                                                call_,
                                                stream,
                                                now().settings.graphMemoryBytes))
      return false;
  } catch (const std::exception&) {  // the call itself says what is wrong with the stream
    return false;
  }
  planner().statistics().replayedCalls.fetch_add(1, std::memory_order_relaxed);
  noteRun(plan, true);
  return true;
}

/// Makes a cuDNN call for each micro-batch.
cudnnStatus_t CallPath::enqueue(const Plan& plan) noexcept {
  const PlanRun run = now().settings.equivalenceTest && plan.isDivided()
                          ? runTested(context_.handle_, now().device, plan, call_)
                          : ucudnn::runPlan(context_.handle_, plan, call_);
  if (run.status != CUDNN_STATUS_SUCCESS) return recover(plan, run);
  noteRun(plan, false);
  return run.status;
}

/// If memory runs out, the trace and the report are incomplete.
void CallPath::noteRun(const Plan& plan, bool replayed) noexcept {
  Statistics& statistics = planner().statistics();
  auto& counter = plan.isDivided() ? statistics.splitCalls : statistics.undividedCalls;
  counter.fetch_add(1, std::memory_order_relaxed);
  if (!now().isRecorded) return;
  try {
    context_.record_.ran(plan, call_, replayed);
  } catch (const std::bad_alloc&) {
    context_.record_.passed(call_, reason::kFailed);
  }
}

/// Continues after cuDNN has refused a micro-batch: gets the right result if that is still
/// possible, else returns the refusal.
cudnnStatus_t CallPath::recover(const Plan& plan, const PlanRun& run) noexcept {
  const cudnnStatus_t refusal = run.status;
  cudnnStatus_t status = refusal;
  // Some of an engine's tiles may have been added already.
  const bool hasBegun = run.done > 0 || (plan.runs != CallKind::kOther && mayHaveRun(refusal));
  if (!hasBegun || isRepeatable(plan.problem, clients_)) {
    status = descend(kCudnn, reason::kRefused);
    const bool fits = clients_.execution == nullptr || clients_.execution->fits(clients_.pointers);
    // If cuDNN alone refuses it, too, the call is at fault and not the plan.
    const bool lacksWorkspace = !fits && isRefusal(status);
    if (!hasBegun && status != CUDNN_STATUS_SUCCESS && !lacksWorkspace) return status;
    if (lacksWorkspace) status = runParts() && status_ == CUDNN_STATUS_SUCCESS ? status_ : refusal;
  } else if (!mayHaveRun(refusal)) {
    status = runRest(context_.handle_, plan.problem, call_, run.done, determinism());
    if (status == CUDNN_STATUS_SUCCESS)
      noteRun(plan, false);
    else
      status = refusal;
  }
  giveUp(plan, refusal);
  return status;
}

/// This handle does not use the plan again. Plans that only this handle holds are destroyed.
void CallPath::giveUp(const Plan& plan, cudnnStatus_t refusal) noexcept {
  try {
    logInfo("{} N={}: {} was refused ({}): left to cuDNN",
            plan.problem.text(),
            plan.problem.batch(),
            toText(plan),
            cudnn().getErrorString(refusal));
    context_.checkedPlans_.refuse(plan);
  } catch (const std::bad_alloc&) {  // it may be refused once more
  }
  context_.hotPlans_.clear();
}

cudnnStatus_t CallPath::descend(Rungs rungs, const char* why) noexcept {
  struct Rung {
    Rungs name;
    bool (CallPath::*run)() noexcept;
  };
  static constexpr Rung kRungs[] = {{kAsItIs, &CallPath::runAsItIs},
                                    {kSubstitute, &CallPath::runSubstitute},
                                    {kOthersPlan, &CallPath::runOthersPlan},
                                    {kParts, &CallPath::runParts}};
  why_ = why;
  for (const Rung& rung : kRungs)
    if ((rungs & rung.name) != 0 && (this->*rung.run)()) break;
  return status_;
}

bool CallPath::runAsItIs() noexcept {
  status_ = runNoted(context_, key_.problem.operation, clients_, why_);
  return status_ == CUDNN_STATUS_SUCCESS;
}

bool CallPath::runSubstitute() noexcept {
  status_ = context_.substitutes_
                .run(context_.handle_, key_.problem, clients_, now().settings.deterministic)
                .value_or(status_);
  return !isRefusal(status_);
}

/// The client may have asked on a handle with another policy or limit.
bool CallPath::runOthersPlan() noexcept {
  const auto plan = CallPlans(context_, key_, clients_).ofOthers();
  if (plan) status_ = CallPath(context_, key_, clients_, clients_).runPlan(*plan);
  return plan != nullptr;
}

bool CallPath::runParts() noexcept {
  try {
    const bool mayDivide = sizesFor(key_.problem, BatchSizePolicy::kPowerOfTwo).size() > 1;
    if (mayDivide &&
        runRest(context_.handle_, key_.problem, clients_, 0, determinism()) == CUDNN_STATUS_SUCCESS)
      status_ = CUDNN_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {  // cuDNN's refusal says enough
  }
  return true;
}

/// Whether a kernel that stands in for the call's own must be deterministic.
Determinism CallPath::determinism() const noexcept {
  if (now().settings.deterministic) return Determinism::kRequired;
  return key_.deterministic ? Determinism::kPreferred : Determinism::kAny;
}

}  // namespace ucudnn
