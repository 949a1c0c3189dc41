#include "benchmark/question.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "benchmark/largest_batches.hpp"
#include "benchmark/selection.hpp"
#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"

namespace ucudnn {
namespace {

void putFastestFirst(const Measurements& elsewhere, int batch, std::vector<KernelOffer>& offers) {
  const auto timeMs = [&](const KernelOffer& offer) {
    const Measurement* const m = findKernel(elsewhere, batch, offer.kernel);
    return m != nullptr ? m->timeMs : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(offers.begin(), offers.end(), [&](const KernelOffer& a, const KernelOffer& b) {
    return timeMs(a) < timeMs(b);
  });
}

// A quick timing makes two calls: the first may load the kernel's code, the second is timed.
constexpr int kQuickCalls = 2;

/// Drops kernels that would hold up a call that did not ask for them, and that are in no plan.
void dropLongest(const BenchmarkRequest& request, std::vector<TimingTask>& tasks) {
  double leastMs = std::numeric_limits<double>::infinity();
  for (const TimingTask& task : tasks)
    if (task.expectedMs > 0) leastMs = std::min(leastMs, task.expectedMs);
  const auto isTooLong = [&](const TimingTask& task) {
    const bool isOwn = request.own && task.call.offer.kernel == *request.own;
    return !isOwn && task.expectedMs > std::max(request.longestMs / kQuickCalls, 2 * leastMs);
  };
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(), isTooLong), tasks.end());
}

/// The offer with its workspace set to the limit, so that comparisons ignore workspace.
KernelOffer withinLimit(const BenchmarkRequest& request, int batch, KernelOffer offer) {
  offer.workspaceBytes = request.limitAt(batch);
  return offer;
}

/// Kernels that cuDNN names, or those of a look that run.
std::vector<KernelOffer> offersAt(cudnnHandle_t handle,
                                  const BenchmarkRequest& request,
                                  const Question::Anchor& anchor,
                                  int* failures) {
  const Problem problem = request.problem.withBatch(anchor.batch);
  const Calls calls = request.callsAt(anchor.batch);
  if (request.look == nullptr)
    return offeredKernels(
        handle, problem, anchor.descriptors->get(), request.withEngines(), failures, calls);
  std::vector<KernelOffer> offers;
  for (const Kernel kernel : request.look->kernels)
    if (const auto offer =
            offeredKernel(handle, problem, anchor.descriptors, kernel, failures, calls))
      offers.push_back(*offer);
  if (request.look->firstOffers == 0 || !request.withEngines()) return offers;
  const auto isNew = [&](const KernelOffer& first) {
    return std::none_of(offers.begin(), offers.end(), [&](const KernelOffer& other) {
      return other.kernel == first.kernel;
    });
  };
  for (const KernelOffer& first : firstOffers(handle,
                                              problem,
                                              request.limitAt(anchor.batch),
                                              request.look->firstOffers,
                                              calls,
                                              failures))
    if (isNew(first)) offers.push_back(first);
  return offers;
}

}  // namespace

Question::Question(const BenchmarkRequest& request) : request_(request), measured_(request) {
  if (request.known != nullptr) takeOver(*request.known);
}

bool Question::askNext(cudnnHandle_t handle) {
  while (sizesSeen_ < request_.sizes.size()) {
    const int batch = request_.sizes[sizesSeen_++];
    if (isAnchor(batch)) {
      addAnchor(handle, batch);
      return true;
    }
    between_.push_back(batch);
  }
  if (request_.tuning == Tuning::kFast && middle_ == 0) beginInTheMiddle();
  return false;
}

void Question::addAnchor(cudnnHandle_t handle, int batch) {
  const Problem problem = request_.problem.withBatch(batch);
  Anchor anchor{batch, std::make_shared<const ProblemDescriptors>(problem), {}};
  std::vector<KernelOffer> offers = offersAt(handle, request_, anchor, &failures_);
  addOwn(handle, anchor, offers);
  for (const KernelOffer& offer : offers) {
    offered_.insert(offer.kernel);
    if (offer.workspaceBytes > request_.limitAt(batch))
      everyOfferFits_ = false;
    else if (!measured_.isKnown(batch, offer.kernel))
      anchor.offers.push_back(offer);
  }
  if (request_.elsewhere != nullptr) putFastestFirst(*request_.elsewhere, batch, anchor.offers);
  if (batch == request_.problem.batch()) undivided_ = offers;
  anchors_.push_back(std::move(anchor));
}

/// Adds the client's own kernel at the mini-batch if cuDNN does not offer it now.
void Question::addOwn(cudnnHandle_t handle,
                      const Anchor& anchor,
                      std::vector<KernelOffer>& offers) {
  const auto isOwn = [&](const KernelOffer& offer) { return offer.kernel == *request_.own; };
  if (!request_.own || anchor.batch != request_.problem.batch() ||
      std::any_of(offers.begin(), offers.end(), isOwn))
    return;
  const auto own = offeredKernel(handle,
                                 request_.problem,
                                 anchor.descriptors,
                                 *request_.own,
                                 &failures_,
                                 request_.callsAt(anchor.batch));
  if (own) offers.push_back(*own);
}

