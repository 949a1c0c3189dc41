#include "planner/kernel_checks.hpp"

#include <algorithm>

#include "benchmark/kernel_check.hpp"
#include "cuda/call_stream.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// As what nobody asked to be measured: the program's other threads allocate meanwhile.
constexpr std::size_t kPartsOfFree = 4;

KernelToCheck toCheck(const PlanRequest& request, const Plan::Step& step) {
  KernelToCheck checked;
  checked.problem = request.problem.withBatch(step.batch);
  checked.kernel = step.built;
  checked.workspaceBytes = step.workspaceBytes;
  checked.accurate = step.accurate;
  checked.adds = request.problem.operation == Operation::kBackwardFilter &&
                 step.batch < request.problem.batch();
  checked.mustRepeat = request.deterministic && step.deterministic;
  return checked;
}

}  // namespace

KernelChecks::Known KernelChecks::known(const PlanRequest& request, const Plan::Step& step) const {
  return store_.read(request, [&](const ucudnn::Known* known, const KnownQuestion*) {
    if (known == nullptr) return Known::kNothing;
    if (known->wrong.count(step.kernel) > 0) return Known::kWrong;
    if (known->right.count({step.batch, step.kernel}) == 0) return Known::kNothing;
    const bool isOpen = request.deterministic && step.deterministic &&
                        known->repeated.count({step.batch, step.kernel}) == 0;
    return isOpen ? Known::kNothing : Known::kRight;
  });
}

KernelChecks::Outcome KernelChecks::check(const PlanRequest& request,
                                          const Plan::Step& step,
                                          Purpose purpose,
                                          KernelSet& right) {
  const Known before = known(request, step);
  if (before == Known::kWrong) return Outcome::kFailed;
  if (before == Known::kRight && !purpose.isAgain) return Outcome::kPassed;
  if (purpose.measuring == Measuring::kNever || !request.mayAllocate || isCapturing(request.handle))
    return Outcome::kPutOff;
  ScratchBound memory;
  memory.mostBytes = request.settings->benchmarkMemoryBytes;
  if (purpose.measuring != Measuring::kNow) memory.partsOfFree = kPartsOfFree;
  const KernelToCheck checked = toCheck(request, step);
  const KernelVerdict verdict = checkKernel(request.handle, checked, memory);
  if (verdict.kind == KernelVerdict::Kind::kUnchecked) return Outcome::kPassed;
  ++statistics_.kernelsChecked;
  if (verdict.kind == KernelVerdict::Kind::kRight) {
    right.insert({step.batch, step.kernel});
    if (checked.mustRepeat)
      store_.update(request, [&](ucudnn::Known& known, KnownQuestion&) {
        known.repeated.insert({step.batch, step.kernel});
      });
    return Outcome::kPassed;
  }
  const bool isWrong = verdict.kind == KernelVerdict::Kind::kWrong;
  // Who runs a program that doesn't know of us has not asked for its diagnosis.
  Log::instance().write(request.settings->isUnmodified ? LogLevel::kInfo : LogLevel::kWarn,
                        fmt::format("{} N={}: {} is {}: {}; it is not used",
                                    request.problem.text(),
                                    step.batch,
                                    toText(request.problem.operation, step.kernel),
                                    isWrong ? "wrong" : "not deterministic",
                                    verdict.why));
  if (isWrong) {
    ++statistics_.kernelsWrong;
    store_.addWrong(request, step.batch, step.kernel);
  } else {
    store_.addUnrepeatable(request, step.kernel);
  }
  return Outcome::kFailed;
}

KernelChecks::Outcome KernelChecks::check(const PlanRequest& request,
                                          const Plan& plan,
                                          Purpose purpose,
                                          KernelSet& right) {
  auto outcome = Outcome::kPassed;
  for (const Plan::Step& step : plan.steps)
    outcome = std::max(outcome, check(request, step, purpose, right));
  for (const Plan* const other : {plan.enqueued.get(), plan.general.get()})
    if (other != nullptr && outcome != Outcome::kFailed)
      outcome = std::max(outcome, check(request, *other, purpose, right));
  return outcome;
}

KernelChecks::Outcome KernelChecks::check(const PlanRequest& request,
                                          const Plan& plan,
                                          Measuring measuring) {
  if (!request.settings->checkKernels) return Outcome::kPassed;
  KernelSet right;
  const Outcome outcome = check(request, plan, {measuring, false}, right);
  if (!right.empty()) store_.addRight(request, right);
  return outcome;
}

KernelChecks::Outcome KernelChecks::checkAgain(const PlanRequest& request, const Plan& plan) {
  if (!request.settings->checkKernels) return Outcome::kPassed;
  KernelSet right;
  return check(request, plan, {Measuring::kWhenItPays, true}, right);
}

}  // namespace ucudnn
