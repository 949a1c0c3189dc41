// The attributes that cudnn-frontend always sets on each descriptor make no graph unknown: 1.9 to
// 1.23; PyTorch's fused convolutions use the older classes.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <map>
#include <memory>

#include "graph/client_graph.hpp"
#include "problem/activation.hpp"

// The handle and what RELU makes of NaNs are marked deprecated, and set by every client there is.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The descriptors of a client, none of which cuDNN knows.
class Client : public Descriptions {
 public:
  Description* find(cudnnBackendDescriptor_t descriptor) const override {
    const auto place = made_.find(descriptor);
    return place != made_.end() ? place->second.get() : nullptr;
  }
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    auto* const handle = reinterpret_cast<cudnnBackendDescriptor_t>(made_.size() + 1);
    made_[handle] = describe(type);
    return handle;
  }
  template <typename Value>
  void set(cudnnBackendDescriptor_t descriptor,
           cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           const Value& value) {
    find(descriptor)->set(name, {type, 1, &value}, *this);
  }
  void set(cudnnBackendDescriptor_t descriptor,
           cudnnBackendAttributeName_t name,
           const Numbers& values) {
    find(descriptor)
        ->set(name,
              {CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data()},
              *this);
  }
  void set(cudnnBackendDescriptor_t descriptor,
           cudnnBackendAttributeName_t name,
           cudnnBackendDescriptor_t value) {
    set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
  }
  template <typename Kind>
  Kind* as(cudnnBackendDescriptor_t descriptor) const {
    return asKind<Kind>(find(descriptor));
  }

 private:
  std::map<cudnnBackendDescriptor_t, std::unique_ptr<Description>> made_;
};

/// y = max(conv(x, w) + bias, 0), as a program that uses the frontend has it described.
class Frontend : public Client {
 public:
  /// Further attributes that are set on RELU.
  double upperClip = double{FLT_MAX};
  double lowerClip = 0, slope = 0;
  cudnnNanPropagation_t nans = CUDNN_PROPAGATE_NAN;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  bool asFloats = false;
  std::int64_t alignment = 16;

  cudnnBackendDescriptor_t tensor(std::int64_t id, const Numbers& sizes, const Numbers& strides) {
    auto* const made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const bool isVirtual = id > 100;
    set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, computeType);
    set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    set(made, CUDNN_ATTR_TENSOR_STRIDES, strides);
    set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
    set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual);
    set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false);
    set(made,
        CUDNN_ATTR_TENSOR_REORDERING_MODE,
        CUDNN_TYPE_TENSOR_REORDERING_MODE,
        CUDNN_TENSOR_REORDERING_NONE);
    return made;
  }
  cudnnBackendDescriptor_t y(std::int64_t id) { return tensor(id, {4, 6, 8, 8}, {384, 64, 8, 1}); }

  cudnnBackendDescriptor_t convolution() {
    auto* const made = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computeType);
    set(made,
        CUDNN_ATTR_CONVOLUTION_CONV_MODE,
        CUDNN_TYPE_CONVOLUTION_MODE,
        CUDNN_CROSS_CORRELATION);
    set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
    set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {2, 2});
    set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {2, 2});
    set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1});
    set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1});
    auto* const operation = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, made);
    set(operation,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        tensor(11, {4, 3, 8, 8}, {192, 64, 8, 1}));
    set(operation,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        tensor(12, {6, 3, 5, 5}, {75, 25, 5, 1}));
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y(201));
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0F);
    set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0F);
    return operation;
  }

  void setClip(cudnnBackendDescriptor_t pointwise, cudnnBackendAttributeName_t name, double clip) {
    if (asFloats)
      set(pointwise, name, CUDNN_TYPE_FLOAT, static_cast<float>(clip));
    else
      set(pointwise, name, CUDNN_TYPE_DOUBLE, clip);
  }

  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode,
                                     cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t b,
                                     cudnnBackendDescriptor_t output) {
    auto* const made = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(made, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set(made, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computeType);
    if (b == nullptr) {
      set(made, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, nans);
      setClip(made, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, lowerClip);
      setClip(made, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, upperClip);
      setClip(made, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, slope);
    }
    auto* const operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, made);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, output);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1.0F);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1.0F);
    return operation;
  }

  cudnnBackendDescriptor_t graph() {
    auto* const bias = tensor(13, {1, 6, 1, 1}, {6, 1, 1, 1});
    const cudnnBackendDescriptor_t operations[] = {
        convolution(),
        pointwise(CUDNN_POINTWISE_ADD, y(201), bias, y(202)),
        pointwise(CUDNN_POINTWISE_RELU_FWD, y(202), nullptr, y(33))};
    auto* const made = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    find(made)->set(
        CUDNN_ATTR_OPERATIONGRAPH_OPS, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 3, operations}, *this);
    set(made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnnHandle_t{});
    set(made, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, CUDNN_TYPE_BOOLEAN, false);
    find(made)->finalized();
    return made;
  }

  std::shared_ptr<const ClientGraph> readGraph() { return as<GraphDescription>(graph())->graph(); }
};

