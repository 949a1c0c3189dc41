#include "backend_fixture.hpp"

#include <set>

namespace ucudnn::simulator::test {
namespace {

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x;
  cudnnBackendAttributeName_t w;
  cudnnBackendAttributeName_t y;
  cudnnBackendAttributeName_t convolution;
  cudnnBackendAttributeName_t alpha;
  cudnnBackendAttributeName_t beta;
};

OperationNames namesOf(Operation operation) {
  switch (operation) {
    case Operation::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Operation::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

std::vector<std::int64_t> widen(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

DescriptorPointer makeConvolution(const ConvolutionCase& parameters) {
  auto convolution = std::make_unique<Descriptor>(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  EXPECT_CUDNN(convolution->set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                                CUDNN_TYPE_DATA_TYPE,
                                std::vector<cudnnDataType_t>{parameters.computeType}));
  EXPECT_CUDNN(convolution->set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                                CUDNN_TYPE_CONVOLUTION_MODE,
                                std::vector<cudnnConvolutionMode_t>{parameters.mode}));
  EXPECT_CUDNN(convolution->setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                                   static_cast<std::int64_t>(parameters.input.size())));
  EXPECT_CUDNN(convolution->setInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, widen(parameters.pad)));
  EXPECT_CUDNN(convolution->setInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, widen(parameters.pad)));
  EXPECT_CUDNN(
      convolution->setInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, widen(parameters.stride)));
  EXPECT_CUDNN(convolution->setInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, widen(parameters.dilation)));
  EXPECT_CUDNN(convolution->finalize());
  return convolution;
}

cudnnStatus_t setFactor(const Descriptor& operation,
                        cudnnBackendAttributeName_t name,
                        double factor,
                        bool asDouble) {
  if (asDouble) return operation.set(name, CUDNN_TYPE_DOUBLE, std::vector<double>{factor});
  return operation.set(name, CUDNN_TYPE_FLOAT, std::vector<float>{static_cast<float>(factor)});
}

}  // namespace

DescriptorPointer makeTensor(const Geometry& geometry, std::int64_t uid, std::int64_t alignment) {
  auto tensor = std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_CUDNN(tensor->set(CUDNN_ATTR_TENSOR_DATA_TYPE,
                           CUDNN_TYPE_DATA_TYPE,
                           std::vector<cudnnDataType_t>{geometry.type}));
  EXPECT_CUDNN(tensor->setInts(CUDNN_ATTR_TENSOR_DIMENSIONS, widen(geometry.dims)));
  EXPECT_CUDNN(tensor->setInts(CUDNN_ATTR_TENSOR_STRIDES, widen(geometry.strides)));
  EXPECT_CUDNN(tensor->setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid));
  EXPECT_CUDNN(tensor->setInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment));
  EXPECT_CUDNN(tensor->finalize());
  return tensor;
}

DescriptorPointer BackendGraph::node(const Convolution& convolution,
                                     Operation operation,
                                     const Options& options,
                                     const Descriptor* y) {
  const ConvolutionCase& parameters = convolution.parameters();
  const OperationNames names = namesOf(operation);
  const auto tensor = [&](Operation writer, std::int64_t uid) {
    return makeTensor(convolution.geometry(writer), uid, options.alignment);
  };
  auto node = std::make_unique<Descriptor>(names.type);
  EXPECT_CUDNN(node->setDescriptor(names.x, *tensor(Operation::kBackwardData, 1)));
  EXPECT_CUDNN(node->setDescriptor(names.w, *tensor(Operation::kBackwardFilter, 2)));
  EXPECT_CUDNN(node->setDescriptor(names.y, y != nullptr ? *y : *tensor(Operation::kForward, 3)));
  EXPECT_CUDNN(node->setDescriptor(names.convolution, *makeConvolution(parameters)));
  EXPECT_CUDNN(setFactor(*node, names.alpha, parameters.alpha, options.doubleFactors));
  EXPECT_CUDNN(setFactor(*node, names.beta, parameters.beta, options.doubleFactors));
  EXPECT_CUDNN(node->finalize());
  return node;
}

