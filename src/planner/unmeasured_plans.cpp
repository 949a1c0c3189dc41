#include "planner/unmeasured_plans.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/engines.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Even the smallest part takes an engine 20 us, of which 10 stand for a launch. So parts that are
// estimated to be shorter than kShortestMs are mostly overhead, and at most kFew of them are made.
constexpr double kShortestMs = 0.015;
constexpr int kFew = 4;
// Equal parts take one engine and one check, and often sizes that suit the kernel. So many times
// the fewest parts are worth that. A third more would not be: four parts rather than three take
// a ViT's first layer forward within 64 MiB 1.2 times as long.
constexpr double kMoreIfEqual = 7.0 / 6;
// So many numbers of parts are tried one by one. That takes cuDNN as long as a call.
constexpr int kAskedOneByOne = 4;
// If a kernel takes more than so many times the parts that the limit asks for, its workspace is
// mostly the same for any batch (partial sums). Another kernel runs instead if its parts are at
// least so many times larger.
constexpr int kTooMany = 4;

// Failed parts are not tried at each call; if they always fail, they are tried more and more
// seldom.
constexpr std::chrono::milliseconds kPartsRetryAfter{100};
constexpr int kMostDoublings = 20;  // to a day

/// Whether an unmeasured split may run. A large problem may, because it is slow undivided.
bool mayRunInParts(const PlanRequest& request) {
  return request.own && (request.lacksWorkspace || request.problem.isLarge()) &&
         request.withEngines() && request.suitsEngines && !request.withErrors();
}

/// Puts together the parts of one kernel.
class Parts {
 public:
  Parts(const PlanRequest& request, Kernel kernel, PreparedKernels& prepared, KernelChecks& checks)
      : request_(request),
        kernel_(kernel),
        prepared_(prepared),
        checks_(checks),
        left_(request.problem.batch()) {}

  /// How the kernel runs a part of so many samples. Empty: not within the limit. Throws Error.
  std::optional<KernelOffer> offer(int batch) {
    auto found = prepared_.offer(batch, kernel_, request_.callsAt(batch), &failures_);
    leastBytes_ = found ? found->workspaceBytes : 0;
    if (!found || found->workspaceBytes > request_.limitBytes ||
        (request_.deterministic && !found->deterministic))
      return std::nullopt;
    return found;
  }
  /// The workspace of the part that was asked about last; 0: cuDNN can't run it.
  std::size_t leastBytes() const noexcept { return leastBytes_; }

  /// Adds `count` parts of the size. Returns false if such a part does not run within the limit.
  /// Throws Error.
  bool add(int batch, int count) {
    if (count == 0) return true;
    const auto found = offer(batch);
    if (!found) return false;
    configuration_.microBatches.push_back({batch, 0, count, false});
    configuration_.workspaceBytes = std::max(configuration_.workspaceBytes, found->workspaceBytes);
    measurements_[batch].kernels.push_back({*found, {}});
    left_ -= batch * count;
    return true;
  }
  /// Adds as many parts of the size as the batch has, and one of the rest.
  bool addAll(int batch) { return add(batch, left_ / batch) && (left_ == 0 || add(left_, 1)); }
  /// Samples of the largest part.
  int largest() const noexcept {
    int largest = 0;
    for (const auto& part : configuration_.microBatches) largest = std::max(largest, part.batch);
    return largest;
  }
  /// Whether cuDNN failed to say what runs. It may say so another time.
  bool failed() const noexcept { return failures_ > 0; }

  /// The step has no time, because none is known. Null: the kernel is wrong. Throws Error.
  std::shared_ptr<const Plan> plan() const {
    auto plan = std::make_shared<Plan>(
        *buildPlan(prepared_, request_, configuration_, Pace::kHost, measurements_));
    plan->measured = false;
    plan->predictedMs = 0;
    const auto outcome = checks_.check(request_, *plan, Measuring::kWhenItPays);
    return outcome == KernelChecks::Outcome::kFailed ? nullptr : plan;
  }

 private:
  const PlanRequest& request_;
  const Kernel kernel_;
  PreparedKernels& prepared_;
  KernelChecks& checks_;
  int left_;
  int failures_ = 0;
  std::size_t leastBytes_ = 0;
  Configuration configuration_;
  Measurements measurements_;
};

/// The least number of equal parts that is at least `count`. 0: it is too large, or they are too
/// short.
int equalParts(const Problem& problem, int count) {
  const int miniBatch = problem.batch();
  const int most = std::min(miniBatch, static_cast<int>(count * kMoreIfEqual));
  while (count <= most && miniBatch % count != 0) ++count;
  const bool suits =
      count <= most &&
      (count <= kFew || estimatedMs(problem.withBatch(miniBatch / count)) >= kShortestMs);
  return suits ? count : 0;
}

