#include "context/context.hpp"

#include <algorithm>
#include <utility>

#include "context/report.hpp"
#include "cuda/cudnn.hpp"
#include "executor/equivalence.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/fitting.hpp"
#include "planner/frozen_plans.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// Names a context to what contexts share. None outlives its context there.
std::uint64_t ownerOf(const Context* context) noexcept {
  return reinterpret_cast<std::uintptr_t>(context);
}

// But for the workspace.
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

Context::Context(cudnnHandle_t handle, int device, Settings settings, Origin origin)
    : handle_(handle),
      origin_(origin),
      now_(std::make_shared<const Snapshot>(handle, device, std::move(settings), nullptr, false)) {
  noteThread();
}

Context::~Context() {
  if (now_->replays) now_->replays->forget(ownerOf(this));
  captured_->freeGone();
}

void Context::setSettings(Settings settings, Plans plans) {
  replaceSnapshot(now_->device, std::move(settings), plans);
}

/// The former one ends with the last question that holds it.
void Context::replaceSnapshot(int device, Settings settings, Plans plans) {
  std::shared_ptr<const Snapshot> other = std::make_shared<const Snapshot>(
      handle_, device, std::move(settings), now_.get(), plans == Plans::kKept);
  {
    const std::lock_guard lock(exchanging_);
    now_.swap(other);
  }
  if (other->replays) other->replays->forget(ownerOf(this));
  hotPlans_.clear();
  defaultLimits_.clear();
}

std::shared_ptr<const Snapshot> Context::snapshot() const {
  const std::lock_guard lock(exchanging_);
  return now_;
}

void Context::retire() noexcept {
  const std::lock_guard lock(questions_);
  isRetired_ = true;
  if (now_->replays) now_->replays->forget(ownerOf(this));
}

