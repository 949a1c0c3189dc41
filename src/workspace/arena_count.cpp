#include "workspace/arena_count.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

// Times of two windows differ by a percent or two for no reason.
constexpr double kGain = 0.03;

// The client may pause in one of the two windows, and plans are made while the first one runs.
constexpr int kWindows = 2;

// The first look again comes after 128 windows. So trying arenas that are twice as slow, for three
// windows, costs a fortieth of the time. Each further look comes four times as late.
constexpr std::uint64_t kFirstRest = 128;
constexpr std::uint64_t kMostDoublings = 10;

}  // namespace

void ArenaCount::Ratio::add(double ratio) noexcept {
  least = windows++ == 0 ? ratio : std::min(least, ratio);
}

std::uint64_t ArenaCount::windowsOfRest() const noexcept {
  const std::uint64_t rests = rounds_ > 0 ? rounds_ - 1 : 0;
  return kFirstRest << std::min(2 * rests, kMostDoublings);
}

void ArenaCount::propose(const Window& window, const PlannedMs& plannedMs) {
  const std::size_t groups = std::max<std::size_t>(window.overlap.groups, 1);
  proposed_ = groups != current_ ? groups : 1;
  if (proposed_ == current_) return;
  // Small kernels may run side by side at no cost, so at best all groups overlap.
  const double leastMs = proposed_ == 1 ? window.overlap.serialMs * plannedMs(1) / window.plannedMs
                                        : plannedMs(proposed_) / static_cast<double>(proposed_);
  leastRatio_ = leastMs / window.referenceMs;
}

std::size_t ArenaCount::rest(std::size_t arenas) noexcept {
  stage_ = Stage::kRest;
  ++rounds_;
  return current_ = arenas;
}

/// Counts the time that passed, not the time that the device worked: if the host sets the pace,
/// layouts cost it different amounts of time.
std::size_t ArenaCount::next(const Window& window, const PlannedMs& plannedMs) {
  if (window.overlap.groupOf.size() < 2) return current_;  // one stream: no arenas are compared
  if (!(window.referenceMs > 0) || !(window.plannedMs > 0)) return current_;
  if (stage_ == Stage::kRest) {
    before_ = after_ = {};
    propose(window, plannedMs);
    stage_ = Stage::kBefore;
  }
  Ratio& ratio = stage_ == Stage::kBefore ? before_ : after_;
  ratio.add(window.overlap.elapsedMs / window.referenceMs);
  const double wanted = before_.least * (1 - kGain);
  if (stage_ == Stage::kBefore && (proposed_ == current_ || !(leastRatio_ < wanted)))
    return rest(current_);
  if (ratio.windows < kWindows) return current_;
  if (stage_ == Stage::kAfter) return rest(after_.least < wanted ? current_ : former_);
  stage_ = Stage::kAfter;
  former_ = current_;
  return current_ = proposed_;
}

}  // namespace ucudnn
