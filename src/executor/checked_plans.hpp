// Checks plans on one handle: whole before the first run, and not used again once refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "plan/plan.hpp"
#include "support/bounded_map.hpp"

namespace ucudnn {

/// Remembers each plan's need on this handle, for the plans that were asked about last. A plan may
/// come from the database or another handle, and cuDNN may want more workspace here and now than
/// was measured there. Not thread-safe.
class CheckedPlans {
 public:
  /// Whether cuDNN says that each of the plan's micro-batches runs within the workspace. Leaves out
  /// its plan for calls that suit no engine, which is asked about as a plan of its own. Asks once,
  /// on the host, and logs a plan that cannot run as it was made. Throws std::bad_alloc.
  bool accepts(cudnnHandle_t handle, const Plan& plan, std::size_t workspaceBytes);

  /// From now on the plan is not accepted, as long as it is remembered. Throws std::bad_alloc.
  void refuse(const Plan& plan);

  void clear() noexcept { needs_.clear(); }
  std::size_t size() const noexcept { return needs_.size(); }

  /// A program of changing shapes makes plans for ever. Asking again costs microseconds.
  static constexpr std::size_t kMostPlans = 4096;

 private:
  /// The need in bytes, by plan id.
  BoundedMap<std::uint64_t, std::size_t, std::hash<std::uint64_t>> needs_{kMostPlans};
};

}  // namespace ucudnn
