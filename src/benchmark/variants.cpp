// Kernels that nobody proposes: variants of those that have been found to be the fastest.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "benchmark/benchmark_run.hpp"
#include "benchmark/timing_limits.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Other knobs than cuDNN's heuristics set make AlexNet's and ResNet-18's convolutions faster by up
// to 17 % on an H200: misc/RESULTS.md, "Each convolution with its own limit".
constexpr int kRounds = 2;
// So many kinds, where they are so near the fastest: its best variant may be slower than another's.
constexpr std::size_t kMostKinds = 3;
constexpr double kNearFastest = 1.15;
constexpr double kAboutEqual = 1.02;
// What gains less is the noise of timings.
constexpr double kGain = 0.99;
// Sizes near the one where a variant was found may be in a plan with it: equal parts of a batch.
constexpr std::size_t kMostNearby = 2;

/// The largest at which a sample takes about the least: where that gains nothing, plans don't
/// split. 0: nothing was measured. REQUIRES: at each size the fastest kernel is first.
int fastestSize(const Measurements& measured) {
  const auto sampleMs = [](const Measurements::value_type& size) {
    return size.second.kernels.front().deviceMs / size.first;
  };
  double leastMs = std::numeric_limits<double>::infinity();
  for (const auto& size : measured) leastMs = std::min(leastMs, sampleMs(size));
  int fastest = 0;
  for (const auto& size : measured)
    if (sampleMs(size) <= kAboutEqual * leastMs) fastest = size.first;
  return fastest;
}

}  // namespace

/// What fails leaves what has been measured: plans can do without.
void BenchmarkRun::tryVariants() {
  // What a client runs by itself says nothing new of a question that is answered.
  const bool isOwnAlone = request_.own && result_.kernelsMeasured == 1 &&
                          isFound(request_.problem.batch(), *request_.own);
  if (!request_.withEngines() || result_.kernelsMeasured == 0 || isOwnAlone) return;
  try {
    climbFromFastest();
  } catch (const Error& error) {
    logInfo("{} N={}: no further variants are timed: {}",
            request_.problem.text(),
            request_.problem.batch(),
            error.what());
  }
}

/// Of the size at which a kernel takes least for a sample: it makes up most of a plan.
void BenchmarkRun::climbFromFastest() {
  const Measurements measured = measuredForPlans();
  const int batch = fastestSize(measured);
  if (batch == 0) return;
  const Problem problem = request_.problem.withBatch(batch);
  const std::vector<Measurement>& kernels = measured.at(batch).kernels;
  const double enoughMs = kNearFastest * kernels.front().deviceMs;
  std::vector<Kernel> kinds;
  for (const Measurement& start : kernels) {
    const bool isNear = start.deviceMs <= enoughMs && start.timeMs <= kLongWholeMs;
    if (!isNear || kinds.size() == kMostKinds) return;
    const Kernel kind = kindOf(start.kernel);
    if (contains(kinds, kind) || variantsOf(handle_, problem, start.kernel).empty()) continue;
    kinds.push_back(kind);
    const Measurement best = climb(batch, start, kernels);
    if (!(best.kernel == start.kernel)) tryNearby(batch, best);
  }
}

/// All that splits may have, at each size the fastest first.
Measurements BenchmarkRun::measuredForPlans() const {
  Measurements all;
  const auto add = [&](int size, const Measurement& m) {
    if (question_.isOffered(m.kernel) && m.workspaceBytes <= request_.limitAt(size) && m.accurate)
      all[size].kernels.push_back(question_.measured().asAsked(m));
  };
  for (const auto& [size, found] : found_)
    for (const Found& one : found) add(size, one.measurement);
  if (request_.known != nullptr)
    for (const auto& [size, known] : *request_.known)
      if (question_.mayBeAsked(size))
        for (const Measurement& m : known.kernels)
          if (!isFound(size, m.kernel)) add(size, m);
  for (auto& [size, measured] : all)
    std::sort(measured.kernels.begin(),
              measured.kernels.end(),
              [](const Measurement& a, const Measurement& b) { return a.deviceMs < b.deviceMs; });
  return all;
}

/// Varies one choice after the other, from the best so far, and adds what is found.
Measurement BenchmarkRun::climb(int batch,
                                const Measurement& start,
                                const std::vector<Measurement>& measured) {
  const Problem problem = request_.problem.withBatch(batch);
  Climb climb{std::make_shared<const ProblemDescriptors>(problem), batch, start, 0};
  std::vector<Kernel> tried(measured.size());
  std::transform(measured.begin(), measured.end(), tried.begin(), [](const Measurement& m) {
    return m.kernel;
  });
  auto variants = variantsOf(handle_, problem, start.kernel);
  bool gains = true;
  for (int round = 0; round < kRounds && gains; ++round) {
    gains = false;
    for (std::size_t choice = 0; choice < variants.size() && !question_.isLate(); ++choice) {
      const Kernel before = climb.best.kernel;
      for (const Kernel variant : variants[choice]) {
        if (contains(tried, variant)) continue;
        tried.push_back(variant);
        if (question_.measured().isRefused(batch, variant)) continue;
        const auto offer = offeredKernel(
            handle_, problem, climb.descriptors, variant, nullptr, request_.callsAt(batch));
        if (offer && isFaster(climb, *offer)) gains = true;
      }
      if (!(climb.best.kernel == before))
        variants = variantsOf(handle_, problem, climb.best.kernel);
    }
  }
  logDebug("{} N={}: {} in {:.4f} ms, of its variants {} in {:.4f}",
           request_.problem.text(),
           batch,
           toText(request_.problem.operation, start.kernel),
           start.deviceMs,
           toText(request_.problem.operation, climb.best.kernel),
           climb.best.deviceMs);
  const bool isNew = !(climb.best.kernel == start.kernel) && !known(batch, climb.best.kernel);
  if (isNew) {
    found_[batch].push_back({climb.best, 0});
    ++result_.kernelsMeasured;
  }
  return climb.best;
}

