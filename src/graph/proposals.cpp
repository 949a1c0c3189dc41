#include "graph/proposals.hpp"

#if UCUDNN_HAS_ENGINES

#include "support/log.hpp"

namespace ucudnn {
namespace {
std::atomic<bool> skipsNondeterministic{false};
}  // namespace

bool clientSkipsNondeterministic() noexcept {
  return skipsNondeterministic.load(std::memory_order_relaxed);
}

void Proposals::take(int place) noexcept {
  const auto notesAt = [&](int i) { return notes_[i].load(std::memory_order_relaxed); };
  if (!isKept(place) || (notesAt(place) & kShown) == 0) return;
  constexpr Notes kNondeterministic = bitOf(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  const Notes own = notesAt(place);
  if ((own & kNondeterministic) != 0)
    return skipsNondeterministic.store(false, std::memory_order_relaxed);
  for (int i = 0; i < place; ++i) {
    const bool isLikeIt = (notesAt(i) & ~own) == kNondeterministic;
    if (!isLikeIt || tried_[i].load(std::memory_order_relaxed)) continue;
    if (!skipsNondeterministic.exchange(true, std::memory_order_relaxed))
      logInfo(
          "the program passes over nondeterministic engines (it takes proposal {} with notes "
          "{:#x}, not {} with {:#x}): it keeps its own kernels",
          place,
          own & ~kShown,
          i,
          notesAt(i) & ~kShown);
    return;
  }
}

}  // namespace ucudnn

#endif