/// The parts that so much workspace takes within the limit.
int partsWithin(const PlanRequest& request, double bytes) {
  const std::size_t limitBytes = std::max<std::size_t>(request.limitBytes, 1);
  const double wanted = std::ceil(bytes / static_cast<double>(limitBytes));
  return static_cast<int>(std::min<double>(wanted, request.problem.batch()));
}

/// Makes few parts that run within the limit, at least `count`, equal or about equal: a small rest
/// would take nearly as long as a large part. No part is a large problem, because the kernel is
/// slow for these. Returns false if cuDNN can't run the kernel so, or the parts would be too short.
/// Throws Error.
bool divide(const PlanRequest& request, Parts& parts, int count) {
  const int miniBatch = request.problem.batch();
  int asked = 0, step = 1, last = miniBatch;
  count = std::max(2, count);
  while (true) {
    count = std::min(count, miniBatch);
    // Each size is smaller than the last: of many parts, one more may not be.
    const int size = std::min(last - 1, (miniBatch + count - 1) / count);
    if (size == 0) return false;
    last = size;
    count = (miniBatch + size - 1) / size;
    const Problem part = request.problem.withBatch(size);
    if (!part.isLarge()) {
      if (estimatedMs(part) < kShortestMs && count > kFew) return false;
      if (parts.offer(size)) break;
      // The workspace of most kernels grows with the batch, from what the filter alone takes. The
      // farther the size is from one that fits, the wider the steps.
      if (parts.leastBytes() > 0) {
        const double bytes = static_cast<double>(parts.leastBytes()) * count;
        count = std::max(count, partsWithin(request, bytes) - 1);
      }
      if (++asked >= kAskedOneByOne) step *= 2;
    }
    count += std::min(step, miniBatch);
  }
  const int equal = equalParts(request.problem, count);
  if (equal != 0 && parts.add(miniBatch / equal, equal)) return true;
  const int least = miniBatch / count, more = miniBatch % count;
  return parts.add(least + 1, more) && parts.add(least, count - more);
}

/// The first kernel of a batch size that cuDNN offers within the limit, for all of the batch. Null:
/// there is none. Throws Error.
std::shared_ptr<const Plan> firstThatFits(const PlanRequest& request,
                                          int batch,
                                          KernelChecks& checks) {
  const Problem part = request.problem.withBatch(batch);
  const auto offers = offeredKernels(request.handle,
                                     part,
                                     ProblemDescriptors(part).get(),
                                     request.withEngines(),
                                     nullptr,
                                     request.callsAt(batch));
  for (const KernelOffer& offer : offers) {
    if (offer.workspaceBytes > request.limitBytes ||
        (request.deterministic && !offer.deterministic))
      continue;
    PreparedKernels prepared(request.handle, request.problem);
    Parts parts(request, offer.kernel, prepared, checks);
    if (parts.addAll(batch))
      if (auto plan = parts.plan()) return plan;
  }
  return nullptr;
}

OfferBounds boundsAt(const PlanRequest& request, int batch) {
  return {request.limitBytes, request.deterministic, request.callsAt(batch)};
}

/// A kernel that runs as many samples as it may at a time, each in bands. Null if there is none.
/// Throws Error.
std::shared_ptr<const Plan> inBands(const PlanRequest& request,
                                    PreparedKernels& prepared,
                                    KernelChecks& checks) {
  const auto sizes = request.sizes();
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    const auto offer =
        offeredInBands(request.handle, request.problem.withBatch(*size), boundsAt(request, *size));
    if (!offer) continue;
    Parts parts(request, offer->kernel, prepared, checks);
    if (parts.addAll(*size))
      if (auto plan = parts.plan()) return plan;
  }
  return nullptr;
}

