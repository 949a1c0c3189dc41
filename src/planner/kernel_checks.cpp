#include "planner/kernel_checks.hpp"

#include <algorithm>
#include <chrono>

#include "cuda/call_stream.hpp"
#include "kernels/source.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// As for unasked measuring: the program's other threads allocate meanwhile.
constexpr std::size_t kPartsOfFree = 4;
// 0.5 MB for each kind of kernel.
constexpr std::size_t kMostKin = 2048;

KernelToCheck toCheck(const PlanRequest& request, const Plan::Step& step) {
  KernelToCheck checked;
  checked.batch = step.batch;
  checked.kernel = step.built;
  checked.workspaceBytes = step.workspaceBytes;
  checked.accurate = step.accurate;
  checked.adds = request.problem.operation == Operation::kBackwardFilter &&
                 step.batch < request.problem.batch();
  checked.mustRepeat = request.deterministic && step.deterministic;
  return checked;
}

}  // namespace

Problem kinOf(const Problem& problem) noexcept {
  const auto factorOfTwo = [](auto number) { return number & -number & 15; };  // 16 and more: 0
  Problem kin = problem;
  for (auto* sizes : {&kin.xSizes, &kin.ySizes}) {
    if ((*sizes)[0] > 1) (*sizes)[0] = 2 + (*sizes)[0] % 2;
    for (std::size_t d = 2; d < sizes->size(); ++d) (*sizes)[d] = factorOfTwo((*sizes)[d]);
  }
  // A stride of one tells the layout.
  for (auto* strides : {&kin.xStrides, &kin.yStrides})
    for (std::int64_t& stride : *strides) stride = stride == 1 ? -1 : factorOfTwo(stride);
  return kin;
}

bool KernelChecks::Kin::has(const Problem& problem, Kernel kernel, bool repeats) const {
  const std::lock_guard lock(mutex_);
  const auto found = right_.find({kindOf(kernel), repeats});
  return found != right_.end() && found->second.count(kinOf(problem)) > 0;
}

void KernelChecks::Kin::add(const Problem& problem, Kernel kernel, bool repeats) {
  const std::lock_guard lock(mutex_);
  auto& problems = right_[{kindOf(kernel), repeats}];
  if (problems.size() >= kMostKin) problems.clear();
  problems.insert(kinOf(problem));
}

KernelChecks::Known KernelChecks::known(const PlanRequest& request,
                                        const Plan& plan,
                                        const Plan::Step& step) const {
  const Known itself = store_.read(request, [&](const ucudnn::Known* known, const KnownQuestion*) {
    if (known == nullptr) return Known::kNothing;
    if (known->wrong.count(step.kernel) > 0) return Known::kWrong;
    if (known->right.count({step.batch, step.kernel}) == 0) return Known::kNothing;
    const bool isOpen = request.deterministic && step.deterministic &&
                        known->repeated.count({step.batch, step.kernel}) == 0;
    return isOpen ? Known::kNothing : Known::kRight;
  });
  if (itself != Known::kNothing || plan.measured) return itself;
  const Problem part = request.problem.withBatch(step.batch);
  const bool isOwn =
      request.own && request.own->kernel == step.kernel && kinOf(part) == kinOf(request.problem);
  const bool isRight = isOwn || kin_.has(part, step.kernel, toCheck(request, step).mustRepeat);
  return isRight ? Known::kRight : Known::kNothing;
}

/// Adds the steps of the plan that are to be checked now, each kernel once. Returns false if one is
/// known to be wrong.
bool KernelChecks::addOpen(const PlanRequest& request,
                           const Plan& plan,
                           Purpose purpose,
                           Steps& open) const {
  bool mayPass = true;
  for (const Plan::Step& step : plan.steps) {
    const Known before = known(request, plan, step);
    if (before == Known::kWrong) mayPass = false;
    if (before == Known::kWrong || (before == Known::kRight && !purpose.isAgain)) continue;
    if (std::none_of(open.begin(), open.end(), [&](const Plan::Step* other) {
          return other->batch == step.batch && other->kernel == step.kernel;
        }))
      open.push_back(&step);
  }
  for (const Plan* const other : {plan.enqueued.get(), plan.general.get()})
    if (other != nullptr && !addOpen(request, *other, purpose, open)) mayPass = false;
  return mayPass;
}

