#include "planner/knowledge.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "benchmark/measurement.hpp"

namespace ucudnn {

std::size_t answeredWithin(const BenchmarkResult& result, std::size_t limitBytes) noexcept {
  return result.everyOfferFits ? std::numeric_limits<std::size_t>::max() : limitBytes;
}

/// A plan of another candidate also serves the client's own kernel, because cuDNN has proposed that
/// candidate to the program, too. A null plan says nothing about other kernels.
bool UnmeasuredPlan::serves(const PlanRequest& request) const noexcept {
  if (kind == Kind::kAny)
    return limitBytes == request.limitBytes && deterministic == request.deterministic &&
           replay == request.replay() && calls == request.calls;
  if (plan == nullptr)
    return request.limitBytes <= limitBytes && request.own && own == request.own->kernel &&
           request.deterministic == deterministic && request.calls == calls;
  return request.limitBytes <= limitBytes && plan->workspaceBytes <= request.limitBytes &&
         (deterministic || !request.deterministic) && request.replay() == replay &&
         plan->of(request.calls) != nullptr;
}

std::shared_ptr<const Plan> KnownQuestion::unmeasuredFor(
    const PlanRequest& request) const noexcept {
  for (const UnmeasuredPlan& made : unmeasured)
    if (made.kind == UnmeasuredPlan::Kind::kOwn && made.plan && made.serves(request))
      return made.plan;
  return nullptr;
}

const KnownPlan* KnownQuestion::find(const PlanRequest& request) const noexcept {
  const bool borrows = request.mayBorrow();
  const auto serves = [&](const KnownPlan& known) {
    if (known.beside)
      return request.runsOwn() && request.own->kernel == *known.beside && request.suitsEngines &&
             request.calls == known.calls &&
             (request.mayTellLess ? known.isForQueries : known.ownIsBest);
    if (!known.plan) return known.suitsEngines || !request.suitsEngines;
    return known.plan->of(request.calls) &&
           (request.suitsEngines || known.plan->of(CallKind::kOther));
  };
  const auto place = std::find_if(plans.begin(), plans.end(), [&](const KnownPlan& known) {
    return known.deterministic == request.deterministic && known.replay == request.replay() &&
           known.borrows == borrows && known.maxError == request.settings->maxError &&
           known.lowBytes <= request.limitBytes && request.limitBytes <= known.highBytes &&
           serves(known) && !(known.isFromOtherLimit && answersClosely(request.limitBytes));
  });
  return place == plans.end() ? nullptr : &*place;
}

void KnownQuestion::addAttempt(const BenchmarkResult& result,
                               std::size_t limitBytes,
                               bool hasUndivided) {
  const bool failsAgain = failed && result.failures > 0 && hasUndivided;
  const bool isAnswered = result.undividedMeasured || failsAgain;
  const std::size_t bytes = answeredWithin(result, limitBytes);
  const bool isShort = result.untried == Untried::kMemory;
  const bool hasFailed = (result.failures > 0 && !failsAgain) || (!isAnswered && !isShort);
  const bool isWhole = !isShort && !hasFailed && !result.replaysUntried;
  if (isWhole && result.untried != Untried::kTime)
    wholeBytes = std::max(wholeBytes.value_or(0), bytes);
  if (!isWhole || bytes >= triedBytes) {
    memoryWasShort = isShort;
    failed = hasFailed;
    replaysUntried = result.replaysUntried;
    triedBytes = isWhole ? 0 : std::max(triedBytes, limitBytes);
  }
  if (isAnswered) addCoverage({limitBytes, bytes});
  const bool bringsNothing = !isAnswered && result.measurements.empty() && result.refused.empty();
  if (!bringsNothing) dropPlans();
}

bool KnownQuestion::answers(std::size_t limitBytes) const noexcept {
  return std::any_of(coverages.begin(), coverages.end(), [&](const Coverage& coverage) {
    return limitBytes <= coverage.answeredBytes;
  });
}

bool KnownQuestion::answersClosely(std::size_t limitBytes) const noexcept {
  const auto isNear = [&](const Coverage& coverage) {
    const bool isAbove =
        limitBytes <= coverage.answeredBytes || limitBytes / 2 <= coverage.limitBytes;
    return coverage.limitBytes / 2 <= limitBytes && isAbove;
  };
  const auto isWithin = [&](const KnownPlan& known) {
    return known.plan && !known.isFromOtherLimit && known.plan->workspaceBytes <= limitBytes &&
           limitBytes <= known.highBytes;
  };
  if (!answers(limitBytes)) return false;
  return std::any_of(coverages.begin(), coverages.end(), isNear) ||
         std::any_of(plans.begin(), plans.end(), isWithin) ||
         std::any_of(formerPlans.begin(), formerPlans.end(), isWithin);
}

void KnownQuestion::addCoverage(Coverage coverage) {
  const auto covers = [](const Coverage& one, const Coverage& other) {
    return one.limitBytes <= other.limitBytes && one.answeredBytes >= other.answeredBytes;
  };
  if (coverages.size() >= kMostCoverages) return;  // only a hostile database has so many
  for (const Coverage& known : coverages)
    if (covers(known, coverage)) return;
  coverages.erase(std::remove_if(coverages.begin(),
                                 coverages.end(),
                                 [&](const Coverage& known) { return covers(coverage, known); }),
                  coverages.end());
  coverages.push_back(coverage);
}

void KnownQuestion::dropPlans() {
  if (!plans.empty()) formerPlans = std::move(plans);
  plans.clear();
}

void Known::dropWrong() {
  if (wrong.empty() && unrepeatable.empty()) return;
  for (auto& [batch, size] : measurements) {
    auto& kernels = size.kernels;
    const auto isWrong = [&](const Measurement& m) { return wrong.count(m.kernel) > 0; };
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isWrong), kernels.end());
    for (Measurement& m : kernels)
      m.deterministic = m.deterministic && unrepeatable.count(m.kernel) == 0;
  }
}

bool Known::hasTried(int batch, Kernel kernel) const noexcept {
  const auto size = refused.find(batch);
  return (size != refused.end() && contains(size->second, kernel)) ||
         findKernel(measurements, batch, kernel) != nullptr;
}

bool Known::mayLoad(const std::string& path) const noexcept {
  return loadedFrom != path && !path.empty() &&
         (!wasLocked() || KnownQuestion::Clock::now() >= loadAgainAt);
}

void Known::dropPlans() {
  for (KnownQuestion& asked : questions) asked.dropPlans();
}

KnownQuestion* Known::find(const QuestionKey& key) noexcept {
  const auto place = std::find_if(questions.begin(),
                                  questions.end(),
                                  [&](const KnownQuestion& asked) { return asked.key == key; });
  return place == questions.end() ? nullptr : &*place;
}

const KnownQuestion* Known::find(const QuestionKey& key) const noexcept {
  return const_cast<Known*>(this)->find(key);
}

KnownQuestion& Known::question(const QuestionKey& key) {
  if (KnownQuestion* const asked = find(key)) return *asked;
  if (questions.size() >= kMostQuestions) questions.erase(questions.begin());
  questions.emplace_back();
  questions.back().key = key;
  return questions.back();
}

}  // namespace ucudnn
