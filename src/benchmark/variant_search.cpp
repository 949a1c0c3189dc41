#include "benchmark/variant_search.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "benchmark/timing_limits.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Other knobs than cuDNN's heuristics set make AlexNet's and ResNet-18's convolutions faster by up
// to 17 % on an H200: misc/RESULTS.md at 7ba7ca8.
constexpr int kRounds = 2;
// So many kinds of kernels are varied, if they are this near the fastest: a slower kernel may have
// the best variant.
constexpr std::size_t kMostKinds = 3;
constexpr double kNearFastest = 1.15;
constexpr double kAboutEqual = 1.02;
// A smaller gain is the noise of timings.
constexpr double kGain = 0.99;
// Sizes near the one where a variant was found may be in a plan with it, because parts of a batch
// are about equal.
constexpr std::size_t kMostNearby = 2;

/// The largest size at which a sample takes about the least time: if a larger size gains nothing,
/// plans don't split. 0: nothing was measured. REQUIRES: at each size the fastest kernel is first.
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

/// A failure leaves the measurements as they are: plans can do without variants.
bool VariantSearch::step(cudnnHandle_t handle) {
  handle_ = handle;
  try {
    if (batch_ == 0) return isWanted() && begin();
    if (climb_) {
      if (stepClimb(*climb_)) return true;
      endClimb(*climb_);
      climb_.reset();
      return true;
    }
    if (nearby_.empty()) return beginNextClimb();
    if (timeNearby(nearby_.front())) nearby_.erase(nearby_.begin());
    return true;
  } catch (const Error& error) {
    logInfo("{} N={}: no further variants are timed: {}",
            request_.problem.text(),
            request_.problem.batch(),
            error.what());
    return false;
  }
}

bool VariantSearch::isWanted() const {
  // If only the client's own kernel was timed, the question had its answer before.
  const bool isOwnAlone = request_.own && findings_.kernelsMeasured() == 1 &&
                          findings_.has(request_.problem.batch(), *request_.own);
  return request_.withEngines() && findings_.kernelsMeasured() > 0 && !isOwnAlone;
}

/// Begins with the size at which a kernel takes the least time for a sample: it makes up most of a
/// plan.
bool VariantSearch::begin() {
  const Measurements measured = measuredForPlans();
  batch_ = fastestSize(measured);
  if (batch_ == 0) return false;
  kernels_ = measured.at(batch_).kernels;
  return true;
}

/// Begins with the next kernel near the fastest that has variants. False: there is none.
bool VariantSearch::beginNextClimb() {
  const Problem problem = request_.problem.withBatch(batch_);
  const double enoughMs = kNearFastest * kernels_.front().deviceMs;
  while (next_ < kernels_.size()) {
    const Measurement& start = kernels_[next_++];
    const bool isNear = start.deviceMs <= enoughMs && start.timeMs <= kLongWholeMs;
    if (!isNear || kinds_.size() == kMostKinds) return false;
    const Kernel kind = kindOf(start.kernel);
    if (contains(kinds_, kind)) continue;
    auto variants = variantsOf(handle_, problem, start.kernel);
    if (variants.empty()) continue;
    kinds_.push_back(kind);
    VariantClimb& climb = climb_.emplace();
    climb.descriptors = std::make_shared<const ProblemDescriptors>(problem);
    climb.batch = batch_;
    climb.start = climb.best = start;
    climb.before = start.kernel;
    climb.variants = std::move(variants);
    for (const Measurement& m : kernels_) climb.tried.push_back(m.kernel);
    return true;
  }
  return false;
}

/// All kernels that splits may have, at each size the fastest first.
Measurements VariantSearch::measuredForPlans() const {
  Measurements all;
  const auto add = [&](int size, const Measurement& m) {
    if (question_.isOffered(m.kernel) && m.workspaceBytes <= request_.limitAt(size) && m.accurate)
      all[size].kernels.push_back(question_.measured().asAsked(m));
  };
  for (const auto& [size, found] : findings_.all())
    for (const Found& one : found) add(size, one.measurement);
  if (request_.known != nullptr)
    for (const auto& [size, known] : *request_.known)
      if (question_.mayBeAsked(size))
        for (const Measurement& m : known.kernels)
          if (!findings_.has(size, m.kernel)) add(size, m);
  for (auto& [size, measured] : all)
    std::sort(measured.kernels.begin(),
              measured.kernels.end(),
              [](const Measurement& a, const Measurement& b) { return a.deviceMs < b.deviceMs; });
  return all;
}

