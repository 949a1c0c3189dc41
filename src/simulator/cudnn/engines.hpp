// The simulated engines of the backend API: which there are, what each can do, needs and costs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/cudnn/algorithms.hpp"

namespace ucudnn::simulator {

/// A tensor that a variant pack names.
struct GraphTensor {
  std::int64_t uid = 0;
  std::int64_t alignment = 1;  ///< of its data, in bytes
};

/// The operations behind a forward convolution: y = activation(alpha * convolution + zFactor * z +
/// bias).
struct FusedTail {
  bool hasBias = false;  ///< without one no engine computes it
  GraphTensor bias;
  cudnnDataType_t biasType = CUDNN_DATA_FLOAT;
  std::int64_t biasStride = 1;
  double zFactor = 0;  ///< 0: no z
  GraphTensor z;
  TensorShape zShape;
  cudnnActivationStruct activation{CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0};
};

/// A graph of one convolution, checked.
struct OperationGraph {
  ConvolutionProblem problem;  ///< its math type is nobody's: engines choose their units
  double alpha = 1;
  double beta = 0;
  int device = 0;
  GraphTensor x;
  GraphTensor w;
  GraphTensor y;
  std::optional<FusedTail> fused;  ///< with it beta is 0
};

struct KnobRange {
  cudnnBackendKnobType_t type;
  std::int64_t low;
  std::int64_t high;
};

struct KnobChoice {
  int type;            ///< a cudnnBackendKnobType_t, or what is none: a client may set any number
  std::int64_t value;  ///< -1: the engine's own choice
};

/// An engine with its knobs. Knobs that are left out have the engine's own value.
struct EngineChoice {
  std::int64_t engine = -1;
  std::vector<KnobChoice> knobs;
};

/// Indexes of the graph's engines are below this.
std::int64_t engineCount(const OperationGraph& graph);

/// The status of an engine's Finalize: SUCCESS, or why this graph can't be computed.
cudnnStatus_t engineStatus(const OperationGraph& graph, std::int64_t engine);

/// As engineStatus, with knobs; the configuration's cost where it succeeds, as it really is.
cudnnStatus_t configure(const OperationGraph& graph, const EngineChoice& choice, Cost* cost);

/// REQUIRES for the following: engineStatus is SUCCESS.
std::vector<cudnnBackendNumericalNote_t> numericalNotes(const OperationGraph& graph,
                                                        std::int64_t engine);
std::vector<cudnnBackendBehaviorNote_t> behaviorNotes(const OperationGraph& graph,
                                                      std::int64_t engine);
/// At run time, when a plan is built.
bool isCompiled(const OperationGraph& graph, std::int64_t engine);
std::vector<KnobRange> knobRanges(const OperationGraph& graph, std::int64_t engine);

/// Kernels that one call launches.
int kernelCount(const OperationGraph& graph, std::int64_t engine);

/// Bytes at the workspace's begin that it clears before its kernels, as some of the real ones do.
std::size_t clearedBytes(const OperationGraph& graph, std::int64_t engine);

/// As relativeError of rounding.hpp.
double engineError(const OperationGraph& graph, std::int64_t engine);

bool isDeterministic(const OperationGraph& graph, std::int64_t engine);

/// The host's time to build the plan.
double buildMicroseconds(const OperationGraph& graph, std::int64_t engine);

/// Multiplies the configuration's time for this graph from now on. Heuristics don't know of it.
void scaleEngineTime(const OperationGraph& graph, const EngineChoice& choice, double factor);

/// The proposals of the heuristics, best first by their expectation; some may not be configurable.
std::vector<EngineChoice> proposals(const OperationGraph& graph, cudnnBackendHeurMode_t mode);

/// A number that names the configuration's kernel.
std::uint64_t kernelId(const OperationGraph& graph, const EngineChoice& choice);

}  // namespace ucudnn::simulator
