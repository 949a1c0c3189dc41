#include "context/call_plans.hpp"

#include <algorithm>
#include <utility>

#include "kernels/fitting.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"

namespace ucudnn {

/// Whether `bytes` are enough for the call's own algorithm. A client's execution plan has none: any
/// may run in its place.
bool CallPlans::fits(std::size_t bytes) const {
  if (call_.algorithm < 0)
    return isOfferedWithin(context_.handle_,
                           key_.problem,
                           call_.descriptors,
                           bytes,
                           key_.deterministic || now().settings.deterministic);
  return fitsWorkspace(
      context_.handle_, key_.problem.operation, call_.descriptors, call_.algorithm, bytes);
}

/// Whether cuDNN can't run the call either, because its client was told of no more workspace than
/// the cap. The client of a plan may have been told less by a handle with another cap, or for a
/// plan that no longer runs. For a fused call without an activation cuDNN has no other algorithm,
/// nor another deterministic one.
bool CallPlans::hasTooLittle(const PlanRequest& wanted) const {
  const bool mayLack = call_.execution != nullptr ? wanted.lacksWorkspace
                                                  : now().isCapped() && call_.fused != nullptr;
  return mayLack && !fits(wanted.limitBytes);
}

/// The workspace that is passed at the call bounds the plan, and so does a limit that this handle's
/// client has named. Another handle's limit does not.
PlanRequest CallPlans::request() {
  std::size_t limitBytes = key_.workspaceBytes;
  const StatedLimit* const stated = context_.limits_.findForCall(key_.problem);
  if (stated != nullptr && stated->isNamed) limitBytes = std::min(limitBytes, stated->bytes);
  // A client may have been told the cap as it is, so the limit of its plan isn't rounded down.
  limitBytes = key_.isExecution ? std::min(limitBytes, now().settings.workspaceLimitBytes)
                                : now().capped(limitBytes);
  PlanRequest wanted = now().request(key_.problem, limitBytes, key_.deterministic);
  const CallKind kind = kindOf(call_, key_.problem);
  wanted.calls = plannedFor(kind);
  if (!key_.isExecution) return wanted;
  wanted.suitsEngines = kind != CallKind::kOther;
  wanted.lacksWorkspace = !call_.execution->fits(call_.pointers);
  if (call_.execution->kernel != nullptr)
    wanted.own = OwnKernel{*call_.execution->kernel, call_.execution->neededBytes};
  return wanted;
}

/// The answer for a program whose bits must not depend on what has been measured.
PlanAnswer CallPlans::unmeasured(const PlanRequest& wanted) {
  PlanAnswer found;
  found.isFinal = found.ownIsBest = !wanted.lacksWorkspace;
  if (!wanted.lacksWorkspace) return found;
  const Measuring measuring =
      isCapturing(context_.handle_) ? Measuring::kNever : Measuring::kIfKnown;
  found.plan = planner().ownUnmeasured(wanted, measuring);
  if (!found.plan && !fits(wanted.limitBytes)) found.plan = planner().anyThatFits(wanted);
  return found;
}

PlanAnswer CallPlans::lookUp() {
  PlanRequest wanted = request();
  if (key_.repeatsBits && now().frozen == nullptr) return unmeasured(wanted);
  const StatedLimit* const stated = context_.limits_.findForCall(key_.problem);
  const bool isNamed = stated != nullptr && stated->isNamed;
  // A kernel that cuDNN doesn't name can't be compared with others.
  if (key_.isExecution && !wanted.own && !wanted.lacksWorkspace && now().frozen == nullptr)
    return {nullptr, true};
  const HotPlans::Entry* const hot = context_.hotPlans_.find(key_, context_.limits_.epoch());
  if (hot != nullptr) wanted.callsSince = std::max(1u, hot->uses);
  if (isCapturing(context_.handle_)) {
    planner().waitFor(wanted);  // the client's graph will run it for long
    return planner().answer(wanted, Measuring::kNever);
  }
  const TensorBuffers buffers{const_cast<void*>(call_.pointers.x),
                              const_cast<void*>(call_.pointers.w),
                              const_cast<void*>(call_.pointers.y),
                              call_.pointers.workspace,
                              key_.workspaceBytes};
  // The output is about to be overwritten, so measuring may write it as well.
  const bool overwrites = call_.fused == nullptr && isZero(call_.pointers.beta, key_.problem);
  if (overwrites) wanted.buffers = &buffers;
  // A query lacked the memory to measure what its client wants planned; this call can measure.
  const bool owed = isNamed && overwrites && call_.pointers.workspace != nullptr;
  Measuring measuring = owed ? Measuring::kNow : Measuring::kWhenItPays;
  PlanAnswer found = planner().answer(wanted, measuring);
  if (found.plan && hot != nullptr && hot->plan == found.plan && hot->isToBeChecked()) {
    isCheckedAgain_ = planner().passesAgain(wanted, *found.plan);
    if (!isCheckedAgain_) found = planner().answer(wanted, measuring);
  }
  if (found.plan && !found.plan->measured && !accepts(*found.plan, key_.workspaceBytes)) {
    wanted.own.reset();  // another plan may run
    found.plan = nullptr;
  }
  const bool hasNothing = !found.plan && !owed && hasTooLittle(wanted);
  if (hasNothing && key_.isExecution) found.plan = planner().anyThatFits(wanted);
  if (hasNothing && !found.plan) {
    measuring = Measuring::kNow;
    found = planner().answer(wanted, measuring);
  }
  // As in Queries::workspaceBytes: if no deterministic kernel fits, another one runs. A client's
  // plan doesn't need that, because it can run itself.
  if (!found.plan && (found.isFinal || found.isFromOtherLimit) && key_.deterministic &&
      !key_.isExecution && !now().settings.deterministic) {
    wanted.deterministic = false;
    found = planner().answer(wanted, measuring);
  }
  return found;
}

/// Completes the plan instead of choosing again, so that a call that adds does not change the
/// results of calls that overwrite.
std::shared_ptr<const Plan> CallPlans::complete(const Plan& plan) noexcept {
  try {
    const DeviceScope scope = context_.useDevice();
    PreparedKernels kernels(context_.handle_, plan.problem);
    auto all = forAllCalls(kernels, plan);
    if (!all || !accepts(*all, key_.workspaceBytes)) return nullptr;
    context_.hotPlans_.put(key_, context_.limits_.epoch(), all);
    return all;
  } catch (const std::exception&) {  // the planner says more
    return nullptr;
  }
}

/// Remembers an answer for later calls, unless the table has a plan that serves other calls.
void CallPlans::remember(const PlanAnswer& found, const char* why) {
  HotPlans& table = context_.hotPlans_;
  const std::uint64_t epoch = context_.limits_.epoch();
  // Calls that overwrite keep their plan if calls that add get none, or if that plan borrows; and
  // if they themselves get none for now.
  const HotPlans::Entry* const hot = table.find(key_, epoch);
  const bool isForOverwriting =
      hot != nullptr && hot->plan && hot->plan->runs == CallKind::kOverwriting;
  const bool isOther = kindOf(call_, key_.problem) != CallKind::kOverwriting;
  const bool isKept = isForOverwriting &&
                      (found.plan ? isOther && hot->plan->borrows() : isOther || !found.isFinal);
  // No plan for a call that suits no engine does not mean that engine calls have none.
  const bool isForAll =
      found.plan || !key_.isExecution || suitsEngines(key_.problem, call_.pointers, call_.fused);
  if (isKept || !isForAll) return;
  const bool isChecked = !found.plan || isCheckedAgain_ || !now().settings.checkKernels;
  const std::uint32_t goodFor = isChecked ? HotPlans::kForever : HotPlans::checkedAfter(key_);
  if (found.isFinal && !found.isOngoing)
    table.put(key_, epoch, found.plan, nullptr, why, goodFor);
  else if (!isCapturing(context_.handle_))
    table.putForNow(key_, epoch, found.plan, why, found.isOngoing);
}

std::shared_ptr<const Plan> CallPlans::find(const char** why) noexcept {
  *why = reason::kFailed;
  try {
    planner().addConvolutionTime(std::exchange(context_.unreportedMs_, 0));
    PlanAnswer found;
    try {
      const DeviceScope scope = context_.useDevice();
      found = lookUp();
      *why = found.ownIsBest ? reason::kOwnIsBest
             : found.isFinal ? reason::kNoPlan
                             : reason::kNotMeasured;
      if (key_.repeatsBits && found.ownIsBest) *why = reason::kRepeats;
      if (found.plan && !accepts(*found.plan, key_.workspaceBytes)) {
        found.plan = nullptr;
        *why = reason::kRefused;
      }
    } catch (const std::exception& error) {
      logInfo("{} is left to cuDNN: {}", Late{[&] { return key_.problem.text(); }}, error.what());
    }
    remember(found, *why);
    return found.plan;
  } catch (...) {  // out of memory for the table, or for the warning
    return nullptr;
  }
}

std::shared_ptr<const Plan> CallPlans::ofOthers() noexcept {
  try {
    if (call_.execution != nullptr && call_.execution->repeatsBits) return nullptr;
    const DeviceScope scope = context_.useDevice();
    const std::size_t bytes = call_.pointers.grantedBytes();
    PlanRequest wanted = now().request(key_.problem, bytes, key_.deterministic);
    wanted.calls = plannedFor(kindOf(call_, key_.problem));
    Settings settings = now().settings;
    wanted.settings = &settings;
    for (const BatchSizePolicy policy : kBatchSizePolicies) {
      settings.batchSizePolicy = policy;
      auto plan = planner().answer(wanted, Measuring::kNever).plan;
      if (plan && accepts(*plan, bytes)) return plan;
    }
  } catch (const std::exception&) {  // cuDNN's refusal says enough
  }
  return nullptr;
}

}  // namespace ucudnn
