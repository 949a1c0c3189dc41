// An engine of a problem with its knobs: configured, and ready to run.
#pragma once

#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"
#include "problem/part.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// What an engine computes of a problem, and how the whole is made of it.
struct EnginePart {
  Problem whole;
  std::vector<Part> parts;   ///< equal ones, one after another; mostly the whole
  Problem problem;           ///< of the graphs: a part's, with columns folded, in float, of blocks
  std::size_t ownBytes = 0;  ///< of workspace behind the engine's: for its copies
  /// Whether an engine adds to the output; else nothing does, or what copies its output, which adds
  /// floats only: others would be rounded twice.
  bool engineAdds = true;
  /// Whether all parts but the first are added to the output, whatever the call does.
  bool addsUp = false;

  /// Throws Error: the problem has no such parts.
  EnginePart(const Problem& problem, const EngineConfiguration& value);

  /// What a call needs where the engine needs so much.
  std::size_t workspaceBytes(std::size_t engineBytes) const noexcept {
    return ownBytes == 0 ? engineBytes : roundUpToAlignment(engineBytes) + ownBytes;
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
  /// Of a device that is only described nothing runs.
  bool mayRun() const noexcept { return device_.handle != nullptr; }
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
