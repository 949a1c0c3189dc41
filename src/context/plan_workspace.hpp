// How much workspace a client's execution plan (cuDNN's graph API) is said to need.
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
  std::size_t neededBytes = 0;  ///< by its own engine
  bool deterministic = false;   ///< that engine is
  bool suitsEngines = false;    ///< its calls are known to suit engines
  bool repeatsBits = false;     ///< all its calls must compute what the first does
  bool capturing = false;       ///< the handle's stream is captured
  /// Its engine. Asked only where something has been measured: that takes cuDNN 10 us.
  const std::function<std::optional<Kernel>()>& kernel;
};

/// What the client is told.
struct PlanWorkspace {
  std::size_t bytes = 0;
  /// Of the legacy API: it runs where neither our plan nor the client's can. -1: there is none.
  int algorithm = 0;
  bool isMeasured = false;  ///< it is that of a plan, which is to run
};

/// No more than the plan's own engine needs, whatever would be gained by more: clients bar plans by
/// their workspace, and may have no memory for another size. But what parts of a large problem need
/// (Problem::isLarge), which its own engine is slow for. No more than the cap, either. Empty:
/// the engine's own need, as the problem is not planned, or nothing is known within the cap. Throws
/// Error.
std::optional<PlanWorkspace> planWorkspace(const Snapshot& snapshot, const ClientPlan& plan);

}  // namespace ucudnn
