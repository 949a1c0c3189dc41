#include "context/layout_search.hpp"

#include <algorithm>
#include <cmath>

namespace ucudnn {
namespace {

// Spans of two windows differ by a percent or two for no reason.
constexpr double kGain = 0.03;

// The first look again comes after 64 windows, so that three tries of a layout that is twice as
// slow cost a tenth; then four times as late each time.
constexpr std::uint64_t kFirstRest = 64;
constexpr std::uint64_t kMostDoublings = 10;

}  // namespace

std::uint64_t LayoutSearch::windowsOfRest() const noexcept {
  const std::uint64_t rests = rounds_ > 0 ? rounds_ - 1 : 0;
  return kFirstRest << std::min(2 * rests, kMostDoublings);
}

void LayoutSearch::beginRound(const Window& window, bool mayDivide, const PlannedMs& plannedMs) {
  searching_ = true;
  tried_.clear();
  candidates_.clear();
  const auto add = [&](const LayoutKind& kind, double uncontendedMs) {
    if (kind == current_) return;
    const double slower = plannedMs(kind) / window.plannedMs;
    if (std::isfinite(slower))
      candidates_.push_back({kind, uncontendedMs * slower / window.referenceMs});
  };
  add({1, false}, window.overlap.serialMs);
  const std::size_t groups = window.overlap.groups;
  if (groups < 2) return;
  add({groups, false}, window.overlap.leastMs);
  if (groups > 2) add({(groups + 1) / 2, false}, window.overlap.leastMs);
  if (mayDivide) add({1, true}, window.overlap.leastMs);
}

const LayoutSearch::Tried& LayoutSearch::best() const {
  return *std::min_element(tried_.begin(), tried_.end(), [](const Tried& a, const Tried& b) {
    return a.ratio < b.ratio;
  });
}

LayoutKind LayoutSearch::next(const Window& window, bool mayDivide, const PlannedMs& plannedMs) {
  if (!(window.referenceMs > 0) || !(window.plannedMs > 0)) return current_;
  if (!searching_) beginRound(window, mayDivide, plannedMs);
  tried_.push_back({current_, window.overlap.spanMs / window.referenceMs});
  while (!candidates_.empty()) {
    const Candidate candidate = candidates_.front();
    candidates_.erase(candidates_.begin());
    if (candidate.least >= best().ratio * (1 - kGain)) continue;
    current_ = candidate.kind;
    return current_;
  }
  searching_ = false;
  ++rounds_;
  const Tried& former = tried_.front();
  current_ = best().ratio < former.ratio * (1 - kGain) ? best().kind : former.kind;
  return current_;
}

}  // namespace ucudnn
