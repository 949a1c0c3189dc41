#include "workspace/layout_search.hpp"

#include <algorithm>
#include <cmath>

namespace ucudnn {
namespace {

// Times of two windows differ by a percent or two for no reason.
constexpr double kGain = 0.03;

// The client may pause in one of them, and the first is planned while it runs.
constexpr int kWindows = 2;

// The first look again comes after 128 windows, so that three tries of a layout that is twice as
// slow, each for three windows, cost a tenth; then four times as late each time.
constexpr std::uint64_t kFirstRest = 128;
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
  const auto add = [&](const LayoutKind& kind, double leastMs) {
    if (!(kind == current_) && std::isfinite(leastMs))
      candidates_.push_back({kind, leastMs / window.referenceMs});
  };
  const LayoutKind one{1, false};
  if (!(one == current_)) add(one, window.overlap.serialMs * plannedMs(one) / window.plannedMs);
  const std::size_t groups = window.overlap.groups;
  if (groups < 2) return;
  // Small kernels side by side may cost nothing of what they are predicted to take alone, so at
  // best all groups overlap.
  const auto addOverlapping = [&](const LayoutKind& kind) {
    if (!(kind == current_)) add(kind, plannedMs(kind) / static_cast<double>(groups));
  };
  addOverlapping({groups, false});
  if (groups > 2) addOverlapping({(groups + 1) / 2, false});
  if (mayDivide) addOverlapping({1, true});
}

/// The time that passed, not that during which the device worked: where the host sets the pace,
/// layouts differ in what they cost it.
void LayoutSearch::record(double ratio) {
  if (tried_.empty() || !(tried_.back().kind == current_)) tried_.push_back({current_, ratio, 0});
  Tried& tried = tried_.back();
  tried.ratio = std::min(tried.ratio, ratio);
  ++tried.windows;
}

void LayoutSearch::dropHopeless() {
  const double least = best().ratio * (1 - kGain);
  candidates_.erase(std::remove_if(candidates_.begin(),
                                   candidates_.end(),
                                   [&](const Candidate& c) { return c.least >= least; }),
                    candidates_.end());
}

const LayoutSearch::Tried& LayoutSearch::best() const {
  return *std::min_element(tried_.begin(), tried_.end(), [](const Tried& a, const Tried& b) {
    return a.ratio < b.ratio;
  });
}

LayoutKind LayoutSearch::next(const Window& window, bool mayDivide, const PlannedMs& plannedMs) {
  if (!(window.referenceMs > 0) || !(window.plannedMs > 0)) return current_;
  if (!searching_) beginRound(window, mayDivide, plannedMs);
  record(window.overlap.elapsedMs / window.referenceMs);
  dropHopeless();
  const bool compares = tried_.size() > 1 || !candidates_.empty();
  if (compares && tried_.back().windows < kWindows) return current_;
  if (!candidates_.empty()) {
    current_ = candidates_.front().kind;
    candidates_.erase(candidates_.begin());
    return current_;
  }
  searching_ = false;
  ++rounds_;
  const Tried& former = tried_.front();
  current_ = best().ratio < former.ratio * (1 - kGain) ? best().kind : former.kind;
  return current_;
}

}  // namespace ucudnn
