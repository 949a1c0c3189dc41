// An engine of a problem with its knobs: configured, and ready to run.
#pragma once

#include "kernels/engine_part.hpp"
#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"

namespace ucudnn {

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
