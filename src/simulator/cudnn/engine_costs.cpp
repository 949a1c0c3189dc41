// Time and workspace of the simulated engines.
#include <algorithm>
#include <cmath>

#include "simulator/cudnn/engine_models.hpp"
#include "simulator/cudnn/random_times.hpp"

namespace ucudnn::simulator {
namespace {

constexpr double kFloatBytes = 4;
// Bytes of a described tensor beside its copy, as cuDNN's engines answer.
constexpr double kDescriptionBytes = 131;

constexpr std::uint64_t kSmallSeed = 11;
constexpr std::uint64_t kLargeSeed = 13;
constexpr std::uint64_t kHeuristicSeed = 17;
constexpr std::uint64_t kVariantSeed = 19;
constexpr double kLargeBatch = 256;
// Factor of the engines' time for large tensors (pytorch#128936: 60 times as long on 2^31
// elements).
constexpr double kBeyond32Bits = 60;

/// Names the configuration; no legacy algorithm has such a number.
int configurationKey(const EngineChoice& choice) {
  std::uint32_t key = 1000 + static_cast<std::uint32_t>(choice.engine);
  for (const KnobChoice& knob : choice.knobs) {
    key = key * 16777619U + static_cast<std::uint32_t>(knob.type) * 4099U +
          static_cast<std::uint32_t>(knob.value);
  }
  return static_cast<int>(key & 0x7fffffffU);
}

/// One number for each geometry and configuration, whatever the batch: 2^-strength to 2^strength.
double luck(const ConvolutionProblem& problem, int key, std::uint64_t seed, double strength) {
  constexpr double kLogOfLargest = 3;  // of randomTimeFactor
  ConvolutionProblem one = problem;
  one.x.dims[0] = 1;
  one.y.dims[0] = 1;
  return std::pow(randomTimeFactor(one, key, seed), strength / kLogOfLargest);
}

bool channelsInnermost(const TensorShape& shape) {
  return shape.strides[1] == 1 || shape.dims[1] == 1;
}

/// Whether tensor-core engines read the tensor in place. They also copy tensors with gaps, such as
/// some of the channels of a tensor.
bool isReadInPlace(const TensorShape& shape) {
  TensorShape packed = shape;
  if (!channelsInnermost(shape) || !setPackedStrides(&packed, CUDNN_TENSOR_NHWC)) return false;
  for (std::size_t d = 2; d < static_cast<std::size_t>(shape.rank); ++d) {
    if (shape.dims[d] != 1 && shape.strides[d] != packed.strides[d]) return false;
  }
  return true;
}

bool isNarrow(const TensorShape& shape) {
  return shape.type == CUDNN_DATA_HALF || shape.type == CUDNN_DATA_BFLOAT16;
}

/// They read half and bfloat16 by eights: 102.8 MB for 128 images of 224 by 224 by 3, as cuDNN
/// answers. How they do that in groups was not asked.
double copyBytes(const TensorShape& shape, bool grouped) {
  constexpr std::int64_t kRead = 8;
  const bool narrow = isNarrow(shape);
  const auto channels = static_cast<std::int64_t>(shape.dims[1]);
  const auto missing = narrow && !grouped ? (kRead - channels % kRead) % kRead : 0;
  if (missing == 0 && isReadInPlace(shape)) return 0;
  return tensorBytes(shape) * static_cast<double>(channels + missing) /
         static_cast<double>(channels);
}

std::int64_t knobValue(const EngineModel& engine,
                       const EngineChoice& choice,
                       cudnnBackendKnobType_t type) {
  for (const KnobChoice& knob : choice.knobs) {
    if (knob.type == type && knob.value != -1) return knob.value;
  }
  for (std::size_t i = 0; i < engine.knobs.size() && !engine.presets.empty(); ++i) {
    if (engine.knobs[i].type == type) return engine.presets.front()[i];
  }
  return 0;
}

/// Whether the engine rounds float inputs to TF32 as it copies them, so that it copies those with
/// channels last, too. On an H200 engines of a filter's gradient that have partial sums do.
bool roundsInputs(const ConvolutionProblem& problem, const EngineModel& engine) {
  return engine.tensorCores && engine.space == EngineSpace::kPartials &&
         problem.x.type == CUDNN_DATA_FLOAT;
}

/// Bytes of the tensors that the engine copies, if it copies any.
double copiesBytes(const ConvolutionProblem& problem, const EngineModel& engine) {
  const auto copyOf = [&](const TensorShape& shape) {
    return copyBytes(shape, problem.groups() != 1);
  };
  const double inputs = roundsInputs(problem, engine)
                            ? tensorBytes(problem.x) + tensorBytes(problem.y)
                            : copyOf(problem.x) + copyOf(problem.y);
  const double copies = inputs + copyOf(problem.w);
  return engine.space == EngineSpace::kInputs ? copies - copyOf(outputShape(problem)) : copies;
}

double workspaceBytes(const OperationGraph& graph,
                      const EngineModel& engine,
                      const EngineChoice& choice) {
  const ConvolutionProblem& problem = graph.problem;
  const double filterBytes = static_cast<double>(elementCount(problem.w)) * kFloatBytes;
  const bool writesFilter = problem.operation == Operation::kBackwardFilter;
  double copies = copiesBytes(problem, engine);
  // Filters that accumulate are added to in the workspace.
  if (writesFilter && graph.beta != 0 && channelsInnermost(problem.w)) copies += filterBytes;
  switch (engine.space) {
    case EngineSpace::kNone:
      return 0;
    case EngineSpace::kMethod:
      return static_cast<double>(modelWorkspaceBytes(unitsProblem(problem, engine), engine.method));
    case EngineSpace::kCopies:
    case EngineSpace::kInputs:
      return copies;
    case EngineSpace::kDescribed: {
      const bool buffered = knobValue(engine, choice, CUDNN_KNOB_TYPE_WORKSPACE) == 0;
      return copies + kDescriptionBytes + (buffered ? filterBytes : 0);
    }
    case EngineSpace::kPartials:
      return copies +
             filterBytes * static_cast<double>(knobValue(engine, choice, CUDNN_KNOB_TYPE_SPLIT_K));
  }
  return 0;
}

bool isSame(const EngineChoice& a, const EngineChoice& b) {
  return configurationKey(a) == configurationKey(b);
}

/// The factor for other knobs than the proposed ones: 0.85 to 1.85 times as long, mostly more than
/// 1. On an H200 a kernel's best knobs took 0.83 to 1 times as long (misc/RESULTS.md at 7ba7ca8).
double variantFactor(const ConvolutionProblem& problem, const EngineChoice& choice) {
  constexpr double kLeast = 0.85;
  const double unit = (std::log2(luck(problem, configurationKey(choice), kVariantSeed, 1)) + 1) / 2;
  return kLeast + std::sqrt(std::max(unit, 0.0));
}

/// Whether the time of copies is told apart from the method's, whatever sets its pace. In float it
/// is in the method's, as in the times of misc/profiles by which the engines are scaled.
bool addsCopies(const ConvolutionProblem& problem, const EngineModel& engine) {
  return engine.tensorCores && isNarrow(problem.x);
}

/// How many times as long fewer channels take for a product. With 48, two columns of 32 channels as
/// one save as much as on an H200: 0.50 ms of a filter gradient instead of 0.88
/// (misc/results/one_sample_layers_{folds,rest}_h200.json).
double timesOfFewChannels(const ConvolutionProblem& problem, const EngineModel& engine) {
  constexpr double kFewest = 48;
  if (!engine.tensorCores || problem.convolution.groups != 1) return 1;
  return std::max(1.0, kFewest / problem.channels()) * std::max(1.0, kFewest / problem.filters());
}

/// The same with packed tensors of the format.
ConvolutionProblem packedAs(const ConvolutionProblem& problem, cudnnTensorFormat_t format) {
  ConvolutionProblem other = problem;
  const bool fits = setPackedStrides(&other.x, format) && setPackedStrides(&other.y, format);
  return fits ? other : problem;
}

/// An engine's own copies are written and read again.
double copiesMs(const ConvolutionProblem& problem,
                const EngineModel& engine,
                const DeviceModel& device) {
  return memoryTimeMs(2 * copiesBytes(problem, engine), device);
}

/// The method's time for copies that float tensors with channels last don't need. An H200 copies
/// for 0.47 of the 1.01 ms of ResNet-18's forward convolutions of 64 channels, N=128, says
/// PyTorch's profiler.
double savedCopiesMs(const ConvolutionProblem& problem,
                     const EngineModel& engine,
                     const DeviceModel& device) {
  if (!engine.tensorCores || isNarrow(problem.x) || engine.space == EngineSpace::kNone ||
      engine.space == EngineSpace::kMethod)
    return 0;
  return copiesMs(packedAs(problem, CUDNN_TENSOR_NCHW), engine, device) -
         copiesMs(problem, engine, device);
}

/// The time by the model. The fastest configuration depends on the geometry and on the batch.
double timeMs(const OperationGraph& graph, const EngineModel& engine, const EngineChoice& choice) {
  const ConvolutionProblem problem = unitsProblem(graph.problem, engine);
  const DeviceModel& device = deviceModel(graph.device);
  const EngineChoice proposed = proposedLike(engine, choice);
  const int key = configurationKey(proposed);
  const double large = std::min(1.0, std::log2(problem.batch()) / std::log2(kLargeBatch));
  constexpr double kStrength = 0.5;
  const double fit = std::pow(luck(problem, key, kSmallSeed, kStrength), 1 - large) *
                     std::pow(luck(problem, key, kLargeSeed, kStrength), large);
  const double launches = kernelCount(graph, engine.index) * device.launchMs;
  const double tensors = tensorBytes(problem.x) + tensorBytes(problem.w) + tensorBytes(problem.y);
  const bool copies = addsCopies(problem, engine);
  const double work =
      modelTimeMs(copies ? packedAs(problem, CUDNN_TENSOR_NHWC) : problem, engine.method, device) -
      launches;
  const double variant = isSame(proposed, choice) ? 1 : variantFactor(problem, choice);
  const bool isSlow = isLarge(problem.x) || isLarge(problem.w) || isLarge(problem.y);
  const double slow = (isSlow ? kBeyond32Bits : 1) * timesOfFewChannels(problem, engine);
  const double all = work * engine.time * fit * variant * slow;
  const double saved = std::min(all / 2, savedCopiesMs(problem, engine, device));
  return launches + std::max(all - saved, memoryTimeMs(tensors, device)) +
         (copies ? copiesMs(problem, engine, device) : 0);
}

/// A lower bound for the time of any kernel: ten times an H200's memory and tensor cores, with the
/// fewest multiplications that a transform leaves.
double leastMs(const OperationGraph& graph) {
  constexpr double kBytesPerMs = 5e10;
  constexpr double kMultiplicationsPerMs = 5e12;
  const ConvolutionProblem& problem = graph.problem;
  const auto count = [](const TensorShape& shape) {
    return static_cast<double>(elementCount(shape));
  };
  const double bytes = tensorBytes(problem.x) + tensorBytes(problem.w) + tensorBytes(problem.y);
  const double multiplications =
      std::max(count(problem.x), count(problem.y)) * static_cast<double>(problem.w.dims[1]);
  return std::max({deviceModel(graph.device).launchMs,
                   bytes / kBytesPerMs,
                   multiplications / kMultiplicationsPerMs});
}

}  // namespace

ConvolutionProblem plainProblem(const ConvolutionProblem& problem) {
  ConvolutionProblem plain = problem;
  plain.convolution.mathType = CUDNN_FMA_MATH;
  return plain;
}

ConvolutionProblem unitsProblem(const ConvolutionProblem& problem, const EngineModel& engine) {
  ConvolutionProblem units = plainProblem(problem);
  if (engine.tensorCores) units.convolution.mathType = CUDNN_DEFAULT_MATH;
  return units;
}

EngineChoice presetChoice(const EngineModel& engine, const std::vector<std::int64_t>& values) {
  EngineChoice choice{engine.index, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    choice.knobs.push_back({engine.knobs[i].type, values[i]});
  }
  return choice;
}

EngineChoice proposedLike(const EngineModel& engine, const EngineChoice& choice) {
  if (choice.knobs.empty() || engine.presets.empty()) return choice;
  const auto equalKnobs = [&](const std::vector<std::int64_t>& values) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (knobValue(engine, choice, engine.knobs[i].type) == values[i]) ++equal;
    }
    return equal;
  };
  const auto nearest = std::max_element(
      engine.presets.begin(), engine.presets.end(), [&](const auto& a, const auto& b) {
        return equalKnobs(a) < equalKnobs(b);
      });
  return equalKnobs(*nearest) == nearest->size() ? choice : presetChoice(engine, *nearest);
}

