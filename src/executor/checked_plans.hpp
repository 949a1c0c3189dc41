// Plans as one handle has found them: checked whole before the first run, given up once refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "plan/plan.hpp"

namespace ucudnn {

/// Remembers what each plan needs on this handle. A plan may come from the database or another
/// handle, and cuDNN may want more workspace here and now than was measured there. Not thread-safe.
class CheckedPlans {
 public:
  /// Whether cuDNN says that each of the plan's micro-batches runs within the workspace, but of its
  /// plan for calls that suit no engine, which is asked about as a plan of its own. Asks it once,
  /// on the host; a plan that cannot run as it was made is warned of then. Throws std::bad_alloc.
  bool accepts(cudnnHandle_t handle, const Plan& plan, std::size_t workspaceBytes);

  /// From now on the plan is not accepted. Throws std::bad_alloc.
  void refuse(const Plan& plan);

  void clear() noexcept { needs_.clear(); }

 private:
  std::unordered_map<std::uint64_t, std::size_t> needs_;  ///< by plan id, in bytes
};

}  // namespace ucudnn
