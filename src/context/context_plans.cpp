// Where a call's plan comes from, when the handle has none at hand.
#include <algorithm>
#include <utility>

#include "context/context.hpp"
#include "kernels/fitting.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// Whether cuDNN can't run the call either. It was told of no more workspace than the cap; cuDNN
/// has no other algorithm without activation, nor one that is deterministic.
bool Context::hasTooLittle(const ConvolutionCall& call, const PlanRequest& wanted) const {
  const bool mayLack = call.execution != nullptr ? wanted.lacksWorkspace : call.fused != nullptr;
  return isCapped() && mayLack &&
         !fitsWorkspace(handle_,
                        wanted.problem.operation,
                        call.descriptors,
                        call.algorithm,
                        wanted.limitBytes);
}

/// What is passed at the call bounds the plan, and so does a limit that this handle's client has
/// named; another handle's limit does not.
PlanRequest Context::callersRequest(const HotPlans::Key& key, const ConvolutionCall& call) {
  std::size_t limitBytes = key.workspaceBytes;
  const StatedLimit* const stated = limits_.findForCall(key.problem);
  if (stated != nullptr && stated->isNamed) limitBytes = std::min(limitBytes, stated->bytes);
  // A client's plan may need a few bytes less than the cap, which is not what is told then.
  limitBytes =
      key.isExecution ? std::min(limitBytes, settings().workspaceLimitBytes) : capped(limitBytes);
  PlanRequest wanted = request(key.problem, limitBytes, key.deterministic);
  wanted.calls = callsOf(kindOf(call, key.problem));
  if (!key.isExecution) return wanted;
  wanted.suitsEngines = suitsEngines(key.problem, call.pointers, call.fused);
  wanted.lacksWorkspace = !call.execution->fits(call.pointers);
  if (call.execution->kernel != nullptr)
    wanted.own = OwnKernel{*call.execution->kernel, call.execution->neededBytes};
  wanted.isCompared = call.execution->isCompared;
  return wanted;
}

/// Of a program whose bits don't depend on what has been measured.
PlanAnswer Context::unmeasuredPlan(const ConvolutionCall& call, const PlanRequest& wanted) {
  PlanAnswer found;
  found.lasts = found.ownIsBest = !wanted.lacksWorkspace;
  if (!wanted.lacksWorkspace) return found;
  const Measuring measuring = isCapturing(handle_) ? Measuring::kNever : Measuring::kIfKnown;
  found.plan = planner().ownUnmeasured(wanted, measuring);
  if (!found.plan &&
      !fitsWorkspace(
          handle_, wanted.problem.operation, call.descriptors, call.algorithm, wanted.limitBytes))
    found.plan = planner().anyThatFits(wanted);
  return found;
}

PlanAnswer Context::lookUpPlan(const HotPlans::Key& key, const ConvolutionCall& call) {
  PlanRequest wanted = callersRequest(key, call);
  if (key.repeatsBits && now_->frozen == nullptr) return unmeasuredPlan(call, wanted);
  const StatedLimit* const stated = limits_.findForCall(key.problem);
  const bool isNamed = stated != nullptr && stated->isNamed;
  // A kernel that cuDNN doesn't name can't be compared with others.
  if (key.isExecution && !wanted.own && !wanted.lacksWorkspace && now_->frozen == nullptr)
    return {nullptr, true};
  if (const HotPlans::Entry* const hot = hotPlans_.find(key, limits_.epoch()))
    wanted.callsSince = std::max(1u, hot->uses);
  if (isCapturing(handle_)) return planner().answer(wanted, Measuring::kNever);
  const TensorBuffers buffers{const_cast<void*>(call.pointers.x),
                              const_cast<void*>(call.pointers.w),
                              const_cast<void*>(call.pointers.y),
                              call.pointers.workspace,
                              key.workspaceBytes};
  // The output is about to be overwritten: what is measured may write it as well.
  const bool overwrites = call.fused == nullptr && isZero(call.pointers.beta, key.problem);
  if (overwrites) wanted.buffers = &buffers;
  // A query could not measure what its client wants planned, for want of memory; this call can.
  const bool owed = isNamed && overwrites && call.pointers.workspace != nullptr;
  Measuring measuring = owed ? Measuring::kNow : Measuring::kWhenItPays;
  PlanAnswer found = planner().answer(wanted, measuring);
  if (found.plan && !found.plan->measured &&
      !checkedPlans_.accepts(handle_, *found.plan, key.workspaceBytes)) {
    wanted.own.reset();  // another plan may run
    found.plan = nullptr;
  }
  const bool hasNothing = !found.plan && !owed && hasTooLittle(call, wanted);
  if (hasNothing && key.isExecution) found.plan = planner().anyThatFits(wanted);
  if (hasNothing && !found.plan) {
    measuring = Measuring::kNow;
    found = planner().answer(wanted, measuring);
  }
  // As workspaceBytes decides: where no deterministic kernel fits, another runs. A client's plan
  // can run instead.
  if (!found.plan && (found.lasts || found.isFar) && key.deterministic && !key.isExecution &&
      !settings().deterministic) {
    wanted.deterministic = false;
    found = planner().answer(wanted, measuring);
  }
  return found;
}

