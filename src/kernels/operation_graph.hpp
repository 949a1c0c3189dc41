// A convolution problem as an operation graph of cuDNN's graph API, and queries about its engines.
#pragma once

#include "kernels/backend.hpp"

#if UCUDNN_HAS_ENGINES

#include <optional>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "kernels/knobs.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

struct GraphTensors;

/// The device whose engines are asked: that of the handle; or, if it is null, a device that need
/// not be present, described by a CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
struct EngineDevice {
  cudnnHandle_t handle = nullptr;
  const BackendDescriptor* properties = nullptr;
};

/// All of these throw Error. They ask on the host and run nothing.
class OperationGraph {
 public:
  /// Makes the graph of makeOperations. REQUIRES: hasEngines(problem).
  OperationGraph(const EngineDevice& device,
                 const Problem& problem,
                 double beta,
                 std::int64_t alignment);
  /// Shares its tensors with another graph. REQUIRES: they are the problem's, with that alignment.
  OperationGraph(const EngineDevice& device,
                 const Problem& problem,
                 const GraphTensors& tensors,
                 double beta,
                 std::int64_t alignment);

  /// The proposals of cuDNN's heuristics, best first. Empty if they have no answer.
  std::vector<EngineConfiguration> proposals(const EngineDevice& device,
                                             cudnnBackendHeurMode_t mode) const;
  /// Empty: this cuDNN does not have it, or not for this graph.
  BackendDescriptor configuration(const EngineDevice& device,
                                  const EngineConfiguration& configuration) const;
  /// The same for an engine and its knobChoicesOf.
  BackendDescriptor configuration(const EngineDevice& device,
                                  std::int64_t engine,
                                  const std::vector<BackendDescriptor>& choices) const;
  /// The ranges of an engine's knobs.
  std::vector<KnobRange> knobs(const EngineDevice& device, std::int64_t engine) const;

 private:
  BackendDescriptor engine(const EngineDevice& device, std::int64_t index) const;

  BackendDescriptor graph_;
};

/// The choices of the configuration's knobs, which any graph's engine can use. Throws Error.
std::vector<BackendDescriptor> knobChoicesOf(const EngineConfiguration& configuration);

/// Whether there is a graph for the problem. For bias_activation_forward only with the activations
/// that cuDNN's call has, and not if sums are kept in half.
bool hasEngines(const Problem& problem) noexcept;

/// The value of a configuration's descriptor, ours or a client's. Throws Error.
EngineConfiguration configurationOf(const BackendDescriptor& configuration);

/// cuDNN's notes on an engine.
struct EngineNotes {
  std::int64_t index = -1;  ///< the engine's
  std::vector<cudnnBackendNumericalNote_t> numerical;
  bool isCompiled = false;  ///< its code, when an execution plan of it is made

  bool has(cudnnBackendNumericalNote_t note) const noexcept;
};

/// The notes on a configuration's engine. Throws Error.
EngineNotes notesOf(const BackendDescriptor& configuration);

/// The transform that an engine of that operation computes by.
Transform transformOf(Operation operation, const EngineNotes& engine) noexcept;

/// Ready to run; may be compiled first, which takes milliseconds to seconds. Throws Error.
BackendDescriptor makeExecutionPlan(const EngineDevice& device,
                                    const BackendDescriptor& configuration);
/// Throws Error.
std::size_t workspaceOfPlan(const BackendDescriptor& plan);

/// Whether a configuration has the attribute for its workspace. Before cuDNN 9.2 only its plan
/// does.
bool tellsWorkspaceBeforePlans() noexcept;
/// REQUIRES: tellsWorkspaceBeforePlans. Throws Error.
std::size_t workspaceOf(const BackendDescriptor& configuration);

}  // namespace ucudnn

#endif