KernelChecks::Outcome KernelChecks::note(const PlanRequest& request,
                                         const Plan::Step& step,
                                         const KernelVerdict& verdict,
                                         Passed& passed) {
  if (verdict.kind == KernelVerdict::Kind::kUnchecked) return Outcome::kPassed;
  ++statistics_.kernelsChecked;
  if (verdict.kind == KernelVerdict::Kind::kRight) {
    const bool repeats = toCheck(request, step).mustRepeat;
    (repeats ? passed.repeated : passed.right).insert({step.batch, step.kernel});
    kin_.add(request.problem.withBatch(step.batch), step.kernel, repeats);
    return Outcome::kPassed;
  }
  const bool isWrong = verdict.kind == KernelVerdict::Kind::kWrong;
  // A user of a program that doesn't know of us has asked for no diagnosis, so this is no warning.
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
    store_.addUnrepeatable(request, step.batch, step.kernel);
  }
  return Outcome::kFailed;
}

KernelChecks::Outcome KernelChecks::check(const PlanRequest& request,
                                          const Plan& plan,
                                          Purpose purpose,
                                          Passed& passed) {
  Steps open;
  auto outcome = addOpen(request, plan, purpose, open) ? Outcome::kPassed : Outcome::kFailed;
  if (open.empty()) return outcome;
  if (purpose.measuring == Measuring::kNever || !request.mayAllocate || isCapturing(request.handle))
    return std::max(outcome, Outcome::kPutOff);
  const auto begin = std::chrono::steady_clock::now();
  ScratchBound memory;
  memory.mostBytes = request.settings->benchmarkMemoryBytes;
  if (purpose.measuring != Measuring::kNow) memory.partsOfFree = kPartsOfFree;
  KernelChecker checker(request.handle, request.problem, memory, knownOutputs_);
  std::stable_sort(open.begin(), open.end(), [](const Plan::Step* one, const Plan::Step* other) {
    return one->batch > other->batch;
  });
  for (const Plan::Step* const step : open) checker.reserve(toCheck(request, *step));
  int checked = 0;
  for (const Plan::Step* const step : open) {
    // An earlier step's kernel may be its kin.
    if (!purpose.isAgain && known(request, plan, *step) == Known::kRight) continue;
    ++checked;
    KernelVerdict verdict;
    try {
      verdict = checker.check(toCheck(request, *step));
    } catch (const Error& error) {  // it says nothing of the kernel, which is checked another time
      logInfo("{}: a check failed: {}", Late{[&] { return request.problem.text(); }}, error.what());
    }
    outcome = std::max(outcome, note(request, *step, verdict, passed));
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  logDebug("{} N={}: {} kernels checked in {:.1f} ms",
           request.problem.text(),
           request.problem.batch(),
           checked,
           elapsed.count());
  return outcome;
}

KernelChecks::Outcome KernelChecks::check(const PlanRequest& request,
                                          const Plan& plan,
                                          Measuring measuring) {
  if (!request.settings->checkKernels) return Outcome::kPassed;
  Passed passed;
  const Outcome outcome = check(request, plan, {measuring, false}, passed);
  if (!passed.right.empty()) store_.addRight(request, passed.right);
  if (!passed.repeated.empty()) store_.addRepeated(request, passed.repeated);
  return outcome;
}

KernelChecks::Outcome KernelChecks::checkAgain(const PlanRequest& request, const Plan& plan) {
  if (!request.settings->checkKernels) return Outcome::kPassed;
  Passed passed;
  return check(request, plan, {Measuring::kWhenItPays, true}, passed);
}

}  // namespace ucudnn
