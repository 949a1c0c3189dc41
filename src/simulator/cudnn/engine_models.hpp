// The simulated engines as data, and their costs.
#pragma once

#include <vector>

#include "simulator/cudnn/engines.hpp"

namespace ucudnn::simulator {

enum EngineTrait : unsigned {
  kNondeterministic = 1U << 0U,
  kCompiled = 1U << 1U,  ///< at run time
  kUnscaled = 1U << 2U,  ///< alpha 1 and beta 0 only
  kFourier = 1U << 3U,
  kWinograd = 1U << 4U,
  kStrictNan = 1U << 5U,
  kUngrouped = 1U << 6U,
  kVectors = 1U << 7U,  ///< data aligned to 16 bytes
  kPlanar = 1U << 8U,   ///< two spatial dimensions
  kNotHalf = 1U << 9U,
  kNotDouble = 1U << 10U,
  kPlainUnits = 1U << 11U,  ///< no tensor cores
  kFallback = 1U << 12U,    ///< proposed by the mode FALLBACK
};

/// The contents of an engine's workspace.
enum class EngineSpace {
  kNone,
  kMethod,     ///< as the legacy method's
  kCopies,     ///< of tensors whose channels are not innermost
  kInputs,     ///< of those but the output
  kDescribed,  ///< as kCopies, and descriptions of the tensors
  kPartials,   ///< as kCopies, and a partial sum of the filters for each split
};

struct EngineModel {
  std::int64_t index;  ///< a fused graph's engines have others than the convolution's own
  Method method;       ///< whose limits and times it has, scaled
  bool tensorCores;
  double time;  ///< of the method's
  EngineSpace space;
  unsigned traits;
  std::vector<KnobRange> knobs;
  std::vector<std::vector<std::int64_t>>
      presets;                   ///< what heuristics propose, in the order of knobs
  std::int64_t plainIndex = -1;  ///< of a fused graph\'s engine: the convolution\'s; -1: its own

  std::int64_t recordedIndex() const { return plainIndex < 0 ? index : plainIndex; }
};

const std::vector<EngineModel>& engineModels(const OperationGraph& graph);

/// The problem on ordinary units.
ConvolutionProblem plainProblem(const ConvolutionProblem& problem);

/// The problem on the units that the engine uses.
ConvolutionProblem unitsProblem(const ConvolutionProblem& problem, const EngineModel& engine);

/// One of the engine's presets.
EngineChoice presetChoice(const EngineModel& engine, const std::vector<std::int64_t>& values);

/// The choice itself where heuristics propose it, else the proposed one that has most of its knobs.
EngineChoice proposedLike(const EngineModel& engine, const EngineChoice& choice);

/// By the model. REQUIRES: the engine computes the graph, with these knobs.
Cost modelCost(const OperationGraph& graph, const EngineModel& engine, const EngineChoice& choice);

/// The random factor of an engine's time; 1 if times are not random.
double engineTimeFactor(const OperationGraph& graph,
                        const EngineModel& engine,
                        const EngineChoice& choice);

/// `timeMs`, scaled if a test asks for that, but no less than any kernel takes.
double scaledTimeMs(const OperationGraph& graph,
                    const EngineModel& engine,
                    const EngineChoice& choice,
                    double timeMs);

/// The heuristics' expectation: they err, and know nothing of random times.
double expectedTimeMs(const OperationGraph& graph,
                      const EngineModel& engine,
                      const EngineChoice& choice,
                      cudnnBackendHeurMode_t mode);

}  // namespace ucudnn::simulator