/// Not what would be chosen now: a call that adds would change what those that overwrite compute.
std::shared_ptr<const Plan> Context::completed(const HotPlans::Key& key,
                                               const Plan& plan) noexcept {
  try {
    const DeviceScope scope = useDevice();
    PreparedKernels kernels(handle_, plan.problem);
    auto all = forAllCalls(kernels, plan);
    if (!all || !checkedPlans_.accepts(handle_, *all, key.workspaceBytes)) return nullptr;
    hotPlans_.put(key, limits_.epoch(), all);
    return all;
  } catch (const std::exception&) {  // the planner says more
    return nullptr;
  }
}

std::shared_ptr<const Plan> Context::planForCall(const HotPlans::Key& key,
                                                 const ConvolutionCall& call,
                                                 const char** why) noexcept {
  *why = left::kFailed;
  try {
    planner().addConvolutionTime(std::exchange(hotMs_, 0));
    PlanAnswer found;
    try {
      const DeviceScope scope = useDevice();
      found = lookUpPlan(key, call);
      *why = found.ownIsBest ? left::kOwnIsBest : found.lasts ? left::kNoPlan : left::kNotMeasured;
      if (key.repeatsBits && found.ownIsBest) *why = left::kRepeats;
      if (found.plan && !checkedPlans_.accepts(handle_, *found.plan, key.workspaceBytes)) {
        found.plan = nullptr;
        *why = left::kRefused;
      }
    } catch (const std::exception& error) {
      logInfo("{} is left to cuDNN: {}", Late{[&] { return key.problem.text(); }}, error.what());
    }
    // Calls that overwrite keep theirs where those that add have none, or none that borrows.
    const HotPlans::Entry* const hot = hotPlans_.find(key, limits_.epoch());
    const bool servesOthers =
        hot != nullptr && hot->plan && hot->plan->runs == CallKind::kOverwriting;
    const bool isKept = servesOthers && (!found.plan || hot->plan->borrows());
    // That there is none for a call that suits no engine says nothing of those that do.
    const bool isForAll =
        found.plan || !key.isExecution || suitsEngines(key.problem, call.pointers, call.fused);
    if (isKept || !isForAll) return found.plan;
    if (found.lasts)
      hotPlans_.put(key, limits_.epoch(), found.plan, nullptr, *why);
    else if (!isCapturing(handle_))
      hotPlans_.putForNow(key, limits_.epoch(), found.plan, *why);
    return found.plan;
  } catch (...) {  // out of memory for the table, or for the warning
    return nullptr;
  }
}

std::shared_ptr<const Plan> Context::planOfOthers(const HotPlans::Key& key,
                                                  const ConvolutionCall& call) noexcept {
  try {
    if (call.execution != nullptr && call.execution->repeatsBits) return nullptr;
    const DeviceScope scope = useDevice();
    const std::size_t bytes = call.pointers.grantedBytes();
    PlanRequest wanted = request(key.problem, bytes, key.deterministic);
    wanted.calls = callsOf(kindOf(call, key.problem));
    Settings settings = now_->settings;
    wanted.settings = &settings;
    for (const BatchSizePolicy policy : kBatchSizePolicies) {
      settings.batchSizePolicy = policy;
      auto plan = planner().answer(wanted, Measuring::kNever).plan;
      if (plan && checkedPlans_.accepts(handle_, *plan, bytes)) return plan;
    }
  } catch (const std::exception&) {  // cuDNN's refusal says enough
  }
  return nullptr;
}

}  // namespace ucudnn
