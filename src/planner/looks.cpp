#include "planner/looks.hpp"

#include <algorithm>
#include <set>

#include "planner/measured_kernels.hpp"

namespace ucudnn {
namespace {

// Within a limit cuDNN's first engines run in parts, too. With more of them a look takes longer
// than most gain.
constexpr std::size_t kFirstOffers = 2;

}  // namespace

std::optional<PlannedLook> lookAt(const MeasurementStore& store,
                                  const PlanRequest& request,
                                  const KnownQuestion& asked) {
  const bool isOver = asked.isOfLook ? request.lacksWorkspace : asked.answers(request.limitBytes);
  if (isOver || !request.own || !request.suitsEngines || !request.withEngines() ||
      request.withErrors())
    return std::nullopt;
  PlannedLook look;
  look.kernels = store.likelyKernels(request);
  const bool hasLikely = !look.kernels.empty();
  if (request.runsOwn())
    look.kernels.erase(std::remove(look.kernels.begin(), look.kernels.end(), request.own->kernel),
                       look.kernels.end());
  std::set<int> sizes{request.problem.batch()};
  const auto parts = request.lacksWorkspace ? asked.unmeasuredFor(request) : nullptr;
  if (parts != nullptr) {
    look.firstOffers = kFirstOffers;
    for (const Plan::Step& step : parts->steps) {
      // Measured plans have no copies of outputs in the output, so the batch needs other sizes.
      sizes.insert(step.outputCopyBytes == 0 ? step.batch
                                             : request.problem.batch() % parts->steps.back().batch);
      if (!contains(look.kernels, step.kernel)) look.kernels.push_back(step.kernel);
    }
    if (!contains(look.kernels, request.own->kernel)) look.kernels.push_back(request.own->kernel);
  } else if (hasLikely) {
    const bool isSplit = request.sizes().size() > 1;
    const auto all =
        microBatchSizes(isSplit ? BatchSizePolicy::kPowerOfTwo : BatchSizePolicy::kUndivided,
                        request.problem.batch());
    sizes.insert(all.begin(), all.end());
  } else {
    return std::nullopt;
  }
  sizes.erase(0);  // no remainder
  look.sizes.assign(sizes.begin(), sizes.end());
  return look;
}

}  // namespace ucudnn