TEST(Frontend, ItsReluIsAPlainOne) {
  for (const bool asFloats : {false, true})
    for (const auto nans : {CUDNN_PROPAGATE_NAN, CUDNN_NOT_PROPAGATE_NAN}) {
      Frontend frontend;
      frontend.asFloats = asFloats;
      frontend.nans = nans;
      const auto graph = frontend.readGraph();
      ASSERT_TRUE(graph->isUnderstood) << asFloats << nans;
      EXPECT_TRUE(isRelu(graph->problem));
      EXPECT_EQ(nans, nansOf(graph->problem));
      EXPECT_EQ(CUDNN_ACTIVATION_RELU, modeOf(graph->problem));
      EXPECT_TRUE(graph->suitsEngines);
    }
  // The older class doesn't know the type of what follows.
  for (const auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE}) {
    Frontend frontend;
    frontend.computeType = type;
    frontend.upperClip = DBL_MAX;
    EXPECT_TRUE(frontend.readGraph()->isUnderstood) << type;
  }
}

TEST(Frontend, OnlySomeClipsAndSlopesAreUnderstood) {
  const auto isUnderstood = [](auto change) {
    Frontend frontend;
    change(frontend);
    return frontend.readGraph()->isUnderstood;
  };
  ASSERT_TRUE(isUnderstood([](Frontend&) {}));
  EXPECT_TRUE(isUnderstood([](Frontend& f) { f.upperClip = 6; })) << "RELU6";
  EXPECT_FALSE(isUnderstood([](Frontend& f) { f.lowerClip = -1; }));
  EXPECT_TRUE(isUnderstood([](Frontend& f) { f.slope = 0.01; })) << "leaky";
  EXPECT_FALSE(isUnderstood([](Frontend& f) { f.slope = 0.01, f.upperClip = 6; }));
  EXPECT_FALSE(isUnderstood([](Frontend& f) { f.slope = std::nan(""); }));
  for (const double clip : {std::nan(""), -1.0, 0.0})
    EXPECT_FALSE(isUnderstood([&](Frontend& f) { f.upperClip = clip; })) << clip;
  EXPECT_FALSE(isUnderstood([](Frontend& f) { f.slope = 0.01, f.nans = CUDNN_NOT_PROPAGATE_NAN; }));
  EXPECT_FALSE(isUnderstood([](Frontend& f) { f.slope = 0.1, f.computeType = CUDNN_DATA_DOUBLE; }))
      << "no float is that double";
}

// Legacy algorithms can't stand in for such an engine, so that its calls must suit others.
TEST(Frontend, SuitsEnginesByAlignments) {
  Frontend frontend;
  frontend.alignment = 4;
  EXPECT_FALSE(frontend.readGraph()->suitsEngines);
}

// The device, and kernels that have been compiled before, change no value.
TEST(Frontend, PlansWithDevicesAndKernelCachesAreUnderstood) {
  Frontend frontend;
  auto* const other = frontend.make(CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR);
  auto* const engine = frontend.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  frontend.set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, frontend.graph());
  frontend.set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::int64_t{1});
  frontend.set(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, other);
  auto* const configuration = frontend.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  frontend.set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  auto* const plan = frontend.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  frontend.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  frontend.set(plan, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE, other);
  EXPECT_TRUE(frontend.as<PlanDescription>(plan)->isUnderstood());
  EXPECT_TRUE(frontend.as<PlanDescription>(plan)->graph()->isUnderstood);
  // Fewer of the device's processors are another engine.
  frontend.set(engine, CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32, std::int32_t{16});
  EXPECT_FALSE(frontend.as<ChoiceDescription>(engine)->isUnderstood());
}

}  // namespace
}  // namespace ucudnn
