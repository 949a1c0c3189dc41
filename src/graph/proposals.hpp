// What cuDNN's heuristics have proposed to the client, and what it makes of that.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <atomic>
#include <cstdint>

namespace ucudnn {

/// What one answer of cuDNN's heuristics has proposed to the client, the best first. Thread-safe.
class Proposals {
 public:
  /// A bit for each cudnnBackendNumericalNote_t.
  using Notes = std::uint32_t;
  static constexpr Notes bitOf(cudnnBackendNumericalNote_t note) noexcept {
    return static_cast<int>(note) < 31 ? Notes{1} << static_cast<int>(note) : 0;
  }

  /// The client has read what is noted of this one's engine.
  void show(int place, Notes notes) noexcept {
    if (isKept(place)) notes_[place].store(notes | kShown, std::memory_order_relaxed);
  }
  /// The client makes a plan of this one; it may fail.
  void tryOut(int place) noexcept {
    if (isKept(place)) tried_[place].store(true, std::memory_order_relaxed);
  }
  /// It has made it: see clientSkipsNondeterministic.
  void take(int place) noexcept;

 private:
  static constexpr int kMost = 64;  // cuDNN 9.19 proposes up to 30
  static constexpr Notes kShown = Notes{1} << 31;
  static bool isKept(int place) noexcept { return place < kMost; }

  std::atomic<Notes> notes_[kMost] = {};
  std::atomic<bool> tried_[kMost] = {};
};

/// Whether the process passes over better engines, once it has read that they are not deterministic
/// and otherwise like the one that it takes, as PyTorch does after
/// torch.use_deterministic_algorithms. The last plan that tells decides.
bool clientSkipsNondeterministic() noexcept;

}  // namespace ucudnn

#endif
