// An engine of a problem with its knobs: configured, and ready to run.
#pragma once

#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"
#include "problem/part.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

/// The part of a problem that an engine computes, and how the whole is made of such parts.
struct EnginePart {
  Problem whole;
  std::vector<Part> parts;   ///< equal ones, one after another; mostly the whole
  Problem problem;           ///< of the graphs: a part's, with columns folded, in float, of blocks
  std::size_t ownBytes = 0;  ///< of workspace behind the engine's, for copies
  /// Whether the engine adds to the output. If not, either nothing adds or the copy of its output
  /// does. A copy adds only floats, because other types would be rounded twice.
  bool engineAdds = true;
  /// Whether all parts but the first are added to the output, whatever the call does.
  bool addsUp = false;

  /// Throws Error: the problem has no such parts.
  EnginePart(const Problem& problem, const EngineConfiguration& value);

  /// Bytes that a call needs if the engine needs `engineBytes`.
  std::size_t workspaceBytes(std::size_t engineBytes) const noexcept {
    return ownBytes == 0 ? engineBytes : roundUpToAlignment(engineBytes) + ownBytes;
  }
};

/// Bytes of the output's copy in the engine's workspace; 0: the output is not copied, or is a
/// filter. Throws Error.
std::size_t outputCopyBytes(const Problem& problem, const EngineConfiguration& value);

/// A part's graphs. The first overwrites the output. The second adds to it; it exists only if an
/// engine adds. Throws Error.
std::vector<OperationGraph> makeGraphs(const EngineDevice& device,
                                       const EnginePart& part,
                                       Calls calls = Calls::kAll);
/// Adds the graphs that are missing for Calls::kAll. Throws Error.
void completeGraphs(const EngineDevice& device,
                    const EnginePart& part,
                    std::vector<OperationGraph>& graphs);

/// An engine with its knobs. It is configured for each of a part's graphs on first use, because
/// that takes cuDNN 30 to 60 us.
class ConfiguredEngine {
 public:
  /// REQUIRES: the graphs outlive it.
  ConfiguredEngine(const EngineDevice& device,
                   const std::vector<OperationGraph>& graphs,
                   EngineConfiguration value)
      : device_(device), graphs_(graphs), value_(std::move(value)) {}

  const EngineConfiguration& value() const noexcept { return value_; }
  /// False if the device is only described: then nothing runs.
  bool mayRun() const noexcept { return device_.handle != nullptr; }
  std::size_t graphs() const noexcept { return graphs_.size(); }
  /// Throws Error.
  const BackendDescriptor& at(std::size_t graph);
  /// The workspace of `at(graph)`. A plan that must be made to tell it is kept. Throws Error.
  std::size_t workspaceBytes(std::size_t graph);
  /// A plan of `at(graph)`: the kept one or a new one. Throws Error.
  BackendDescriptor takePlan(std::size_t graph);

 private:
  const EngineDevice device_;
  const std::vector<OperationGraph>& graphs_;
  const EngineConfiguration value_;
  std::vector<BackendDescriptor> choices_;  ///< of the knobs; made for the first graph
  std::vector<BackendDescriptor> configured_;
  struct Asked {
    BackendDescriptor plan;  ///< null once it is taken
    std::size_t bytes;
  };
  std::map<std::size_t, Asked> asked_;
};

/// Makes the engine ready to run the calls that `engine` has the part's graphs for. Other calls are
/// refused before anything is written. Throws Error.
std::shared_ptr<const BuiltKernel> buildEngine(const EnginePart& part, ConfiguredEngine& engine);

}  // namespace ucudnn

#endif
