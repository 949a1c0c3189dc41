// Which engines there are and what each refuses. Indexes, knobs and notes are those of cuDNN 9.19
// for an H200, as it answered with a deserialized device; for double it has engines 0, 1, 2, 20, 25
// and 28 only, too. Those that transform (3, 17, 18, 50) it has only where the device is: their
// notes are assumed.
#include "simulator/cudnn/engines.hpp"

#include <algorithm>

#include "simulator/cudnn/engine_models.hpp"
#include "simulator/cudnn/recorded_profiles.hpp"
#include "simulator/cudnn/rounding.hpp"

namespace ucudnn::simulator {
namespace {

constexpr std::int64_t kFusedEngineCount = 61;
// Alignment that the engines need which read by vectors.
constexpr std::int64_t kVectorBytes = 16;
// The largest TILE_SIZE that is a kernel; cuDNN's knob goes to 23, most of them refused.
constexpr std::int64_t kTiles = 10;
constexpr std::int64_t kMissingTile = 6;

bool isHalf(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

bool aligned(const OperationGraph& graph) {
  return graph.x.alignment >= kVectorBytes && graph.w.alignment >= kVectorBytes &&
         graph.y.alignment >= kVectorBytes;
}

cudnnStatus_t tensorCoreStatus(const OperationGraph& graph, const EngineModel& engine) {
  const ConvolutionProblem& problem = graph.problem;
  if (deviceModel(graph.device).tensorTeraflops <= 0) {
    return CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
  }
  if (problem.x.type != CUDNN_DATA_FLOAT && !isHalf(problem.x.type)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if ((engine.traits & kUngrouped) != 0 && problem.groups() != 1) return CUDNN_STATUS_NOT_SUPPORTED;
  if ((engine.traits & kVectors) != 0 && !aligned(graph)) return CUDNN_STATUS_NOT_SUPPORTED;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t modelStatus(const OperationGraph& graph, const EngineModel& engine) {
  const ConvolutionProblem& problem = graph.problem;
  if (vectorLength(problem.x.type) > 1 || problem.convolution.computeType == CUDNN_DATA_INT32) {
    return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  }
  if (engine.tensorCores) {
    if (const cudnnStatus_t status = tensorCoreStatus(graph, engine)) return status;
  }
  if ((engine.traits & kPlanar) != 0 && problem.spatialRank() != 2) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if ((engine.traits & kNotHalf) != 0 && isHalf(problem.x.type)) return CUDNN_STATUS_NOT_SUPPORTED;
  if ((engine.traits & kNotDouble) != 0 && problem.x.type == CUDNN_DATA_DOUBLE) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  const bool transforms = (engine.traits & (kFourier | kWinograd)) != 0;
  if (transforms &&
      (problem.x.type != CUDNN_DATA_FLOAT || !isSupported(plainProblem(problem), engine.method))) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

const EngineModel* findEngine(const OperationGraph& graph, std::int64_t index) {
  for (const EngineModel& engine : engineModels(graph)) {
    if (engine.index == index) return &engine;
  }
  return nullptr;
}

/// Null where the model answers.
const std::vector<RecordedEngine>* recordedEngines(const OperationGraph& graph) {
  return recordedProfiles().engines.find(graph.problem);
}

cudnnStatus_t recordedStatus(const OperationGraph& graph,
                             const EngineModel& engine,
                             const std::vector<RecordedEngine>& recorded) {
  if ((engine.traits & kVectors) != 0 && !aligned(graph)) return CUDNN_STATUS_NOT_SUPPORTED;
  const bool known =
      std::any_of(recorded.begin(), recorded.end(), [&](const RecordedEngine& other) {
        return other.choice.engine == engine.recordedIndex();
      });
  return known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t recordedCost(const std::vector<RecordedEngine>& recorded,
                           const EngineModel& engine,
                           const EngineChoice& choice,
                           Cost* cost) {
  const std::string text = engineText({engine.recordedIndex(), choice.knobs});
  const auto found = std::find_if(recorded.begin(),
                                  recorded.end(),
                                  [&](const RecordedEngine& other) { return other.text == text; });
  if (found == recorded.end()) return CUDNN_STATUS_NOT_SUPPORTED;
  *cost = found->cost;
  return CUDNN_STATUS_SUCCESS;
}

std::vector<EngineChoice> presetChoices(const EngineModel& engine, cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK) {
    if ((engine.traits & kFallback) == 0) return {};
    return {{engine.index, {}}};
  }
  const bool onlyInB = (engine.traits & (kCompiled | kStrictNan)) != 0;
  if (onlyInB && mode != CUDNN_HEUR_MODE_B) return {};
  std::vector<EngineChoice> choices;
  for (const std::vector<std::int64_t>& values : engine.presets) {
    choices.push_back(presetChoice(engine, values));
  }
  return choices;
}

char modeLetter(cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return 'F';
  return mode == CUDNN_HEUR_MODE_B ? 'B' : 'A';
}

bool knobFits(const EngineModel& engine, const KnobChoice& knob) {
  const auto range = std::find_if(engine.knobs.begin(),
                                  engine.knobs.end(),
                                  [&](const KnobRange& known) { return known.type == knob.type; });
  if (range == engine.knobs.end()) return false;
  if (knob.value == -1) return true;
  if (knob.value < range->low || knob.value > range->high) return false;
  return knob.type != CUDNN_KNOB_TYPE_TILE_SIZE ||
         (knob.value < kTiles && knob.value != kMissingTile);
}

/// Knobs that cuDNN lets one turn alone. The others name a kernel together.
bool isFree(const EngineModel& engine, int type) {
  const auto has = [&](int other) {
    return std::any_of(engine.knobs.begin(), engine.knobs.end(), [&](const KnobRange& range) {
      return range.type == other;
    });
  };
  switch (type) {
    case CUDNN_KNOB_TYPE_TILE_SIZE:
      return has(CUDNN_KNOB_TYPE_USE_TEX) || has(CUDNN_KNOB_TYPE_TILE_CGA_M);
    case CUDNN_KNOB_TYPE_USE_TEX:
    case CUDNN_KNOB_TYPE_WORKSPACE:
    case CUDNN_KNOB_TYPE_TILE_CGA_M:
    case CUDNN_KNOB_TYPE_TILE_CGA_N:
    case CUDNN_KNOB_TYPE_SPLIT_K:
    case CUDNN_KNOB_TYPE_SPLIT_K_BUF:
    case CUDNN_KNOB_TYPE_SPLIT_K_SLC:
    case CUDNN_KNOB_TYPE_MULTIPLY:
      return true;
    default:
      return false;
  }
}

/// Whether the knobs that are not free are those of a kernel that heuristics propose, as cuDNN 9.19
/// answers for an H200.
bool knobsFit(const EngineModel& engine, const EngineChoice& choice) {
  for (const KnobChoice& knob : choice.knobs) {
    if (!knobFits(engine, knob)) return false;
  }
  const auto isKernel = [&](const std::vector<std::int64_t>& preset) {
    return std::all_of(choice.knobs.begin(), choice.knobs.end(), [&](const KnobChoice& knob) {
      if (knob.value == -1 || isFree(engine, knob.type)) return true;
      for (std::size_t i = 0; i < preset.size(); ++i) {
        if (engine.knobs[i].type == knob.type) return preset[i] == knob.value;
      }
      return true;
    });
  };
  return engine.presets.empty() ||
         std::any_of(engine.presets.begin(), engine.presets.end(), isKernel);
}

}  // namespace

std::int64_t engineCount(const OperationGraph& graph) {
  if (graph.fused.has_value()) return kFusedEngineCount;
  switch (graph.problem.operation) {
    case Operation::kForward:
      return 81;
    case Operation::kBackwardData:
      return 85;
    default:
      return 75;
  }
}

cudnnStatus_t engineStatus(const OperationGraph& graph, std::int64_t index) {
  const EngineModel* const engine = findEngine(graph, index);
  if (engine == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  if (graph.fused.has_value() && !graph.fused->hasBias) {
    return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
  }
  const auto* const recorded = recordedEngines(graph);
  return recorded != nullptr ? recordedStatus(graph, *engine, *recorded)
                             : modelStatus(graph, *engine);
}

cudnnStatus_t configure(const OperationGraph& graph, const EngineChoice& choice, Cost* cost) {
  if (const cudnnStatus_t status = engineStatus(graph, choice.engine)) return status;
  const EngineModel& engine = *findEngine(graph, choice.engine);
  // As documented for the engines that are compiled at run time: they scale nothing.
  if ((engine.traits & kUnscaled) != 0 && (graph.alpha != 1 || graph.beta != 0)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  EngineChoice proposed = choice;
  if (const auto* const recorded = recordedEngines(graph)) {
    if (const cudnnStatus_t status = recordedCost(*recorded, engine, choice, cost)) return status;
  } else {
    if (!knobsFit(engine, choice)) return CUDNN_STATUS_NOT_SUPPORTED;
    *cost = modelCost(graph, engine, choice);
    proposed = proposedLike(engine, choice);
  }
  cost->timeMs *= engineTimeFactor(graph, engine, proposed);
  cost->timeMs = scaledTimeMs(graph, engine, proposed, cost->timeMs);
  return CUDNN_STATUS_SUCCESS;
}

std::vector<cudnnBackendNumericalNote_t> numericalNotes(const OperationGraph& graph,
                                                        std::int64_t index) {
  const EngineModel& engine = *findEngine(graph, index);
  std::vector<cudnnBackendNumericalNote_t> notes;
  // TF32 too has this note alone, and not DOWN_CONVERT_INPUTS.
  if (engine.tensorCores) notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  // Atomic kernels add up in the output.
  if ((engine.traits & kNondeterministic) != 0 && isHalf(graph.problem.x.type)) {
    notes.push_back(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  }
  if ((engine.traits & kFourier) != 0) notes.push_back(CUDNN_NUMERICAL_NOTE_FFT);
  if ((engine.traits & kNondeterministic) != 0) {
    notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  }
  // Nothing of the non-fused Winograd: as on an H200, 2026-11-22.
  if ((engine.traits & kStrictNan) != 0) notes.push_back(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
  return notes;
}

bool isCompiled(const OperationGraph& graph, std::int64_t index) {
  return (findEngine(graph, index)->traits & kCompiled) != 0;
}

std::vector<cudnnBackendBehaviorNote_t> behaviorNotes(const OperationGraph& graph,
                                                      std::int64_t index) {
  if (!isCompiled(graph, index)) return {};
  return {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
          CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API};
}

std::vector<KnobRange> knobRanges(const OperationGraph& graph, std::int64_t index) {
  return findEngine(graph, index)->knobs;
}

double engineError(const OperationGraph& graph, std::int64_t index) {
  const EngineModel& engine = *findEngine(graph, index);
  return relativeError(unitsProblem(graph.problem, engine), engine.method);
}

bool isDeterministic(const OperationGraph& graph, std::int64_t index) {
  return (findEngine(graph, index)->traits & kNondeterministic) == 0;
}

int kernelCount(const OperationGraph& graph, std::int64_t index) {
  const EngineModel& engine = *findEngine(graph, index);
  return launchCount(unitsProblem(graph.problem, engine), engine.method);
}

std::size_t clearedBytes(const OperationGraph& graph, std::int64_t index) {
  constexpr std::size_t kBytes = 128;
  return findEngine(graph, index)->space == EngineSpace::kDescribed ? kBytes : 0;
}

double buildMicroseconds(const OperationGraph& graph, std::int64_t index) {
  constexpr double kCompileMicroseconds = 150e3;
  constexpr double kLeastMicroseconds = 200;
  constexpr double kKernelMicroseconds = 700;
  if (isCompiled(graph, index)) return kCompileMicroseconds;
  return kLeastMicroseconds + kKernelMicroseconds * (kernelCount(graph, index) - 1);
}

std::vector<EngineChoice> proposals(const OperationGraph& graph, cudnnBackendHeurMode_t mode) {
  std::vector<EngineChoice> choices;
  if (const auto* const recorded = recordedEngines(graph)) {
    for (const RecordedEngine& proposed : *recorded) {
      if (proposed.modes.find(modeLetter(mode)) == std::string::npos) continue;
      for (const EngineModel& engine : engineModels(graph)) {
        if (engine.recordedIndex() != proposed.choice.engine) continue;
        choices.push_back({engine.index, proposed.choice.knobs});
      }
    }
    return choices;
  }
  struct Proposal {
    EngineChoice choice;
    double expectedMs;
  };
  std::vector<Proposal> found;
  for (const EngineModel& engine : engineModels(graph)) {
    if (modelStatus(graph, engine) != CUDNN_STATUS_SUCCESS) continue;
    for (EngineChoice& choice : presetChoices(engine, mode)) {
      const double expectedMs = expectedTimeMs(graph, engine, choice, mode);
      found.push_back({std::move(choice), expectedMs});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Proposal& a, const Proposal& b) {
    return a.expectedMs < b.expectedMs;
  });
  for (Proposal& proposal : found) choices.push_back(std::move(proposal.choice));
  return choices;
}

}  // namespace ucudnn::simulator
