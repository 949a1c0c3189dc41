#include "benchmark/measured_so_far.hpp"

#include <algorithm>

#include "kernels/engines.hpp"

namespace ucudnn {
namespace {

void append(std::vector<Measurement>& to, const std::vector<Measurement>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void MeasuredSoFar::addBefore(int batch, std::vector<Measurement> kernels, bool isAnchor) {
  if (!request_.errors)  // an error that the question doesn't ask for must not decide
    for (Measurement& m : kernels) m.error = kUnknownError;
  addErrors(errors_, batch, kernels);
  append(everywhere_[batch].kernels, kernels);
  if (isAnchor) append(atAnchors_[batch].kernels, kernels);
}

void MeasuredSoFar::add(int batch, std::vector<Measurement> measured) {
  addErrors(errors_, batch, measured);
  for (Measurement& m : measured) static_cast<KernelOffer&>(m) = withError(m);
  for (Measurements* const table : {&atAnchors_, &everywhere_})
    append((*table)[batch].kernels, measured);
  addAsked(batch, measured);
}

void MeasuredSoFar::addAsked(int batch, const std::vector<Measurement>& measured) {
  append(asked_[batch].kernels, measured);
  for (const Measurement& m : measured)
    if (m.kernel.source == kEngines) askedEngines_[batch].kernels.push_back(m);
}

bool MeasuredSoFar::isRefused(int batch, Kernel kernel) const {
  if (request_.refused == nullptr) return false;
  const auto refused = request_.refused->find(batch);
  return refused != request_.refused->end() && contains(refused->second, kernel);
}

bool MeasuredSoFar::isKnown(int batch, Kernel kernel) const {
  if (isRefused(batch, kernel)) return true;
  if (lacksError(batch, kernel)) return false;
  const auto size = everywhere_.find(batch);
  if (size == everywhere_.end()) return false;
  const auto& kernels = size->second.kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
    return m.kernel == kernel && (m.isReplayTimed || !request_.replays);
  });
}

bool MeasuredSoFar::lacksError(int batch, Kernel kernel) const {
  return request_.errors &&
         knownError(errors_, request_.problem.operation, batch, kernel) == nullptr;
}

KernelOffer MeasuredSoFar::withError(KernelOffer offer) const {
  const auto known = errors_.find(offer.kernel);
  if (offer.error == kUnknownError && known != errors_.end()) offer.error = known->second.error;
  return offer;
}

Measurement MeasuredSoFar::asAsked(Measurement measured) const {
  if (request_.errors)
    static_cast<KernelOffer&>(measured) = withError(measured);
  else  // an error that the question doesn't ask for must not decide
    measured.error = kUnknownError;
  return measured;
}

const Measurements& MeasuredSoFar::rivalsOf(Kernel kernel) const noexcept {
  const bool areEnginesAlone = request_.kernels == Kernels::kEngines;
  return areEnginesAlone && kernel.source == kEngines ? askedEngines_ : asked_;
}

}  // namespace ucudnn
