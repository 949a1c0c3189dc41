// Decides how much workspace a client's execution plan (cuDNN's graph API) is said to need.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "context/snapshot.hpp"

namespace ucudnn {

/// A client's plan whose workspace is asked for.
struct ClientPlan {
  const Problem& problem;
  const ConvolutionDescriptors& descriptors;
  std::size_t neededBytes = 0;  ///< of its own engine
  bool deterministic = false;   ///< its own engine is
  bool suitsEngines = false;    ///< its calls are known to suit engines
  bool repeatsBits = false;     ///< all its calls must compute the first one's bits
  bool capturing = false;       ///< the handle's stream is captured
  /// Returns its engine. Called only where that may decide, because it takes cuDNN 10 us.
  const std::function<std::optional<Kernel>()>& kernel;
};

/// The answer to the client.
struct PlanWorkspace {
  std::size_t bytes = 0;
  bool isMeasured = false;  ///< `bytes` is the workspace of a plan, which is to run
};

/// No more than the plan's own engine needs, whatever more would gain: clients exclude plans by
/// their workspace, and may have no memory for another size. The exception are parts of a large
/// problem (Problem::isLarge), because its own engine is slow. No more than the cap, either. Empty
/// means the engine's own need: the problem is not planned, or nothing is known within the cap.
/// Throws Error.
std::optional<PlanWorkspace> planWorkspace(const Snapshot& snapshot, const ClientPlan& plan);

}  // namespace ucudnn