/// Orders the anchors: from a middle one down, for kernels that did not fit or might need less
/// workspace; then up to the mini-batch.
void Question::beginInTheMiddle() {
  const int miniBatch = request_.problem.batch();
  const double samples =
      std::ceil(kFirstMultiplyAdds * miniBatch / request_.problem.multiplyAdds());
  middle_ =
      std::max(miniBatch / kFirstPart, static_cast<int>(std::min<double>(samples, kFirstBatch)));
  const auto end = std::find_if(anchors_.begin(), anchors_.end(), [&](const Anchor& anchor) {
    return anchor.batch > middle_;
  });
  std::reverse(anchors_.begin(), end);
  middle_ = anchors_.front().batch;
}

void Question::takeOver(const Measurements& known) {
  for (const auto& [batch, size] : known) {
    if (size.kernels.empty()) continue;
    measured_.addBefore(batch, size.kernels, isAnchor(batch));
    if (!isAsked(batch)) continue;
    for (const Measurement& m : size.kernels)
      if (m.workspaceBytes > request_.limitAt(batch)) everyOfferFits_ = false;
  }
}

bool Question::isAnchor(int batch) const noexcept {
  return request_.look != nullptr || (batch & (batch - 1)) == 0 ||
         batch == request_.problem.batch();
}

bool Question::isAsked(int batch) const {
  return std::binary_search(request_.sizes.begin(), request_.sizes.end(), batch);
}

bool Question::mayBeAsked(int batch) const {
  return request_.largestBatches ? batch <= request_.problem.batch() : isAsked(batch);
}

/// At the mini-batch itself all kernels that plans are made of are timed. Without them some batch
/// sizes might have no configuration. Algorithms are timed always, because Find lists them.
bool Question::isToBeTried(int batch, const KernelOffer& offer) const {
  const bool isWhole = batch == request_.problem.batch();
  if (isWhole && request_.own && offer.kernel == *request_.own) return true;
  if (request_.tuning == Tuning::kFast) {
    if (isWhole && (offer.kernel.source == kAlgorithms || request_.enginesAlone())) return true;
    const Measurements& rivals = measured_.rivalsOf(offer.kernel);
    // A kernel that runs undivided may still be the best within a much smaller limit.
    const double factor = isWhole ? kHopeless : kFarBehind;
    return mayJoinFront(rivals, offer, batch, middle_, isRest(batch)) &&
           (isRest(batch) ||
            !isFarBehind(rivals, offer, batch, middle_, request_.room.limitBytes, factor));
  }
  return isWhole || isWorthTrying(measured_.rivalsOf(offer.kernel), offer, batch);
}

/// Whether this size is one of the powers of two that add up to the mini-batch.
bool Question::isRest(int batch) const noexcept {
  return batch < middle_ && (request_.problem.batch() & batch) != 0;
}

Question::Judgement Question::judge(const Anchor& anchor) const {
  Judgement judgement;
  for (const KernelOffer& offered : anchor.offers) {
    const KernelOffer offer = measured_.withError(offered);
    if (measured_.isKnown(anchor.batch, offer.kernel) || !isToBeTried(anchor.batch, offer))
      continue;
    TimingTask task;
    task.withError = measured_.lacksError(anchor.batch, offer.kernel);
    task.call = {anchor.descriptors, anchor.batch, offer};
    task.expectedMs = expectedMs(measured_.everywhere(), offer.kernel, anchor.batch);
    judgement.tasks.push_back(std::move(task));
  }
  if (request_.longestMs > 0) dropLongest(request_, judgement.tasks);
  return judgement;
}

void Question::addKnown(const Anchor& anchor) {
  const auto known = measured_.atAnchors().find(anchor.batch);
  if (known == measured_.atAnchors().end()) return;
  std::vector<Measurement> worthy;
  for (Measurement m : known->second.kernels) {
    static_cast<KernelOffer&>(m) = measured_.withError(m);
    if (m.workspaceBytes <= request_.limitAt(anchor.batch) && isOffered(m.kernel) &&
        isToBeTried(anchor.batch, m))
      worthy.push_back(m);
  }
  if (!worthy.empty()) measured_.addAsked(anchor.batch, worthy);
}

void Question::add(int batch, std::vector<Measurement> measured) {
  measured_.add(batch, std::move(measured));
}

std::vector<int> Question::between(cudnnHandle_t handle) const {
  std::vector<int> sizes = between_;
  if (!request_.largestBatches) return sizes;
  for (const int batch : largestBatches(handle, request_, measured_.asked()))
    if (!isAsked(batch)) sizes.push_back(batch);
  return sizes;
}

