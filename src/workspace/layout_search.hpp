// How many arenas a total is best laid out in, or whether divided: tried, not guessed. Numbers
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workspace/overlap.hpp"

namespace ucudnn {

/// A way to lay out a total.
struct LayoutKind {
  std::size_t arenas = 1;  ///< of equal size; streams that share one use it in turn
  bool divided = false;    ///< a segment for each convolution instead

  bool operator==(const LayoutKind& other) const noexcept {
    return divided == other.divided && (divided || arenas == other.arenas);
  }
};

/// The rule: begin with one arena for all streams. When uses overlap, or would but for their
/// region, try as many arenas as there are groups of streams that overlap, half as many, and the
/// division where it is allowed; each for two windows of uses, and keep the layout in which the
/// same work took the least time. Look again after ever more windows, for programs change. Several
/// arenas go back to one when their uses, one after another, would be done sooner in it.
class LayoutSearch {
 public:
  /// A window of uses in the current layout.
  struct Window {
    Overlap overlap;
    double referenceMs = 0;  ///< the same uses as predicted in one arena: windows differ
    double plannedMs = 0;    ///< as predicted in the current layout
  };
  /// What the window's uses are predicted to take in another layout; infinite: it is not possible.
  using PlannedMs = std::function<double(const LayoutKind&)>;

  const LayoutKind& current() const noexcept { return current_; }
  /// More windows are wanted as soon as the layout has settled.
  bool isSearching() const noexcept { return searching_; }
  bool hasDecided() const noexcept { return rounds_ > 0; }
  /// After how many windows to look again.
  std::uint64_t windowsOfRest() const noexcept;

  /// The layout to go on with.
  LayoutKind next(const Window& window, bool mayDivide, const PlannedMs& plannedMs);

 private:
  struct Tried {
    LayoutKind kind;
    double ratio;  ///< of the time that passed to the reference, the lower of two
    int windows;
  };
  struct Candidate {
    LayoutKind kind;
    double least;  ///< no lower ratio can be had
  };

  void beginRound(const Window& window, bool mayDivide, const PlannedMs& plannedMs);
  void record(double ratio);
  void dropHopeless();
  const Tried& best() const;

  LayoutKind current_;
  bool searching_ = false;
  std::uint64_t rounds_ = 0;
  std::vector<Tried> tried_;
  std::vector<Candidate> candidates_;
};

}  // namespace ucudnn