Cost modelCost(const OperationGraph& graph, const EngineModel& engine, const EngineChoice& choice) {
  return {timeMs(graph, engine, choice),
          static_cast<std::size_t>(workspaceBytes(graph, engine, choice))};
}

double engineTimeFactor(const OperationGraph& graph,
                        const EngineModel& engine,
                        const EngineChoice& choice) {
  const std::uint64_t seed = randomTimesSeed();
  if (seed == 0) return 1;
  return randomTimeFactor(unitsProblem(graph.problem, engine), configurationKey(choice), seed);
}

double scaledTimeMs(const OperationGraph& graph,
                    const EngineModel& engine,
                    const EngineChoice& choice,
                    double timeMs) {
  const double factor = scaledTime(unitsProblem(graph.problem, engine), configurationKey(choice));
  if (factor >= 1) return timeMs * factor;
  return std::min(timeMs, std::max(timeMs * factor, leastMs(graph)));
}

void scaleEngineTime(const OperationGraph& graph, const EngineChoice& choice, double factor) {
  for (const EngineModel& engine : engineModels(graph)) {
    if (engine.index != choice.engine) continue;
    const EngineChoice proposed = proposedLike(engine, choice);
    scaleTime(unitsProblem(graph.problem, engine), configurationKey(proposed), factor);
  }
}

double expectedTimeMs(const OperationGraph& graph,
                      const EngineModel& engine,
                      const EngineChoice& choice,
                      cudnnBackendHeurMode_t mode) {
  constexpr double kStrength = 0.3;
  // INSTANT is A by another name; B errs otherwise.
  const auto seed = kHeuristicSeed + (mode == CUDNN_HEUR_MODE_B ? 1U : 0U);
  return timeMs(graph, engine, choice) *
         luck(graph.problem, configurationKey(choice), seed, kStrength);
}

std::uint64_t kernelId(const OperationGraph& graph, const EngineChoice& choice) {
  const auto& problem = graph.problem;
  // Legacy algorithms' kernels have numbers below 2^40.
  std::uint64_t id = 1;
  id = id * 256 + static_cast<std::uint64_t>(problem.operation);
  id = id * 256 + static_cast<std::uint64_t>(problem.x.type);
  id = id * 256 + static_cast<std::uint64_t>(problem.spatialRank()) +
       (graph.fused.has_value() ? 128U : 0U);
  return (id << 32U) + static_cast<std::uint64_t>(configurationKey(choice));
}

}  // namespace ucudnn::simulator