BackendGraph::BackendGraph(Convolution& convolution, Operation operation, Options options)
    : convolution_(convolution) {
  const auto node = this->node(convolution, operation, options);
  graph_ = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (options.withHandle) {
    EXPECT_CUDNN(graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                             CUDNN_TYPE_HANDLE,
                             std::vector<cudnnHandle_t>{convolution.handle()}));
  }
  EXPECT_CUDNN(graph_->setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, *node));
  EXPECT_CUDNN(graph_->finalize());
}

std::vector<DescriptorPointer> BackendGraph::configs(cudnnBackendHeurMode_t mode) const {
  return configsOf(*graph_, mode);
}

std::vector<DescriptorPointer> BackendGraph::configsOf(const Descriptor& graph,
                                                       cudnnBackendHeurMode_t mode) {
  const Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  EXPECT_CUDNN(heuristics.setDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  EXPECT_CUDNN(heuristics.set(
      CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector<cudnnBackendHeurMode_t>{mode}));
  EXPECT_CUDNN(heuristics.finalize());
  std::int64_t count = 0;
  EXPECT_CUDNN(cudnnBackendGetAttribute(heuristics.get(),
                                        CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        0,
                                        &count,
                                        nullptr));
  return heuristics.descriptors(
      CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

std::vector<DescriptorPointer> BackendGraph::allConfigs() const {
  std::vector<DescriptorPointer> all;
  std::set<EngineText> seen;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    for (auto& config : configs(mode)) {
      if (seen.insert(textOf(*config)).second) all.push_back(std::move(config));
    }
  }
  return all;
}

DescriptorPointer BackendGraph::engine(std::int64_t index, cudnnStatus_t expected) const {
  auto engine = std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_CUDNN(engine->setDescriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_));
  EXPECT_CUDNN(engine->setInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index));
  EXPECT_EQ(expected, engine->finalize());
  return engine;
}

DescriptorPointer BackendGraph::config(const EngineText& text, cudnnStatus_t expected) const {
  auto config = std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  EXPECT_CUDNN(config->setDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE,
                                     *engine(text.engine, CUDNN_STATUS_SUCCESS)));
  std::vector<DescriptorPointer> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const auto& [type, value] : text.knobs) {
    knobs.push_back(std::make_unique<Descriptor>(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    EXPECT_CUDNN(knobs.back()->set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                   CUDNN_TYPE_KNOB_TYPE,
                                   std::vector<int>{static_cast<int>(type)}));
    EXPECT_CUDNN(knobs.back()->setInt(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value));
    EXPECT_CUDNN(knobs.back()->finalize());
    handles.push_back(knobs.back()->get());
  }
  if (!handles.empty()) {
    EXPECT_CUDNN(
        config->set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles));
  }
  EXPECT_EQ(expected, config->finalize()) << text;
  return config;
}

DescriptorPointer BackendGraph::plan(const Descriptor& config) const {
  auto plan = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_CUDNN(plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                         CUDNN_TYPE_HANDLE,
                         std::vector<cudnnHandle_t>{convolution_.handle()}));
  EXPECT_CUDNN(plan->setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  EXPECT_CUDNN(plan->finalize());
  return plan;
}

cudnnStatus_t BackendGraph::run(const Descriptor& plan) const {
  const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(plan)));
  const cudnnStatus_t status = run(plan, workspace.get());
  cudaDeviceSynchronize();
  return status;
}

cudnnStatus_t BackendGraph::run(const Descriptor& plan, void* workspace) const {
  const Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2, 3}));
  EXPECT_CUDNN(pack.set(
      CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      CUDNN_TYPE_VOID_PTR,
      std::vector<void*>{convolution_.x().get(), convolution_.w().get(), convolution_.y().get()}));
  EXPECT_CUDNN(pack.set(
      CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{workspace}));
  EXPECT_CUDNN(pack.finalize());
  return cudnnBackendExecute(convolution_.handle(), plan.get(), pack.get());
}

}  // namespace ucudnn::simulator::test