Question::Judgement Question::judgeBetween(cudnnHandle_t handle, int batch) const {
  Judgement judgement;
  std::vector<Kernel> kernels = neighbouringKernels(measured_.atAnchors(), batch);
  for (const Kernel kernel : neighbouringKernels(measured_.everywhere(), batch))
    if (!contains(kernels, kernel)) kernels.push_back(kernel);
  const Problem problem = request_.problem.withBatch(batch);
  const auto isSettled = [&](Kernel kernel) {
    return measured_.isKnown(batch, kernel) || !isOffered(kernel) || !mayBePlanned(problem, kernel);
  };
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isSettled), kernels.end());
  if (kernels.empty()) return judgement;
  const auto descriptors = std::make_shared<const ProblemDescriptors>(problem);
  const int miniBatch = request_.problem.batch();
  const bool isFast = request_.tuning == Tuning::kFast;
  std::vector<Measurement> hopes;
  for (const Kernel kernel : kernels) {
    if (isFast && isHopeless(measured_.rivalsOf(kernel), kernel, miniBatch)) continue;
    auto offer = offeredKernel(
        handle, problem, descriptors, kernel, &judgement.failures, request_.callsAt(batch));
    if (!offer) continue;
    *offer = measured_.withError(*offer);
    if (offer->workspaceBytes > request_.limitAt(batch)) {
      judgement.everyOfferFits = false;
      continue;
    }
    const KernelTiming atAnchors = hopedFor(measured_.atAnchors(), kernel, batch);
    const KernelTiming everywhere = hopedFor(measured_.everywhere(), kernel, batch);
    const KernelTiming hoped{std::min(atAnchors.timeMs, everywhere.timeMs),
                             std::min(atAnchors.deviceMs, everywhere.deviceMs)};
    if (needsNoSplit(measured_.asked(), *offer, miniBatch) ||
        isOffFront(
            measured_.rivalsOf(kernel), batch, hoped, *offer, isFast ? kNearFrontFast : kNearFront))
      continue;
    hopes.push_back({*offer, hoped, true, true});
  }
  if (isFast && batch > middle_) keepMostHopeful(hopes, request_.enginesAlone());
  for (const Measurement& hope : hopes) {
    judgement.tasks.push_back(
        {{descriptors, batch, hope}, TimingTask::How::kCareful, hope.timeMs, kBetween});
    judgement.tasks.back().withError = measured_.lacksError(batch, hope.kernel);
  }
  return judgement;
}

/// Fast tuning refines only for plans within this limit, where less workspace is little merit.
bool Question::isWorthRefining(int batch, const Measurement& measured) const {
  const bool isWhole = batch == request_.problem.batch();
  if (isWhole && request_.own && measured.kernel == *request_.own)
    return measured.timeMs <= kLongMs;  // plans are compared with it
  if (isDoubtful(batch, measured)) return true;
  const double leastMs = withoutGap(measured.timeMs);
  const bool savesNothing = request_.tuning == Tuning::kFast && !isRest(batch);
  const KernelOffer offer =
      savesNothing ? withinLimit(request_, batch, measured) : KernelOffer(measured);
  const bool isListed = isWhole && measured.kernel.source == kAlgorithms;
  return measured.timeMs <= kLongMs && !isOffFront(measured_.rivalsOf(measured.kernel),
                                                   batch,
                                                   {leastMs, std::min(leastMs, measured.deviceMs)},
                                                   offer,
                                                   isListed ? kNearFrontWhole : kNearFront);
}

bool Question::isDoubtful(int batch, const Measurement& measured) const {
  const double mostMs = mostExpectedMs(measured_.atAnchors(), measured.kernel, batch);
  return mostMs <= kLongMs && measured.timeMs <= kLongWholeMs &&
         withoutGap(measured.timeMs) > kDoubtful * mostMs;
}

TimingTask Question::refinement(const Anchor& anchor,
                                const Measurement& measured,
                                int device) const {
  const bool isShort = withoutGap(measured.timeMs) < kHostPacedMs;
  const bool isFast = request_.tuning == Tuning::kFast;
  return {{anchor.descriptors, anchor.batch, measured},
          TimingTask::How::kCareful,
          measured.timeMs,
          isShort  ? kHostPacedAtFirst
          : isFast ? kRefinedFast
                   : StopRule::Limits{},
          device};
}

int Question::expectedTimings() const {
  int timings = 0;
  for (const Anchor& anchor : anchors_) timings += static_cast<int>(judge(anchor).tasks.size());
  for (const int batch : between_)
    if (measured_.everywhere().count(batch) == 0) ++timings;
  return timings;
}

std::size_t Question::largestWorkspace() const {
  std::size_t largest = 0;
  for (const Anchor& anchor : anchors_)
    for (const KernelOffer& offer : anchor.offers)
      largest = std::max(largest, offer.workspaceBytes);
  // No kernel needs more at a size between than at the mini-batch. But one that needs too much
  // there may fit at such a size, also if it borrows the output that a half or a third leaves.
  if (between_.empty() && !request_.largestBatches) return largest;
  const int half = (request_.problem.batch() + 1) / 2;
  for (const KernelOffer& offer : undivided_)
    largest = std::max(largest, std::min(offer.workspaceBytes, request_.limitAt(half)));
  return largest;
}

}  // namespace ucudnn
