// Into how many arenas a total is cut: one, or as many as overlap asks for. Numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "workspace/overlap.hpp"

namespace ucudnn {

/// The rule: begin with one arena for all streams. When uses overlap, or would but for their
/// region, try as many arenas as there are groups of streams that overlap, for two windows of uses,
/// and keep them if the same work took less time. Look again after ever more windows, for programs
/// change. Several arenas go back to one when their uses, one after another, would be done sooner
/// in it.
class ArenaCount {
 public:
  /// A window of uses in the current arenas.
  struct Window {
    Overlap overlap;
    double referenceMs = 0;  ///< the same uses as predicted in one arena: windows differ
    double plannedMs = 0;    ///< as predicted in the current ones
  };
  /// What the window's uses are predicted to take in so many; infinite: it is not possible.
  using PlannedMs = std::function<double(std::size_t arenas)>;

  std::size_t current() const noexcept { return current_; }
  /// The current number may be taken back soon.
  bool isTentative() const noexcept { return stage_ == Stage::kAfter; }
  /// More windows are wanted as soon as the layout has settled.
  bool isComparing() const noexcept { return stage_ != Stage::kRest; }
  bool hasDecided() const noexcept { return rounds_ > 0; }
  /// After how many windows to look again.
  std::uint64_t windowsOfRest() const noexcept;

  /// The number to go on with.
  std::size_t next(const Window& window, const PlannedMs& plannedMs);

 private:
  /// A comparison looks at windows before and after the change.
  enum class Stage { kRest, kBefore, kAfter };
  /// Of the time that passed to the reference, the lower of two windows.
  struct Ratio {
    double least = 0;
    int windows = 0;
    void add(double ratio) noexcept;
  };

  void propose(const Window& window, const PlannedMs& plannedMs);
  std::size_t rest(std::size_t arenas) noexcept;

  std::size_t current_ = 1, former_ = 1, proposed_ = 1;
  double leastRatio_ = 0;  ///< no lower one can be had with the proposed number
  Stage stage_ = Stage::kRest;
  Ratio before_, after_;
  std::uint64_t rounds_ = 0;
};

}  // namespace ucudnn
