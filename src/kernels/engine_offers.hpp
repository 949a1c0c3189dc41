// The engines that are offered for a problem, whole and in parts.
#pragma once

#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "kernels/kernel.hpp"
#include "kernels/operation_graph.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The engine's needs for the calls. Empty if cuDNN does not have the configuration, if the problem
/// does not allow its arithmetic, or if `better` outranks it. `failures` as in
/// KernelSource::offers. REQUIRES: the engine has the part's graphs for such calls.
std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   Calls calls,
                                   int* failures,
                                   const std::vector<KernelOffer>& better = {});

/// The question: the device, the problem, and the kind of calls.
struct Asking {
  const EngineDevice& device;
  const Problem& problem;
  Calls calls;
  int* failures;
};

/// Adds the first `most` wanted engines that are offered for `kind`.
void addEngines(const Asking& asking,
                EngineConfiguration kind,
                std::size_t most,
                std::vector<KernelOffer>& offers,
                const std::function<bool(const KernelOffer&)>& isWanted);

/// Whether an engine that needs `workspaceBytes` on our copies copies something that it does not
/// copy on the caller's tensors, where it needs `enginesBytes`.
bool isMoreByACopy(std::size_t workspaceBytes, std::size_t enginesBytes) noexcept;
/// Whether tensor cores want x and y channels last, and we can copy them so.
bool mayCopyLast(const Problem& problem);
/// Replaces engines that copy x and y channels last by the same on tensors that we copy before. Our
/// copy takes less time (channels_last.hpp) and as much workspace. If it took more workspace, the
/// engine would copy nothing, or not the filter, and stays as it is. Only in float: half as many
/// bytes are copied no faster.
void copyLast(const Asking& asking, std::vector<KernelOffer>& offers);

}  // namespace ucudnn

#endif