/// The first engine of the heuristics that runs on the largest part of the batch within the limit,
/// of at least `least` samples (1 or more). The client's own kernel may need more for one sample
/// than another one: partial sums, of its knobs for the whole batch. One of the first few for one
/// sample may fit undivided. `orNext`: or any that fits one sample, and not the whole. Null if
/// there is none. Throws Error.
std::shared_ptr<const Plan> byFirstEngine(const PlanRequest& request,
                                          int least,
                                          bool orNext,
                                          PreparedKernels& prepared,
                                          KernelChecks& checks) {
  const int miniBatch = request.problem.batch();
  int failures = 0;
  if (request.sizes().size() == 1) return nullptr;  // nothing may be divided
  for (int size = miniBatch / 2; size >= least; size /= 2) {
    const auto offer = offeredFirst(request.handle,
                                    request.problem.withBatch(size),
                                    boundsAt(request, size),
                                    orNext && size == 1,
                                    &failures);
    if (!offer) continue;
    Parts parts(request, offer->kernel, prepared, checks);
    const bool fitsWhole = parts.offer(miniBatch).has_value();
    if (fitsWhole && orNext) continue;  // slow: others fit undivided, too
    const bool runs =
        fitsWhole ? parts.addAll(miniBatch) : divide(request, parts, miniBatch / (2 * size) + 1);
    if (runs)
      if (auto plan = parts.plan()) return plan;
  }
  if (failures > 0) throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what runs");
  return nullptr;
}

/// Much larger parts of another kernel than `own`, which is about to run. Null: there are none, or
/// they can't be found out now.
std::shared_ptr<const Plan> inLargerParts(const PlanRequest& request,
                                          const Parts& own,
                                          int fewest,
                                          PreparedKernels& prepared,
                                          KernelChecks& checks) {
  const std::int64_t least = std::int64_t{kTooMany} * own.largest();
  const int miniBatch = request.problem.batch();
  if (request.problem.isLarge() || miniBatch <= fewest * least) return nullptr;
  try {
    return byFirstEngine(request, static_cast<int>(least), false, prepared, checks);
  } catch (const Error&) {
    return nullptr;
  }
}

/// The kernel of the largest part of the batch that has one on our copies within the limit, and
/// that part's samples. Few sizes are asked about: each costs about a millisecond. Throws Error.
std::optional<std::pair<KernelOffer, int>> offerOnCopies(const PlanRequest& request) {
  std::optional<Kernel> own = request.own->kernel;
  if (request.problem.isLarge() ||
      !copiesTensors(request.problem, *own, request.own->workspaceBytes))
    own.reset();
  const bool mayDivide = request.sizes().size() > 1;
  const auto sizes = sizesFor(
      request.problem, mayDivide ? BatchSizePolicy::kPowerOfTwo : BatchSizePolicy::kUndivided);
  try {
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      const Problem part = request.problem.withBatch(*size);
      if (const auto offer = offeredOnCopies(request.handle, part, own, boundsAt(request, *size)))
        return std::make_pair(*offer, *size);
    }
  } catch (const Error& error) {
    if (!isRefusal(error.status())) throw;
  }
  return std::nullopt;
}

/// A kernel that runs on our copies, on few parts of the batch. Null if there is none. Throws
/// Error.
std::shared_ptr<const Plan> onCopies(const PlanRequest& request,
                                     PreparedKernels& prepared,
                                     KernelChecks& checks) {
  const auto found = offerOnCopies(request);
  if (!found) return nullptr;
  const int miniBatch = request.problem.batch(), size = found->second;
  Parts parts(request, found->first.kernel, prepared, checks);
  const int large = miniBatch / (2 * size);  // parts that don't fit
  const bool runs = size == miniBatch ? parts.addAll(size) : divide(request, parts, large);
  return runs ? parts.plan() : nullptr;
}

/// The first engine for the largest part of the batch that is not large. It stands in for the
/// client's own engine, which is one of the few that compute the whole, and slow. Its workspace is
/// scaled to the whole batch. Empty if there is none. Throws Error.
std::optional<OwnKernel> firstOfPart(const PlanRequest& request) {
  const auto sizes = request.sizes();
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    const Problem part = request.problem.withBatch(*size);
    if (part.isLarge()) continue;
    for (const KernelOffer& offer : offeredKernels(request.handle,
                                                   part,
                                                   ProblemDescriptors(part).get(),
                                                   request.withEngines(),
                                                   nullptr,
                                                   request.callsAt(*size)))
      if (offer.kernel.source == kEngines && (offer.deterministic || !request.deterministic))
        return OwnKernel{offer.kernel,
                         offer.workspaceBytes / static_cast<std::size_t>(*size) *
                             static_cast<std::size_t>(request.problem.batch())};
    break;
  }
  return std::nullopt;
}