/// Whether the variant can take the best one's place, and is faster: then it does.
bool BenchmarkRun::isFaster(Climb& climb, const KernelOffer& variant) {
  const bool isAsGood = variant.workspaceBytes <= request_.limitAt(climb.batch) &&
                        (variant.deterministic || !climb.best.deterministic) &&
                        (variant.accurate || !climb.best.accurate);
  if (!isAsGood) return false;
  if (climb.glancedMs == 0) climb.glancedMs = glance(climb, climb.best).value_or(0);
  const auto glancedMs = glance(climb, variant);
  if (!glancedMs || *glancedMs >= kGain * climb.glancedMs) return false;
  auto careful = known(climb.batch, variant.kernel);
  if (!careful)
    careful = timeCarefully({climb.descriptors, climb.batch, variant}, climb.best.timeMs);
  if (!careful || careful->deviceMs >= kGain * climb.best.deviceMs ||
      careful->error > kErrorSpread * climb.best.error)
    return false;
  climb.best = *careful;
  climb.glancedMs = *glancedMs;
  return true;
}

/// Measured for another question, with all that this one asks for.
std::optional<Measurement> BenchmarkRun::known(int batch, Kernel kernel) const {
  if (request_.known == nullptr || !question_.measured().isKnown(batch, kernel))
    return std::nullopt;
  const Measurement* const before = findKernel(*request_.known, batch, kernel);
  if (before == nullptr) return std::nullopt;
  return question_.measured().asAsked(*before);
}

bool BenchmarkRun::isFound(int batch, Kernel kernel) const {
  const auto size = found_.find(batch);
  return size != found_.end() &&
         std::any_of(size->second.begin(), size->second.end(), [&](const Found& one) {
           return one.measurement.kernel == kernel;
         });
}

/// A few calls: comparable with one another alone.
std::optional<double> BenchmarkRun::glance(const Climb& climb, const KernelOffer& offer) {
  timer_.prepare();
  TimingTask task;
  task.call = {climb.descriptors, climb.batch, offer};
  task.how = TimingTask::How::kGlance;
  task.expectedMs = climb.best.timeMs;
  const TimingOutcome outcome = time(task, 0, timer_);
  if (outcome.status != TimingOutcome::Status::kTimed) return std::nullopt;
  return outcome.timeMs;
}

std::optional<Measurement> BenchmarkRun::timeCarefully(const KernelCall& call, double expectedMs) {
  TimingTask task;
  task.call = call;
  task.how = TimingTask::How::kCareful;
  task.expectedMs = expectedMs;
  task.limits = kBetween;
  task.withError = request_.errors;
  const TimingOutcome outcome = time(task, 0, timer_);
  if (outcome.status != TimingOutcome::Status::kTimed) return std::nullopt;
  Measurement measured{call.offer, {outcome.timeMs, outcome.deviceMs}, true, outcome.isReplayTimed};
  if (task.withError) measured.error = outcome.error;
  return measured;
}

/// Times what is the best at `batch` at the sizes next to it too, and at the mini-batch.
void BenchmarkRun::tryNearby(int batch, const Measurement& best) {
  std::vector<int> sizes;
  for (const auto& [size, found] : found_)
    if (size != batch && 2 * size > batch) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end(), [&](int a, int b) {
    return std::abs(a - batch) < std::abs(b - batch);
  });
  if (sizes.size() > kMostNearby) sizes.resize(kMostNearby);
  const int whole = request_.problem.batch();
  if (batch != whole && std::find(sizes.begin(), sizes.end(), whole) == sizes.end())
    sizes.push_back(whole);
  for (const int size : sizes) {
    if (question_.isLate()) return;
    if (isFound(size, best.kernel) || question_.measured().isKnown(size, best.kernel)) continue;
    const Problem problem = request_.problem.withBatch(size);
    const auto descriptors = std::make_shared<const ProblemDescriptors>(problem);
    const auto offer =
        offeredKernel(handle_, problem, descriptors, best.kernel, nullptr, request_.callsAt(size));
    if (!offer || offer->workspaceBytes > request_.limitAt(size)) continue;
    const auto measured = timeCarefully({descriptors, size, *offer}, best.timeMs * size / batch);
    if (!measured) continue;
    found_[size].push_back({*measured, 0});
    ++result_.kernelsMeasured;
  }
}

}  // namespace ucudnn