/// Times one variant, if one is left.
bool VariantSearch::stepClimb(VariantClimb& climb) {
  const Problem problem = request_.problem.withBatch(climb.batch);
  for (;;) {
    if (climb.choice >= climb.variants.size()) {
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
      const Kernel variant = climb.variants[climb.choice][climb.place];
      const bool isOut =
          contains(climb.tried, variant) || question_.measured().isRefused(climb.batch, variant);
      if (!isOut) {
        const auto offer = offeredKernel(
            handle_, problem, climb.descriptors, variant, nullptr, request_.callsAt(climb.batch));
        const bool isTimed = offer && isAsGood(climb, *offer);
        if (isTimed && !isReady_({climb.descriptors, climb.batch, *offer})) return true;
        climb.tried.push_back(variant);
        if (isTimed && isFaster(climb, *offer)) climb.gains = true;
      }
      ++climb.place;
      if (!isOut) return true;
    }
  }
}

/// Adds the best variant, which is then timed at sizes nearby, too.
void VariantSearch::endClimb(const VariantClimb& climb) {
  logDebug("{} N={}: {} takes {:.4f} ms, its best variant {} {:.4f} ms",
           request_.problem.text(),
           climb.batch,
           toText(request_.problem.operation, climb.start.kernel),
           climb.start.deviceMs,
           toText(request_.problem.operation, climb.best.kernel),
           climb.best.deviceMs);
  if (climb.best.kernel == climb.start.kernel) return;
  if (!known(climb.batch, climb.best.kernel)) findings_.add(climb.batch, climb.best);
  best_ = climb.best;
  nearby_ = sizesNear(climb.batch);
}

/// Whether the variant can take the best one's place.
bool VariantSearch::isAsGood(const VariantClimb& climb, const KernelOffer& variant) const {
  return variant.workspaceBytes <= request_.limitAt(climb.batch) &&
         (variant.deterministic || !climb.best.deterministic) &&
         (variant.accurate || !climb.best.accurate);
}

/// Whether the variant is faster; if so, it becomes the best.
bool VariantSearch::isFaster(VariantClimb& climb, const KernelOffer& variant) {
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

/// A measurement for another question that has all that this one asks for.
std::optional<Measurement> VariantSearch::known(int batch, Kernel kernel) const {
  if (request_.known == nullptr || !question_.measured().isKnown(batch, kernel))
    return std::nullopt;
  const Measurement* const before = findKernel(*request_.known, batch, kernel);
  if (before == nullptr) return std::nullopt;
  return question_.measured().asAsked(*before);
}

/// Times a few calls: comparable only with other glances.
std::optional<double> VariantSearch::glance(const VariantClimb& climb, const KernelOffer& offer) {
  TimingTask task;
  task.call = {climb.descriptors, climb.batch, offer};
  task.how = TimingTask::How::kGlance;
  task.expectedMs = climb.best.timeMs;
  const TimingOutcome outcome = time_(task);
  if (outcome.status != TimingOutcome::Status::kTimed) return std::nullopt;
  return outcome.timeMs;
}

std::optional<Measurement> VariantSearch::timeCarefully(const KernelCall& call, double expectedMs) {
  TimingTask task;
  task.call = call;
  task.how = TimingTask::How::kCareful;
  task.expectedMs = expectedMs;
  task.limits = kBetween;
  task.withError = request_.errors;
  const TimingOutcome outcome = time_(task);
  if (outcome.status != TimingOutcome::Status::kTimed) return std::nullopt;
  Measurement measured{call.offer, {outcome.timeMs, outcome.deviceMs}, true, outcome.isReplayTimed};
  if (task.withError) measured.error = outcome.error;
  return measured;
}

/// The sizes next to it, and the mini-batch.
std::vector<int> VariantSearch::sizesNear(int batch) const {
  std::vector<int> sizes;
  for (const auto& [size, found] : findings_.all())
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

/// Times the variant of the last climb.
bool VariantSearch::timeNearby(int size) {
  if (findings_.has(size, best_.kernel) || question_.measured().isKnown(size, best_.kernel))
    return true;
  const Problem problem = request_.problem.withBatch(size);
  const auto descriptors = std::make_shared<const ProblemDescriptors>(problem);
  const auto offer =
      offeredKernel(handle_, problem, descriptors, best_.kernel, nullptr, request_.callsAt(size));
  if (!offer || offer->workspaceBytes > request_.limitAt(size)) return true;
  if (!isReady_({descriptors, size, *offer})) return false;
  const auto measured = timeCarefully({descriptors, size, *offer}, best_.timeMs * size / batch_);
  if (measured) findings_.add(size, *measured);
  return true;
}

}  // namespace ucudnn
