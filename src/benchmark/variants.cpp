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
bool BenchmarkRun::stepVariants() {
  try {
    if (!search_) return wantsVariants() && beginSearch();
    if (search_->climb) {
      if (stepClimb(*search_->climb)) return true;
      endClimb(*search_->climb);
      search_->climb.reset();
      return true;
    }
    if (search_->nearby.empty() || question_.isLate()) return beginNextClimb();
    const int size = search_->nearby.front();
    search_->nearby.erase(search_->nearby.begin());
    timeNearby(size, search_->batch, search_->best);
    return true;
  } catch (const Error& error) {
    logInfo("{} N={}: no further variants are timed: {}",
            request_.problem.text(),
            request_.problem.batch(),
            error.what());
    return false;
  }
}

bool BenchmarkRun::wantsVariants() const {
  // What a client runs by itself says nothing new of a question that is answered.
  const bool isOwnAlone = request_.own && result_.kernelsMeasured == 1 &&
                          isFound(request_.problem.batch(), *request_.own);
  return request_.withEngines() && result_.kernelsMeasured > 0 && !isOwnAlone;
}

/// Of the size at which a kernel takes least for a sample: it makes up most of a plan.
bool BenchmarkRun::beginSearch() {
  const Measurements measured = measuredForPlans();
  const int batch = fastestSize(measured);
  if (batch == 0) return false;
  search_.emplace();
  search_->batch = batch;
  search_->kernels = measured.at(batch).kernels;
  return true;
}

/// From the next kernel near the fastest that has variants. False: there is none.
bool BenchmarkRun::beginNextClimb() {
  VariantSearch& search = *search_;
  const Problem problem = request_.problem.withBatch(search.batch);
  const double enoughMs = kNearFastest * search.kernels.front().deviceMs;
  while (search.next < search.kernels.size()) {
    const Measurement& start = search.kernels[search.next++];
    const bool isNear = start.deviceMs <= enoughMs && start.timeMs <= kLongWholeMs;
    if (!isNear || search.kinds.size() == kMostKinds) return false;
    const Kernel kind = kindOf(start.kernel);
    if (contains(search.kinds, kind)) continue;
    auto variants = variantsOf(handle_, problem, start.kernel);
    if (variants.empty()) continue;
    search.kinds.push_back(kind);
    Climb& climb = search.climb.emplace();
    climb.descriptors = std::make_shared<const ProblemDescriptors>(problem);
    climb.batch = search.batch;
    climb.start = climb.best = start;
    climb.before = start.kernel;
    climb.variants = std::move(variants);
    for (const Measurement& m : search.kernels) climb.tried.push_back(m.kernel);
    return true;
  }
  return false;
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

/// Times one variant, if one is left.
bool BenchmarkRun::stepClimb(Climb& climb) {
  const Problem problem = request_.problem.withBatch(climb.batch);
  for (;;) {
    if (climb.choice >= climb.variants.size() || question_.isLate()) {
      if (!climb.gains || ++climb.round == kRounds) return false;
      climb.gains = false;
      climb.choice = climb.place = 0;
      climb.before = climb.best.kernel;
    } else if (climb.place == climb.variants[climb.choice].size()) {
      if (!(climb.best.kernel == climb.before))
        climb.variants = variantsOf(handle_, problem, climb.best.kernel);
      climb.before = climb.best.kernel;
      climb.place = 0;
      ++climb.choice;
    } else {
      const Kernel variant = climb.variants[climb.choice][climb.place++];
      if (contains(climb.tried, variant)) continue;
      climb.tried.push_back(variant);
      if (question_.measured().isRefused(climb.batch, variant)) continue;
      const auto offer = offeredKernel(
          handle_, problem, climb.descriptors, variant, nullptr, request_.callsAt(climb.batch));
      if (offer && isFaster(climb, *offer)) climb.gains = true;
      return true;
    }
  }
}

/// Adds what was found, which is timed at sizes nearby, too.
void BenchmarkRun::endClimb(const Climb& climb) {
  logDebug("{} N={}: {} in {:.4f} ms, of its variants {} in {:.4f}",
           request_.problem.text(),
           climb.batch,
           toText(request_.problem.operation, climb.start.kernel),
           climb.start.deviceMs,
           toText(request_.problem.operation, climb.best.kernel),
           climb.best.deviceMs);
  if (climb.best.kernel == climb.start.kernel) return;
  if (!known(climb.batch, climb.best.kernel)) {
    found_[climb.batch].push_back({climb.best, 0});
    ++result_.kernelsMeasured;
  }
  search_->best = climb.best;
  search_->nearby = sizesNear(climb.batch);
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

/// The sizes next to it, and the mini-batch.
std::vector<int> BenchmarkRun::sizesNear(int batch) const {
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
  return sizes;
}

/// What is the best at `batch`.
void BenchmarkRun::timeNearby(int size, int batch, const Measurement& best) {
  if (isFound(size, best.kernel) || question_.measured().isKnown(size, best.kernel)) return;
  const Problem problem = request_.problem.withBatch(size);
  const auto descriptors = std::make_shared<const ProblemDescriptors>(problem);
  const auto offer =
      offeredKernel(handle_, problem, descriptors, best.kernel, nullptr, request_.callsAt(size));
  if (!offer || offer->workspaceBytes > request_.limitAt(size)) return;
  timer_.prepare();
  const auto measured = timeCarefully({descriptors, size, *offer}, best.timeMs * size / batch);
  if (!measured) return;
  found_[size].push_back({*measured, 0});
  ++result_.kernelsMeasured;
}

}  // namespace ucudnn
