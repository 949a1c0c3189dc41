// An engine of a problem with its knobs: configured, and ready to run.
#pragma once

#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/blocks.hpp"
#include "kernels/folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/sums.hpp"
#include "kernels/tiles.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// What an engine's graphs are of: the problem, a tile of it, the problem with columns folded, a
/// part of the batch, or the problem of blocks.
struct EnginePart {
  Tiling tiling;
  std::optional<Folding> folding;
  std::optional<Summation> sums;
  std::optional<Blocking> blocks;

  /// Throws Error: the problem has no such parts.
  EnginePart(const Problem& whole, const EngineConfiguration& value);

  const Problem& problem() const noexcept {
    return folding ? folding->folded : sums ? sums->part : blocks ? blocks->problem() : tiling.tile;
  }
  /// Whether an engine adds to the output; else nothing does, or what copies its output, which adds
  /// floats only: others would be rounded twice.
  bool engineAdds() const noexcept {
    const Problem& whole = tiling.tile;
    if (whole.operation == Operation::kBiasActivationForward) return false;
    return !blocks || isRounded(whole.xType) ||
           (whole.operation == Operation::kForward && !blocks->copiesY());
  }
  /// Whether all parts but the first are added to the output, whatever the call does.
  bool addsUp() const noexcept { return sums || tiling.addsUp(); }
  /// What a call needs where the engine needs so much.
  std::size_t workspaceBytes(std::size_t engineBytes) const noexcept {
    const std::size_t own = folding  ? folding->bytes
                            : sums   ? sums->bytes()
                            : blocks ? blocks->bytes()
                                     : 0;
    return own == 0 ? engineBytes : roundUpToAlignment(engineBytes) + own;
  }
};

/// A part's graphs: of the first the output is overwritten, of the second, where an engine adds,
/// added to. Throws Error.
std::vector<OperationGraph> makeGraphs(const EngineDevice& device,
                                       const EnginePart& part,
                                       Calls calls = Calls::kAll);
/// Adds those that there are for all calls, where there are fewer. Throws Error.
void completeGraphs(const EngineDevice& device,
                    const EnginePart& part,
                    std::vector<OperationGraph>& graphs);

/// An engine with its knobs, configured for each of a part's graphs when that is first needed: it
/// takes cuDNN 30 to 60 us.
class ConfiguredEngine {
 public:
  /// REQUIRES: the graphs outlive it.
  ConfiguredEngine(const EngineDevice& device,
                   const std::vector<OperationGraph>& graphs,
                   EngineConfiguration value)
      : device_(device), graphs_(graphs), value_(std::move(value)) {}

  const EngineConfiguration& value() const noexcept { return value_; }
  std::size_t graphs() const noexcept { return graphs_.size(); }
  /// Throws Error.
  const BackendDescriptor& at(std::size_t graph);

 private:
  const EngineDevice device_;
  const std::vector<OperationGraph>& graphs_;
  const EngineConfiguration value_;
  std::vector<BackendDescriptor> choices_;  ///< the knobs', once the first graph has asked
  std::vector<BackendDescriptor> configured_;
};

/// Ready to run, for the calls that `engine` has the part's graphs for: others are refused before
/// anything is written. Throws Error.
std::shared_ptr<const BuiltKernel> buildEngine(const EngineDevice& device,
                                               const EnginePart& part,
                                               ConfiguredEngine& engine);

}  // namespace ucudnn

#endif