/// A kernel on our copies; else the client's kernel on parts of the batch, or another on much
/// larger ones; where it has none, another's bands, or another on parts of the batch, which for
/// channels last comes first. Null: there are none either. Throws Error.
std::shared_ptr<const Plan> makeParts(const PlanRequest& request, KernelChecks& checks) {
  PreparedKernels prepared(request.handle, request.problem);
  if (request.problem.isLarge()) {
    PlanRequest other = request;
    other.own = firstOfPart(request);
    if (other.own) {
      Parts parts(request, other.own->kernel, prepared, checks);
      if (divide(other, parts, partsWithin(other, static_cast<double>(other.own->workspaceBytes))))
        if (auto plan = parts.plan()) return plan;
    }
  }
  if (auto plan = onCopies(request, prepared, checks)) return plan;
  Parts parts(request, request.own->kernel, prepared, checks);
  const bool mayDivide = request.sizes().size() > 1;
  const int fewest = partsWithin(request, static_cast<double>(request.own->workspaceBytes));
  if (mayDivide && divide(request, parts, fewest)) {
    if (auto plan = inLargerParts(request, parts, fewest, prepared, checks)) return plan;
    if (auto plan = parts.plan()) return plan;
  }
  if (parts.failed()) throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what runs");
  const bool areChannelsLast = request.problem.xStrides[1] == 1 && request.problem.yStrides[1] == 1;
  if (areChannelsLast)  // bands copy more than engines
    if (auto plan = byFirstEngine(request, 1, false, prepared, checks)) return plan;
  if (auto plan = inBands(request, prepared, checks)) return plan;
  return byFirstEngine(request, 1, true, prepared, checks);
}

}  // namespace

std::optional<std::shared_ptr<const Plan>> UnmeasuredPlans::known(const PlanRequest& request,
                                                                  UnmeasuredPlan::Kind kind) const {
  return store_.read(request, [&](const Known*, const KnownQuestion* asked) {
    std::optional<std::shared_ptr<const Plan>> plan;
    if (asked == nullptr) return plan;
    if (kind == UnmeasuredPlan::Kind::kOwn && KnownQuestion::Clock::now() < asked->partsRetryAt)
      plan = nullptr;
    for (const UnmeasuredPlan& made : asked->unmeasured)
      if (made.kind == kind && made.serves(request) && (!plan || *plan == nullptr))
        plan = made.plan;
    return plan;
  });
}

std::shared_ptr<const Plan> UnmeasuredPlans::keep(const PlanRequest& request,
                                                  UnmeasuredPlan::Kind kind,
                                                  std::shared_ptr<const Plan> plan) {
  std::optional<Kernel> own;
  if (request.own) own = request.own->kernel;
  store_.update(request, [&](const Known&, KnownQuestion& asked) {
    auto& all = asked.unmeasured;
    if (all.size() >= kMostUnmeasured) all.erase(all.begin());
    all.push_back({kind,
                   own,
                   request.calls,
                   request.deterministic,
                   request.replay(),
                   request.limitBytes,
                   plan});
  });
  return plan;
}

std::shared_ptr<const Plan> UnmeasuredPlans::anyThatFits(const PlanRequest& request) {
  if (!request.suitsEngines || request.withErrors()) return nullptr;
  if (const auto found = known(request, UnmeasuredPlan::Kind::kAny)) return *found;
  const PlanningTime time(statistics_.planningMicroseconds);
  std::shared_ptr<const Plan> plan;
  const auto sizes = request.sizes();
  for (auto size = sizes.rbegin(); size != sizes.rend() && !plan; ++size)
    plan = firstThatFits(request, *size, checks_);
  return keep(request, UnmeasuredPlan::Kind::kAny, std::move(plan));
}

std::shared_ptr<const Plan> UnmeasuredPlans::ownKernelInParts(const PlanRequest& request,
                                                              Measuring measuring) {
  if (!mayRunInParts(request)) return nullptr;
  if (const auto found = known(request, UnmeasuredPlan::Kind::kOwn)) return *found;
  if (measuring == Measuring::kNever) return nullptr;
  const PlanningTime time(statistics_.planningMicroseconds);
  std::shared_ptr<const Plan> plan;
  try {
    plan = makeParts(request, checks_);
  } catch (const Error& error) {
    logDebug("{} N={}: its own kernel does not run in parts: {}",
             request.problem.text(),
             request.problem.batch(),
             error.what());
    if (!isRefusal(error.status())) {  // it may run another time
      store_.update(request, [&](const Known&, KnownQuestion& asked) {
        const int doublings = std::min(asked.partsFailures++, kMostDoublings);
        asked.partsRetryAt = KnownQuestion::Clock::now() + kPartsRetryAfter * (1 << doublings);
      });
      return nullptr;
    }
  }
  if (plan != nullptr)
    logInfo("{} N={}: {}, not measured yet",
            request.problem.text(),
            request.problem.batch(),
            toText(*plan));
  return keep(request, UnmeasuredPlan::Kind::kOwn, std::move(plan));
}

}  // namespace ucudnn
