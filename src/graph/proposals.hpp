// The proposals that cuDNN's heuristics made to the client, and its choice among them.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <atomic>
#include <cstdint>

namespace ucudnn {

/// The proposals in one answer of cuDNN's heuristics to the client, the best first. Thread-safe.
class Proposals {
 public:
  /// A bit for each cudnnBackendNumericalNote_t.
  using Notes = std::uint32_t;
  static constexpr Notes bitOf(cudnnBackendNumericalNote_t note) noexcept {
    return static_cast<int>(note) < 31 ? Notes{1} << static_cast<int>(note) : 0;
  }

  /// The client has read the notes of this proposal's engine.
  void show(int place, Notes notes) noexcept {
    if (isKept(place)) notes_[place].store(notes | kShown, std::memory_order_relaxed);
  }
  /// The client makes a plan of this proposal; it may fail.
  void tryOut(int place) noexcept {
    if (isKept(place)) tried_[place].store(true, std::memory_order_relaxed);
  }
  /// The client has made it: see clientSkipsNondeterministic.
  void take(int place) noexcept;

 private:
  static constexpr int kMost = 64;  // cuDNN 9.19 proposes up to 30
  static constexpr Notes kShown = Notes{1} << 31;
  static bool isKept(int place) noexcept { return place < kMost; }

  std::atomic<Notes> notes_[kMost] = {};
  std::atomic<bool> tried_[kMost] = {};
};

/// Whether the process skips better engines because they are not deterministic: it has read that
/// they are not, and they are otherwise like the one that it takes. PyTorch does so after
/// torch.use_deterministic_algorithms. The last plan that shows it either way decides.
bool clientSkipsNondeterministic() noexcept;

}  // namespace ucudnn

#endif
