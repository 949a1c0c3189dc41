#include "benchmark/findings.hpp"

#include <algorithm>
#include <utility>

#include "support/log.hpp"

namespace ucudnn {

void Findings::note(const Question::Judgement& judgement) {
  const std::lock_guard lock(mutex_);
  result_.failures += judgement.failures;
  everyOfferFits_ = everyOfferFits_ && judgement.everyOfferFits && judgement.failures == 0;
}

void Findings::note(const TimingTask& task, const TimingOutcome& outcome, int device) {
  using Status = TimingOutcome::Status;
  const int batch = task.call.batch;
  const KernelOffer& offer = task.call.offer;
  const std::lock_guard lock(mutex_);
  if (outcome.lacksMemory) result_.replaysUntried = true;
  std::vector<Found>& found = found_[batch];
  const auto before = std::find_if(found.begin(), found.end(), [&](const Found& other) {
    return other.measurement.kernel == offer.kernel;
  });
  if (before != found.end()) {  // timed again: what is known stays where that fails
    if (outcome.status == Status::kTimed) update(before->measurement, task, outcome);
    return;
  }
  switch (outcome.status) {
    case Status::kTimed:
      ++result_.kernelsMeasured;
      found.push_back(
          {{offer, {outcome.timeMs, outcome.deviceMs}, true, outcome.isReplayTimed}, device});
      if (task.withError) found.back().measurement.error = outcome.error;
      return;
    case Status::kRefused:
      result_.refused[batch].push_back(offer.kernel);
      return;
    case Status::kFailed:
      ++result_.failures;
      break;
    case Status::kNoMemory:
      lacksMemory_ = true;
      break;
  }
  incomplete_.insert(batch);
}

void Findings::update(Measurement& measurement,
                      const TimingTask& task,
                      const TimingOutcome& outcome) {
  if (task.how == TimingTask::How::kAgain) {
    measurement.timeMs = std::clamp(outcome.timeMs, measurement.deviceMs, measurement.timeMs);
    return;
  }
  measurement.timeMs = outcome.timeMs;
  measurement.deviceMs = outcome.deviceMs;
  measurement.isReplayTimed = outcome.isReplayTimed;
}

void Findings::add(int batch, const Measurement& measured) {
  const std::lock_guard lock(mutex_);
  found_[batch].push_back({measured, 0});
  ++result_.kernelsMeasured;
}

void Findings::noteLate() {
  const std::lock_guard lock(mutex_);
  lacksTime_ = true;
}

void Findings::noteIncomplete(int batch) {
  const std::lock_guard lock(mutex_);
  incomplete_.insert(batch);
}

void Findings::noteDeviceTime(double ms) {
  const std::lock_guard lock(mutex_);
  deviceMs_ = std::max(deviceMs_, ms);
}

bool Findings::has(int batch, Kernel kernel) const {
  const auto size = found_.find(batch);
  return size != found_.end() &&
         std::any_of(size->second.begin(), size->second.end(), [&](const Found& one) {
           return one.measurement.kernel == kernel;
         });
}

BenchmarkResult Findings::result(const BenchmarkRequest& request,
                                 const Question& question,
                                 double wallMs) {
  const std::lock_guard lock(mutex_);
  int elsewhere = 0;
  for (const auto& [batch, found] : found_) {
    if (found.empty()) continue;
    std::vector<Measurement>& kernels = result_.measurements[batch].kernels;
    for (const Found& one : found) {
      kernels.push_back(one.measurement);
      if (one.device != 0) ++elsewhere;
    }
    // Independent of which device was first.
    std::sort(kernels.begin(), kernels.end(), [](const Measurement& a, const Measurement& b) {
      return a.kernel < b.kernel;
    });
  }
  result_.failures += question.failures();
  result_.everyOfferFits =
      everyOfferFits_ && question.everyOfferFits() && question.failures() == 0 && !lacksTime_;
  result_.untried = lacksMemory_ ? Untried::kMemory : lacksTime_ ? Untried::kTime : Untried::kNone;
  result_.undividedMeasured =
      incomplete_.count(request.problem.batch()) == 0 && question.failures() == 0;
  result_.spentMs = std::max(wallMs, deviceMs_);
  if (result_.kernelsMeasured > 0)
    logInfo("{} N={}: {} kernels timed in {:.1f} ms, {} of them on further devices",
            request.problem.text(),
            request.problem.batch(),
            result_.kernelsMeasured,
            result_.spentMs,
            elsewhere);
  return std::move(result_);
}

}  // namespace ucudnn
