#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

#include "kernels/native.hpp"

// A graph's and a plan's handle are marked deprecated; before 9.8 there is nothing in their place.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

/// A row for each operation, as Native has them.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

const Names& namesOf(Operation operation) noexcept {
  static constexpr Names kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr Names kBackwardData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr Names kBackwardFilter{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  return operation == Operation::kBackwardData     ? kBackwardData
         : operation == Operation::kBackwardFilter ? kBackwardFilter
                                                   : kForward;
}

template <typename Values>
std::vector<std::int64_t> firstOf(const Values& values, int count) {
  return {values.begin(), values.begin() + count};
}

/// The largest power of two up to `most` that divides a sample's bytes.
std::int64_t alignmentOf(std::size_t sampleBytes, std::int64_t most) noexcept {
  return std::min(most, static_cast<std::int64_t>(sampleBytes & (~sampleBytes + 1)));
}

BackendDescriptor makeTensor(std::int64_t id,
                             std::int32_t type,
                             const std::vector<std::int64_t>& sizes,
                             const std::vector<std::int64_t>& strides,
                             std::int64_t alignment) {
  auto tensor = makeBackend(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, static_cast<cudnnDataType_t>(type));
  set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  set(tensor, CUDNN_ATTR_TENSOR_STRIDES, strides);
  finalize(tensor);
  return tensor;
}

/// Packed, with the channels last for NHWC.
std::vector<std::int64_t> filterStrides(const Problem& problem) {
  std::vector<std::size_t> order;  // fastest first
  const auto dimensions = static_cast<std::size_t>(problem.dimensions);
  if (problem.wFormat == CUDNN_TENSOR_NHWC) order.push_back(1);
  for (std::size_t i = dimensions - 1; i >= 2; --i) order.push_back(i);
  if (problem.wFormat != CUDNN_TENSOR_NHWC) order.push_back(1);
  order.push_back(0);
  std::vector<std::int64_t> strides(dimensions);
  std::int64_t stride = 1;
  for (const std::size_t dimension : order) {
    strides[dimension] = stride;
    stride *= problem.wSizes[dimension];
  }
  return strides;
}

BackendDescriptor makeConvolution(const Problem& problem) {
  const int spatial = problem.dimensions - 2;
  const auto pads = firstOf(problem.pads, spatial);
  auto convolution = makeBackend(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(convolution,
      CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
      static_cast<cudnnDataType_t>(problem.computeType));
  set(convolution,
      CUDNN_ATTR_CONVOLUTION_CONV_MODE,
      static_cast<cudnnConvolutionMode_t>(problem.mode));
  set(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(spatial));
  set(convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads);
  set(convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads);
  set(convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, firstOf(problem.strides, spatial));
  set(convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, firstOf(problem.dilations, spatial));
  finalize(convolution);
  return convolution;
}

void setFactors(const BackendDescriptor& operation,
                const Names& names,
                const Problem& problem,
                double beta) {
  if (problem.xType == CUDNN_DATA_DOUBLE) {
    set(operation, names.alpha, 1.0);
    set(operation, names.beta, beta);
  } else {
    set(operation, names.alpha, 1.0F);
    set(operation, names.beta, static_cast<float>(beta));
  }
}

BackendDescriptor makeOperation(const Problem& problem, double beta, std::int64_t alignment) {
  const int dimensions = problem.dimensions;
  const Names& names = namesOf(problem.operation);
  auto operation = makeBackend(names.type);
  set(operation, names.convolution, makeConvolution(problem));
  set(operation,
      names.x,
      makeTensor(kTensorX,
                 problem.xType,
                 firstOf(problem.xSizes, dimensions),
                 firstOf(problem.xStrides, dimensions),
                 alignmentOf(problem.xBatchStrideBytes(), alignment)));
  set(operation,
      names.w,
      makeTensor(kTensorW,
                 problem.wType,
                 firstOf(problem.wSizes, dimensions),
                 filterStrides(problem),
                 alignment));
  set(operation,
      names.y,
      makeTensor(kTensorY,
                 problem.yType,
                 firstOf(problem.ySizes, dimensions),
                 firstOf(problem.yStrides, dimensions),
                 alignmentOf(problem.yBatchStrideBytes(), alignment)));
  setFactors(operation, names, problem, beta);
  finalize(operation);
  return operation;
}

void setDevice(const BackendDescriptor& descriptor,
               cudnnBackendAttributeName_t handleName,
               const EngineDevice& device) {
  if (device.handle != nullptr) set(descriptor, handleName, device.handle);
}

#if CUDNN_VERSION >= 90800
void setProperties(const BackendDescriptor& descriptor,
                   cudnnBackendAttributeName_t name,
                   const EngineDevice& device) {
  if (device.properties != nullptr) set(descriptor, name, *device.properties);
}
#endif

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

EngineConfiguration valueOf(const BackendDescriptor& configuration) {
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

}  // namespace

bool hasEngines(const Problem& problem) noexcept {
  return problem.operation != Operation::kBiasActivationForward;
}

OperationGraph::OperationGraph(const EngineDevice& device,
                               const Problem& problem,
                               double beta,
                               std::int64_t alignment)
    : graph_(makeBackend(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
  setDevice(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device);
  set(graph_, CUDNN_ATTR_OPERATIONGRAPH_OPS, makeOperation(problem, beta, alignment));
  finalize(graph_);
}

std::vector<EngineConfiguration> OperationGraph::proposals(const EngineDevice& device,
                                                           cudnnBackendHeurMode_t mode) const {
  const auto heuristics = makeBackend(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
  setProperties(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
#endif
  const cudnnStatus_t status = cudnn().backendFinalize(heuristics.get());
  if (isRefusal(status)) return {};
  UCUDNN_CHECK_CUDNN(status);
  std::int64_t most = 0;  // the descriptors filled may be fewer
  UCUDNN_CHECK_CUDNN(cudnn().backendGetAttribute(heuristics.get(),
                                                 CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                 0,
                                                 &most,
                                                 nullptr));
  std::vector<EngineConfiguration> values;
  for (const BackendDescriptor& configuration :
       getUpTo(most, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
    values.push_back(valueOf(configuration));
  return values;
}

BackendDescriptor OperationGraph::configuration(const EngineDevice& device,
                                                const EngineConfiguration& value) const {
  std::vector<BackendDescriptor> choices;
  for (const auto& [type, choice] : value.knobs) {
    choices.push_back(makeBackend(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    setKnobType(choices.back(), type);
    set(choices.back(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, choice);
    finalize(choices.back());
  }
  const auto engine = makeBackend(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_);
  set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, value.engine);
#if CUDNN_VERSION >= 90800
  setProperties(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, device);
#endif
  finalize(engine);
  auto configuration = makeBackend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!choices.empty()) set(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  finalize(configuration);
  return configuration;
}

std::vector<cudnnBackendNumericalNote_t> notesOf(const BackendDescriptor& configuration) {
  const auto engine =
      getUpTo(1, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  return getUpTo<cudnnBackendNumericalNote_t>(
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, engine.at(0), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
}

std::size_t workspaceOf(const BackendDescriptor& configuration) {
  return static_cast<std::size_t>(
      get<std::int64_t>(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
}

BackendDescriptor makeExecutionPlan(const EngineDevice& device,
                                    const BackendDescriptor& configuration) {
  auto plan = makeBackend(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  setDevice(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device);
#if CUDNN_VERSION >= 90800
  setProperties(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
#endif
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  finalize(plan);
  return plan;
}

}  // namespace ucudnn

#endif