PlanQuestion::PlanQuestion(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      lock_(context_->questions_),
      snapshot_(context_->isRetired_ ? nullptr : context_->snapshot()) {}

/// Another thread may set the handle's stream meanwhile, and end the one that it had.
bool PlanQuestion::isCapturing() const {
  const bool isOwn = context_->thread_.load(std::memory_order_relaxed) == snapshot_->threads.note();
  return isOwn && ucudnn::isCapturing(snapshot_->handle);
}

void Context::follow(const WorkspaceLimit& limit) {
  if (limitChanges_ == limit.changes) return;
  Settings settings = now_->settings;
  settings.workspaceLimitBytes = limit.bytes;
  setSettings(std::move(settings));
  limitChanges_ = limit.changes;
}

Measuring Context::measuringFor(bool mayMeasure) const {
  return ucudnn::measuringFor(mayMeasure, isCapturing(handle_));
}

cudnnStatus_t Context::convolve(Operation operation,
                                const ConvolutionCall& call,
                                LayerId layer) noexcept {
  const Problem* const problem = problemOf(operation, call, problem_);
  if (problem == nullptr || !Planner::plans(*problem))
    return bypass(operation, call, left::kUnknown);
  if (!readRest(call, problem_)) return bypass(operation, call, left::kUnknownZ);
  if ((now_->owner || now_->replays) && !followDevice())
    return bypass(operation, call, left::kFailed);
  HotPlans::Key key(*problem, termsOf(operation, call));
  if (ownsWorkspace() && !key.repeatsBits) {
    HotPlans::Key owned = key;
    owned.layer = layer;
    if (const auto status = convolveInOwned(owned, call)) return *status;
  }
  key.workspaceBytes = call.pointers.grantedBytes();

  HotPlans::Entry* const hot = findHot(key, call, limits_.epoch());
  const bool isKnown = hot != nullptr && hot->use();
  if (isKnown && (!hot->plan || !isOnlyForOthers(*hot->plan, call, key.problem))) {
    if (!hot->plan) return runUnplanned(key, call, hot->why);
    hotMs_ += hot->plan->predictedMs;
    if (key.own >= 0 && ++hot->calls >= hot->trialAt) return runOnTrial(key, *hot, call);
    return runPlanned(key, *hot->plan, call, call);
  }
  const char* why = nullptr;
  std::shared_ptr<const Plan> plan;
  // The table is cleared where the handle moves to another device.
  if (isKnown) plan = completed(key, *std::shared_ptr(hot->plan));
  if (!plan) plan = planForCall(key, call, &why);
  return plan ? runPlanned(key, *plan, call, call) : runUnplanned(key, call, why);
}

/// A client's plan is of one problem, and it is here that tickets are found.
HotPlans::Entry* Context::findHot(const HotPlans::Key& key,
                                  const ConvolutionCall& call,
                                  std::uint64_t epoch) noexcept {
  std::atomic<std::uint64_t>* const ticket =
      call.execution != nullptr ? call.execution->ticket : nullptr;
  if (ticket == nullptr) return hotPlans_.find(key, epoch);
  HotPlans::Entry* hot = hotPlans_.find(ticket->load(std::memory_order_relaxed), key, epoch);
  if (hot != nullptr) return hot;
  hot = hotPlans_.find(key, epoch);
  if (hot != nullptr) ticket->store(hot->ticket, std::memory_order_relaxed);
  return hot;
}

/// The entry may be gone once something has run.
cudnnStatus_t Context::runOnTrial(const HotPlans::Key& key,
                                  HotPlans::Entry& hot,
                                  const ConvolutionCall& call) noexcept {
  const std::shared_ptr<const Plan> plan = hot.plan;
  const auto leaveOff = [&] {
    hot.trial = nullptr;
    hot.trialAt = hot.calls * Trial::kTimesLater;
    return runPlanned(key, *plan, call, call);
  };
  try {
    const CallStream stream = streamOf(handle_);
    if (stream.capturing) return runPlanned(key, *plan, call, call);
    if (!call.execution->fits(call.pointers)) return leaveOff();
    if (!hot.trial) hot.trial = std::make_shared<Trial>();
    const std::shared_ptr<Trial> trial = hot.trial;
    const Trial::Next next = trial->next();
    if (next == Trial::Next::kWait) return runPlanned(key, *plan, call, call);
    if (next == Trial::Next::kOver) {
      if (!trial->ownIsFaster()) return leaveOff();
      planner().preferOwn(request(key.problem, key.workspaceBytes, key.deterministic),
                          *call.execution->kernel);
      hotPlans_.put(key, limits_.epoch(), nullptr, nullptr, left::kOwnIsBest);
      return runUnplanned(key, call, left::kOwnIsBest);
    }
    const bool isTimed = trial->begin(stream.stream);
    const cudnnStatus_t status = next == Trial::Next::kPlan
                                     ? runPlanned(key, *plan, call, call)
                                     : bypass(key.problem.operation, call, left::kOnTrial);
    if (isTimed) static_cast<void>(trial->end(stream.stream));
    return status;
  } catch (const std::exception&) {  // out of memory; the call itself says what else is wrong
    return runPlanned(key, *plan, call, call);
  }
}

/// Neither the pack nor the problem is read: a call that is left alone costs next to nothing.
std::optional<cudnnStatus_t> Context::leaveAgain(const ClientExecution& execution,
                                                 std::size_t grantedBytes) noexcept {
  if (isRecorded() || now_->owner || (now_->replays && !followDevice())) return std::nullopt;
  HotPlans::Terms terms = termsOf(execution);
  terms.workspaceBytes = grantedBytes;
  const std::uint64_t ticket = execution.ticket->load(std::memory_order_relaxed);
  HotPlans::Entry* const hot = hotPlans_.find(ticket, terms, limits_.epoch());
  if (hot == nullptr || hot->plan || hot->isUsedUp()) return std::nullopt;
  const cudnnStatus_t status = runExecution(handle_, execution);
  if (status != CUDNN_STATUS_SUCCESS) return std::nullopt;  // something else may run
  static_cast<void>(hot->use());
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  return status;
}

cudnnStatus_t Context::runUnplanned(const HotPlans::Key& key,
                                    const ConvolutionCall& call,
                                    const char* why) noexcept {
  const cudnnStatus_t status = bypass(key.problem.operation, call, why);
  if (!isRefusal(status)) return status;
  if (const auto plan = planOfOthers(key, call)) return runPlanned(key, *plan, call, call);
  return divideUnmeasured(key, call, status);
}

cudnnStatus_t Context::divideUnmeasured(const HotPlans::Key& key,
                                        const ConvolutionCall& call,
                                        cudnnStatus_t refusal) noexcept {
  try {
    const bool mayDivide = sizesFor(key.problem, BatchSizePolicy::kPowerOfTwo).size() > 1;
    if (mayDivide &&
        runUnmeasured(handle_, key.problem, call, determinismOf(key)) == CUDNN_STATUS_SUCCESS)
      return CUDNN_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {  // cuDNN's refusal says enough
  }
  return refusal;
}

cudnnStatus_t Context::runPlanned(const HotPlans::Key& key,
                                  const Plan& plan,
                                  const ConvolutionCall& call,
                                  const ConvolutionCall& clients) noexcept {
  const Plan* const chosen = choose(plan, call, key.problem);
  if (chosen == nullptr) return runUnplanned(key, clients, left::kNoPlan);
  if (chosen != &plan) return runGeneral(key, *chosen, call, clients);
  bool isGraph = false;  // the client's own: there, too, the device sets the pace
  if (plan.replayed && now_->replays && !settings().equivalenceTest && replay(plan, call, &isGraph))
    return CUDNN_STATUS_SUCCESS;
  return enqueuePlan(key, plan.at(isGraph), call, clients);
}

cudnnStatus_t Context::runGeneral(const HotPlans::Key& key,
                                  const Plan& plan,
                                  const ConvolutionCall& call,
                                  const ConvolutionCall& clients) noexcept {
  try {
    const DeviceScope scope(now_->device);
    if (checkedPlans_.accepts(handle_, plan, call.pointers.grantedBytes()))
      return runPlanned(key, plan, call, clients);
  } catch (const std::exception&) {  // cuDNN itself says what is wrong with the device
  }
  const cudnnStatus_t status = bypass(key.problem.operation, clients, left::kRefused);
  return isRefusal(status) ? divideUnmeasured(key, clients, status) : status;
}

bool Context::replay(const Plan& plan, const ConvolutionCall& call, bool* clientsGraph) noexcept {
  try {
    const CallStream stream = streamOf(handle_);
    *clientsGraph = stream.capturing;
    if (stream.capturing ||
        !now_->replays->run(
            ownerOf(this), handle_, plan, call, stream, settings().graphMemoryBytes))
      return false;
  } catch (const std::exception&) {  // the call itself says what is wrong with the stream
    return false;
  }
  Statistics& statistics = planner().statistics();
  auto& counter = plan.isDivided() ? statistics.splitCalls : statistics.undividedCalls;
  counter.fetch_add(1, std::memory_order_relaxed);
  statistics.replayedCalls.fetch_add(1, std::memory_order_relaxed);
  if (isRecorded()) noteRun(plan, call, true);
  return true;
}

cudnnStatus_t Context::enqueuePlan(const HotPlans::Key& key,
                                   const Plan& plan,
                                   const ConvolutionCall& call,
                                   const ConvolutionCall& clients) noexcept {
  int enqueued = 0;
  const cudnnStatus_t status = settings().equivalenceTest && plan.isDivided()
                                   ? runTested(handle_, now_->device, plan, call, &enqueued)
                                   : runPlan(handle_, plan, call, &enqueued);
  if (status != CUDNN_STATUS_SUCCESS) return recover(key, plan, call, clients, status, enqueued);
  Statistics& statistics = planner().statistics();
  auto& counter = plan.isDivided() ? statistics.splitCalls : statistics.undividedCalls;
  counter.fetch_add(1, std::memory_order_relaxed);
  if (isRecorded()) noteRun(plan, call, false);
  return status;
}

Determinism Context::determinismOf(const HotPlans::Key& key) const noexcept {
  if (settings().deterministic) return Determinism::kRequired;
  return key.deterministic ? Determinism::kPreferred : Determinism::kAny;
}

cudnnStatus_t Context::recover(const HotPlans::Key& key,
                               const Plan& plan,
                               const ConvolutionCall& call,
                               const ConvolutionCall& clients,
                               cudnnStatus_t refusal,
                               int enqueued) noexcept {
  cudnnStatus_t status = refusal;
  // Of an engine's tiles, some may have been added already.
  const bool hasBegun = enqueued > 0 || (plan.runs != CallKind::kOther && mayHaveRun(refusal));
  if (!hasBegun || isRepeatable(plan.problem, clients)) {
    status = bypass(plan.problem.operation, clients, left::kRefused);
    const bool fits = clients.execution == nullptr || clients.execution->fits(clients.pointers);
    // Where cuDNN alone refuses it too, the call is at fault and not the plan.
    const bool lacksWorkspace = !fits && isRefusal(status);
    if (!hasBegun && status != CUDNN_STATUS_SUCCESS && !lacksWorkspace) return status;
    if (lacksWorkspace) status = divideUnmeasured(key, clients, refusal);
  } else if (!mayHaveRun(refusal)) {
    if (completePlan(handle_, plan, call, enqueued, determinismOf(key)) == CUDNN_STATUS_SUCCESS) {
      status = CUDNN_STATUS_SUCCESS;
      if (isRecorded()) noteRun(plan, call, false);
      planner().statistics().splitCalls.fetch_add(1, std::memory_order_relaxed);
    }
  }
  giveUp(plan, refusal);
  return status;
}

void Context::giveUp(const Plan& plan, cudnnStatus_t refusal) noexcept {
  try {
    logInfo("{} N={}: {} was refused ({}): left to cuDNN",
            plan.problem.text(),
            plan.problem.batch(),
            toText(plan),
            cudnn().getErrorString(refusal));
    checkedPlans_.refuse(plan);
  } catch (const std::bad_alloc&) {  // it may be refused once more
  }
  hotPlans_.clear();
}

cudnnStatus_t Context::bypass(Operation operation,
                              const ConvolutionCall& call,
                              const char* why) noexcept {
  if (isRecorded()) record_.passed(call, why);
  planner().statistics().bypassedCalls.fetch_add(1, std::memory_order_relaxed);
  const cudnnStatus_t status = runNative(handle_, operation, call);
  if (status == CUDNN_STATUS_SUCCESS) return status;
  Problem read;
  const Problem* const problem = problemOf(operation, call, read);
  if (problem == nullptr || !(Planner::plans(*problem) || isCapped()) || !readRest(call, read))
    return status;
  return substitutes_.run(handle_, *problem, call, settings().deterministic).value_or(status);
}

}  // namespace ucudnn
