// A convolution problem as an operation graph of cuDNN's graph API, and what its engines are asked.
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

/// Whose engines are asked: the handle's; or, where it is null, those of a device that need not be
/// there, described by a CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
struct EngineDevice {
  cudnnHandle_t handle = nullptr;
  const BackendDescriptor* properties = nullptr;
};

/// All of these throw Error. They ask on the host; run nothing.
class OperationGraph {
 public:
  /// Of makeOperations. REQUIRES: a problem for which hasEngines.
  OperationGraph(const EngineDevice& device,
                 const Problem& problem,
                 double beta,
                 std::int64_t alignment);
  /// Of tensors that another graph has too. REQUIRES: they are the problem's, so aligned.
  OperationGraph(const EngineDevice& device,
                 const Problem& problem,
                 const GraphTensors& tensors,
                 double beta,
                 std::int64_t alignment);

  /// What cuDNN's heuristics propose, best first. Empty where they have no answer.
  std::vector<EngineConfiguration> proposals(const EngineDevice& device,
                                             cudnnBackendHeurMode_t mode) const;
  /// Empty: this cuDNN does not have it, or not for this graph.
  BackendDescriptor configuration(const EngineDevice& device,
                                  const EngineConfiguration& configuration) const;
  /// The same of an engine and knobChoicesOf.
  BackendDescriptor configuration(const EngineDevice& device,
                                  std::int64_t engine,
                                  const std::vector<BackendDescriptor>& choices) const;
  /// Of an engine's knobs.
  std::vector<KnobRange> knobs(const EngineDevice& device, std::int64_t engine) const;

 private:
  BackendDescriptor engine(const EngineDevice& device, std::int64_t index) const;

  BackendDescriptor graph_;
};

/// Of any graph's engine. Throws Error.
std::vector<BackendDescriptor> knobChoicesOf(const EngineConfiguration& configuration);

/// Whether there is a graph for it: of bias_activation_forward for the activations that cuDNN's
/// call has, and not where sums are kept in half.
bool hasEngines(const Problem& problem) noexcept;

/// What a configuration's descriptor holds, ours or a client's. Throws Error.
EngineConfiguration configurationOf(const BackendDescriptor& configuration);

/// What cuDNN notes of an engine.
struct EngineNotes {
  std::int64_t index = -1;  ///< the engine's
  std::vector<cudnnBackendNumericalNote_t> numerical;
  bool isCompiled = false;  ///< its code, when an execution plan of it is made

  bool has(cudnnBackendNumericalNote_t note) const noexcept;
};

/// Of a configuration. Throws Error.
EngineNotes notesOf(const BackendDescriptor& configuration);
std::size_t workspaceOf(const BackendDescriptor& configuration);

/// What an engine of that operation computes by.
Transform transformOf(Operation operation, const EngineNotes& engine) noexcept;

/// Ready to run; may be compiled first, which takes milliseconds to seconds. Throws Error.
BackendDescriptor makeExecutionPlan(const EngineDevice& device,
                                    const BackendDescriptor& configuration);

}  // namespace ucudnn

#endif
