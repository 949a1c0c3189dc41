#include "workspace/overlap.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

// Streams that overlap for a smaller part of the time gain nothing measurable. Uses that follow one
// another on two streams may also seem to touch, by the resolution of events.
constexpr double kOverlapPart = 0.02;

/// The moment when a use got its region. Uses of one region exclude each other.
double begunMs(const std::vector<WorkspaceUse>& uses, std::size_t i) {
  double begun = uses[i].requestedMs;
  for (std::size_t j = 0; j < uses.size(); ++j) {
    if (uses[j].region == nullptr || uses[j].region != uses[i].region) continue;
    if (uses[j].endedMs < uses[i].endedMs || (uses[j].endedMs == uses[i].endedMs && j < i))
      begun = std::max(begun, uses[j].endedMs);
  }
  return std::min(begun, uses[i].endedMs);
}

double elapsedMs(const std::vector<WorkspaceUse>& uses) {
  if (uses.empty()) return 0;
  double begun = uses.front().requestedMs;
  double ended = uses.front().endedMs;
  for (const WorkspaceUse& use : uses) {
    begun = std::min(begun, use.requestedMs);
    ended = std::max(ended, use.endedMs);
  }
  return ended - begun;
}

/// Takes streams in the order of their first use. Each gets the first group that it does not
/// overlap.
void group(const std::vector<WorkspaceUse>& uses, Overlap& overlap) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> togetherMs;
  for (const WorkspaceUse& a : uses)
    for (const WorkspaceUse& b : uses)
      if (a.stream != b.stream)
        togetherMs[{a.stream, b.stream}] +=
            std::max(0.0, std::min(a.endedMs, b.endedMs) - std::max(a.requestedMs, b.requestedMs));
  const double least = kOverlapPart * overlap.elapsedMs;
  for (const WorkspaceUse& use : uses) {
    if (overlap.groupOf.count(use.stream) > 0) continue;
    std::vector<bool> taken(overlap.groups + 1, false);
    for (const auto& [stream, number] : overlap.groupOf)
      if (togetherMs[{use.stream, stream}] > least) taken[number] = true;
    const auto free =
        static_cast<std::size_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
    overlap.groupOf[use.stream] = free;
    overlap.groups = std::max(overlap.groups, free + 1);
  }
}

}  // namespace

Overlap overlapOf(const std::vector<WorkspaceUse>& uses) {
  Overlap overlap;
  for (std::size_t i = 0; i < uses.size(); ++i)
    overlap.serialMs += uses[i].endedMs - begunMs(uses, i);
  overlap.elapsedMs = elapsedMs(uses);
  group(uses, overlap);
  return overlap;
}

}  // namespace ucudnn
