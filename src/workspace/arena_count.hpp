// Decides into how many arenas a total is cut: one, or one for each group of streams. Numbers
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "workspace/overlap.hpp"

namespace ucudnn {

/// The rule: begin with one arena for all streams. If uses overlap, or would overlap in separate
/// regions, try as many arenas as there are groups of overlapping streams, for two windows of uses.
/// Keep them if the same work took less time. Look again after ever more windows, because programs
/// change. Go back to one arena if the uses of several, one after another, would be done sooner in
/// it.
class ArenaCount {
 public:
  /// A window of uses in the current arenas.
  struct Window {
    Overlap overlap;
    double referenceMs = 0;  ///< predicted for one arena; makes windows comparable
    double plannedMs = 0;    ///< predicted for the current arenas
  };
  /// Predicted time of the window's uses in so many arenas; infinite if that is not possible.
  using PlannedMs = std::function<double(std::size_t arenas)>;

  std::size_t current() const noexcept { return current_; }
  /// Whether the current number may be taken back soon.
  bool isTentative() const noexcept { return stage_ == Stage::kAfter; }
  /// Whether more windows are wanted as soon as the layout has settled.
  bool isComparing() const noexcept { return stage_ != Stage::kRest; }
  bool hasDecided() const noexcept { return rounds_ > 0; }
  /// After how many windows to look again.
  std::uint64_t windowsOfRest() const noexcept;

  /// Returns the number of arenas to go on with.
  std::size_t next(const Window& window, const PlannedMs& plannedMs);

 private:
  /// A comparison looks at windows before and after the change.
  enum class Stage { kRest, kBefore, kAfter };
  /// The ratio of the time that passed to the reference, the lower one of two windows.
  struct Ratio {
    double least = 0;
    int windows = 0;
    void add(double ratio) noexcept;
  };

  void propose(const Window& window, const PlannedMs& plannedMs);
  std::size_t rest(std::size_t arenas) noexcept;

  std::size_t current_ = 1, former_ = 1, proposed_ = 1;
  double leastRatio_ = 0;  ///< no lower ratio can be had with the proposed number
  Stage stage_ = Stage::kRest;
  Ratio before_, after_;
  std::uint64_t rounds_ = 0;
};

}  // namespace ucudnn
