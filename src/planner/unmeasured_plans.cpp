#include "planner/unmeasured_plans.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "kernels/engines.hpp"
#include "planner/parts.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

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
    const bool fitsWhole = parts.fitsWhole();
    if (fitsWhole && orNext) continue;  // slow: others fit undivided, too
    const bool runs =
        fitsWhole ? parts.addAll(miniBatch) : parts.divide(miniBatch / (2 * size) + 1);
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
std::optional<std::pair<KernelOffer, int>> offerOnCopies(const PlanRequest& request,
                                                         PreparedKernels& prepared) {
  std::optional<Kernel> own = request.own->kernel;
  if (request.problem.isLarge() ||
      !copiesTensors(request.problem, *own, request.own->workspaceBytes))
    own.reset();
  const bool mayDivide = request.sizes().size() > 1;
  const auto sizes = sizesFor(
      request.problem, mayDivide ? BatchSizePolicy::kPowerOfTwo : BatchSizePolicy::kUndivided);
  try {
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (const auto offer = prepared.offerOnCopies(*size, own, boundsAt(request, *size)))
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
  const auto found = offerOnCopies(request, prepared);
  if (!found) return nullptr;
  const int miniBatch = request.problem.batch(), size = found->second;
  Parts parts(request, found->first.kernel, prepared, checks);
  const int large = miniBatch / (2 * size);  // parts that don't fit
  const bool runs = size == miniBatch ? parts.addAll(size) : parts.divide(large);
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
    const ConvolutionDescriptors none{};  // so that cuDNN isn't asked about algorithms
    for (const KernelOffer& offer : offeredKernels(
             request.handle, part, none, request.withEngines(), nullptr, request.callsAt(*size)))
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
      if (parts.divide(partsWithin(other, static_cast<double>(other.own->workspaceBytes))))
        if (auto plan = parts.plan()) return plan;
    }
  }
  if (auto plan = onCopies(request, prepared, checks)) return plan;
  Parts parts(request, request.own->kernel, prepared, checks);
  const bool mayDivide = request.sizes().size() > 1;
  const int fewest = partsWithin(request, static_cast<double>(request.own->workspaceBytes));
  if (mayDivide && parts.divide(fewest)) {
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
