#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>
#include <iterator>

#include "kernels/graph_operations.hpp"
#include "kernels/native.hpp"
#include "problem/activation.hpp"

// A graph's and a plan's handle are marked deprecated; before 9.8 there is nothing in their place.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

void setDevice(const BackendDescriptor& descriptor,
               cudnnBackendAttributeName_t handleName,
               const EngineDevice& device) {
  if (device.handle != nullptr) set(descriptor, handleName, device.handle);
}

void setProperties(const BackendDescriptor& descriptor,
                   cudnnBackendAttributeName_t name,
                   const EngineDevice& device) {
  if (device.properties != nullptr) set(descriptor, name, *device.properties);
}

// Types of knobs are numbers: a newer cuDNN, or a database, may have some that the enumeration
// lacks.

int knobTypeOf(const BackendDescriptor& choice) {
  int type = 0;
  static_assert(sizeof type == sizeof(cudnnBackendKnobType_t));
  getAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
  return type;
}

void setKnobType(const BackendDescriptor& choice, int type) {
  setAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
}

}  // namespace

EngineConfiguration configurationOf(const BackendDescriptor& configuration) {
  EngineConfiguration value;
  const auto engine =
      getUpTo(1, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  value.engine = get<std::int64_t>(engine.at(0), CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const BackendDescriptor& choice : getUpTo(CUDNN_KNOB_TYPE_COUNTS,
                                                 configuration,
                                                 CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                 CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR))
    value.knobs.emplace_back(knobTypeOf(choice),
                             get<std::int64_t>(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  return value;
}

bool hasEngines(const Problem& problem) noexcept {
  if (problem.operation != Operation::kBiasActivationForward) return true;
  return problem.computeType != CUDNN_DATA_HALF &&
         (isRelu(problem) || isOfGraphs(problem) || !activates(problem));
}

OperationGraph::OperationGraph(const EngineDevice& device,
                               const Problem& problem,
                               double beta,
                               std::int64_t alignment)
    : OperationGraph(device, problem, GraphTensors(problem, alignment), beta, alignment) {}

OperationGraph::OperationGraph(const EngineDevice& device,
                               const Problem& problem,
                               const GraphTensors& tensors,
                               double beta,
                               std::int64_t alignment)
    : graph_(makeBackend(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
  setDevice(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device);
  set(graph_, CUDNN_ATTR_OPERATIONGRAPH_OPS, makeOperations(problem, tensors, beta, alignment));
  finalize(graph_);
}

std::vector<EngineConfiguration> OperationGraph::proposals(const EngineDevice& device,
                                                           cudnnBackendHeurMode_t mode) const {
  const auto heuristics = makeBackend(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  setProperties(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  const cudnnStatus_t status = cudnn().backendFinalize(heuristics.get());
  if (isRefusal(status)) return {};
  UCUDNN_CHECK_CUDNN(status);
  std::int64_t most = 0;  // an upper bound: fewer descriptors may be filled
  UCUDNN_CHECK_CUDNN(cudnn().backendGetAttribute(heuristics.get(),
                                                 CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                 0,
                                                 &most,
                                                 nullptr));
  std::vector<EngineConfiguration> values;
  for (const BackendDescriptor& configuration :
       getUpTo(most, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
    values.push_back(configurationOf(configuration));
  return values;
}

BackendDescriptor OperationGraph::engine(const EngineDevice& device, std::int64_t index) const {
  auto engine = makeBackend(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_);
  set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  setProperties(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, device);
  finalize(engine);
  return engine;
}

std::vector<KnobRange> OperationGraph::knobs(const EngineDevice& device, std::int64_t index) const {
  std::vector<KnobRange> ranges;
  for (const BackendDescriptor& info : getUpTo(CUDNN_KNOB_TYPE_COUNTS,
                                               engine(device, index),
                                               CUDNN_ATTR_ENGINE_KNOB_INFO,
                                               CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR)) {
    KnobRange range;
    getAttribute(info, CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &range.type);
    range.low = get<std::int64_t>(info, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE);
    range.high = get<std::int64_t>(info, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE);
    range.step = get<std::int64_t>(info, CUDNN_ATTR_KNOB_INFO_STRIDE);
    ranges.push_back(range);
  }
  return ranges;
}

std::vector<BackendDescriptor> knobChoicesOf(const EngineConfiguration& configuration) {
  std::vector<BackendDescriptor> choices;
  for (const auto& [type, choice] : configuration.knobs) {
    choices.push_back(makeBackend(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    setKnobType(choices.back(), type);
    set(choices.back(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, choice);
    finalize(choices.back());
  }
  return choices;
}

BackendDescriptor OperationGraph::configuration(const EngineDevice& device,
                                                const EngineConfiguration& value) const {
  return configuration(device, value.engine, knobChoicesOf(value));
}

BackendDescriptor OperationGraph::configuration(
    const EngineDevice& device,
    std::int64_t index,
    const std::vector<BackendDescriptor>& choices) const {
  auto configuration = makeBackend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine(device, index));
  if (!choices.empty()) set(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  finalize(configuration);
  return configuration;
}

bool EngineNotes::has(cudnnBackendNumericalNote_t note) const noexcept {
  return std::find(numerical.begin(), numerical.end(), note) != numerical.end();
}

EngineNotes notesOf(const BackendDescriptor& configuration) {
  const auto engine =
      getUpTo(1, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto behavior = getUpTo<cudnnBackendBehaviorNote_t>(
      CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, engine.at(0), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  return {get<std::int64_t>(engine.at(0), CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
          getUpTo<cudnnBackendNumericalNote_t>(
              CUDNN_NUMERICAL_NOTE_TYPE_COUNT, engine.at(0), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE),
          std::find(behavior.begin(), behavior.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) !=
              behavior.end()};
}

// cuDNN 9.19 on an H200 notes FFT for forward's engine 3, backward data's 50 and backward filter's
// 18. It notes no transform for backward filter's 17, whose workspace is that of WINOGRAD_NONFUSED.
// It notes WINOGRAD and a tile for the fused Winograd, which it has for an A100.
Transform transformOf(Operation operation, const EngineNotes& engine) noexcept {
  constexpr std::int64_t kWinogradOfFilters = 17;
  constexpr cudnnBackendNumericalNote_t kWinograd[] = {CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                                       CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                                                       CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                                                       CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  const auto isNoted = [&](cudnnBackendNumericalNote_t note) { return engine.has(note); };
  if (std::any_of(std::begin(kWinograd), std::end(kWinograd), isNoted) ||
      (operation == Operation::kBackwardFilter && engine.index == kWinogradOfFilters))
    return Transform::kWinograd;
  return isNoted(CUDNN_NUMERICAL_NOTE_FFT) ? Transform::kFourier : Transform::kNone;
}

BackendDescriptor makeExecutionPlan(const EngineDevice& device,
                                    const BackendDescriptor& configuration) {
  auto plan = makeBackend(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  setDevice(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device);
  setProperties(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  finalize(plan);
  return plan;
}

std::size_t workspaceOfPlan(const BackendDescriptor& plan) {
  return static_cast<std::size_t>(
      get<std::int64_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
}

bool tellsWorkspaceBeforePlans() noexcept {
  constexpr std::size_t kFirst = 90200;
  return cudnn().getVersion() >= kFirst;
}

std::size_t workspaceOf(const BackendDescriptor& configuration) {
  return static_cast<std::size_t>(
      get<std::int64_t>(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
}

}  // namespace ucudnn

#endif
