// Graphs of a forward convolution with an addition, a bias and an activation behind it.
#include <optional>

#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

constexpr std::int64_t kX = 1;
constexpr std::int64_t kW = 2;
constexpr std::int64_t kY = 3;
constexpr std::int64_t kZ = 4;
constexpr std::int64_t kBias = 5;
constexpr std::int64_t kVirtual = 10;  // and on

struct FusedCase {
  std::string name;
  double zFactor = 0;
  bool bias = true;
  bool relu = true;
  Layout layout = Layout::kNchw;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::optional<float> clip = {};
};

class FusedGraphTest : public testing::TestWithParam<FusedCase> {
 protected:
  FusedGraphTest() {
    ConvolutionCase parameters;
    parameters.layout = GetParam().layout;
    parameters.type = GetParam().type;
    parameters.alpha = 0.5;
    convolution_ = std::make_unique<Convolution>(parameters);
    const Geometry& y = convolution_->geometry(Operation::kForward);
    z_ = std::make_unique<DeviceBuffer>(y.bytes());
    z_->write(makeValues(y, 7));
    std::vector<int> dims(y.dims.size(), 1);
    dims[1] = y.dims[1];
    biasGeometry_ = {y.type, dims, dims};
    biasGeometry_.strides.assign(dims.size(), 1);
    biasGeometry_.strides[0] = y.dims[1];
    bias_ = std::make_unique<DeviceBuffer>(biasGeometry_.bytes());
    bias_->write(makeValues(biasGeometry_, 8));
  }

  DescriptorPointer graph();
  DescriptorPointer operation(cudnnPointwiseMode_t mode,
                              const Descriptor& x,
                              const Descriptor* b,
                              const Descriptor& y,
                              double alpha2 = 1);
  std::vector<char> legacyResult();
  cudnnStatus_t run(const Descriptor& config, void* z);

  std::unique_ptr<Convolution> convolution_;
  std::unique_ptr<DeviceBuffer> z_;
  std::unique_ptr<DeviceBuffer> bias_;
  Geometry biasGeometry_{CUDNN_DATA_FLOAT, {}, {}};
};

DescriptorPointer makeVirtual(Geometry geometry, std::int64_t uid) {
  geometry.type = CUDNN_DATA_FLOAT;  // whatever the tensors in memory hold
  auto tensor = std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const bool isVirtual = true;
  EXPECT_CUDNN(
      tensor->setInts(CUDNN_ATTR_TENSOR_DIMENSIONS, {geometry.dims.begin(), geometry.dims.end()}));
  EXPECT_CUDNN(tensor->setInts(CUDNN_ATTR_TENSOR_STRIDES,
                               {geometry.strides.begin(), geometry.strides.end()}));
  EXPECT_CUDNN(tensor->setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid));
  EXPECT_CUDNN(tensor->setInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16));
  EXPECT_CUDNN(cudnnBackendSetAttribute(
      tensor->get(), CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &isVirtual));
  EXPECT_CUDNN(tensor->finalize());
  return tensor;
}

DescriptorPointer FusedGraphTest::operation(cudnnPointwiseMode_t mode,
                                            const Descriptor& x,
                                            const Descriptor* b,
                                            const Descriptor& y,
                                            double alpha2) {
  const Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  EXPECT_CUDNN(pointwise.set(CUDNN_ATTR_POINTWISE_MODE,
                             CUDNN_TYPE_POINTWISE_MODE,
                             std::vector<cudnnPointwiseMode_t>{mode}));
  EXPECT_CUDNN(pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC,
                             CUDNN_TYPE_DATA_TYPE,
                             std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}));
  if (mode == CUDNN_POINTWISE_RELU_FWD && GetParam().clip.has_value()) {
    EXPECT_CUDNN(pointwise.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
                               CUDNN_TYPE_FLOAT,
                               std::vector<float>{*GetParam().clip}));
  }
  EXPECT_CUDNN(pointwise.finalize());
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise));
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x));
  if (b != nullptr) {
    EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b));
    EXPECT_CUDNN(made->set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2,
                           CUDNN_TYPE_FLOAT,
                           std::vector<float>{static_cast<float>(alpha2)}));
  }
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  EXPECT_CUDNN(made->finalize());
  return made;
}

DescriptorPointer FusedGraphTest::graph() {
  const FusedCase& parameters = GetParam();
  const Geometry& y = convolution_->geometry(Operation::kForward);
  std::vector<DescriptorPointer> tensors;
  std::vector<DescriptorPointer> operations;
  const int followers = (parameters.zFactor != 0) + parameters.bias + parameters.relu;
  tensors.push_back(makeVirtual(y, kVirtual));
  operations.push_back(
      BackendGraph::node(*convolution_, Operation::kForward, {}, tensors.back().get()));
  const auto follow = [&](cudnnPointwiseMode_t mode, const Descriptor* b, double alpha2) {
    const Descriptor& x = *tensors.back();
    const auto position = static_cast<int>(operations.size());
    tensors.push_back(position == followers ? makeTensor(y, kY, 16)
                                            : makeVirtual(y, kVirtual + position));
    operations.push_back(operation(mode, x, b, *tensors.back(), alpha2));
  };
  if (parameters.zFactor != 0) {
    follow(CUDNN_POINTWISE_ADD, makeTensor(y, kZ, 16).get(), parameters.zFactor);
  }
  if (parameters.bias) follow(CUDNN_POINTWISE_ADD, makeTensor(biasGeometry_, kBias, 4).get(), 1);
  if (parameters.relu) follow(CUDNN_POINTWISE_RELU_FWD, nullptr, 1);
  auto graph = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const auto& one : operations) handles.push_back(one->get());
  EXPECT_CUDNN(graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                          CUDNN_TYPE_HANDLE,
                          std::vector<cudnnHandle_t>{convolution_->handle()}));
  EXPECT_CUDNN(graph->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles));
  EXPECT_CUDNN(graph->finalize());
  return graph;
}

std::vector<char> FusedGraphTest::legacyResult() {
  cudnnTensorDescriptor_t biasDesc = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
  EXPECT_CUDNN(cudnnCreateTensorDescriptor(&biasDesc));
  EXPECT_CUDNN(cudnnCreateActivationDescriptor(&activation));
  EXPECT_CUDNN(cudnnSetTensor4dDescriptor(
      biasDesc, CUDNN_TENSOR_NCHW, biasGeometry_.type, 1, biasGeometry_.dims[1], 1, 1));
  EXPECT_CUDNN(cudnnSetActivationDescriptor(
      activation,
      GetParam().relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
      CUDNN_NOT_PROPAGATE_NAN,
      0));
  constexpr auto kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t bytes = 0;
  EXPECT_CUDNN(convolution_->workspaceSize(Operation::kForward, kAlgorithm, &bytes));
  const DeviceBuffer workspace(bytes);
  const auto alpha1 = static_cast<float>(convolution_->parameters().alpha);
  const auto alpha2 = static_cast<float>(GetParam().zFactor);
  EXPECT_CUDNN(cudnnConvolutionBiasActivationForward(convolution_->handle(),
                                                     &alpha1,
                                                     convolution_->xDesc(),
                                                     convolution_->x().get(),
                                                     convolution_->wDesc(),
                                                     convolution_->w().get(),
                                                     convolution_->convDesc(),
                                                     kAlgorithm,
                                                     workspace.get(),
                                                     bytes,
                                                     &alpha2,
                                                     convolution_->yDesc(),
                                                     z_->get(),
                                                     biasDesc,
                                                     bias_->get(),
                                                     activation,
                                                     convolution_->yDesc(),
                                                     convolution_->y().get()));
  cudaDeviceSynchronize();
  cudnnDestroyActivationDescriptor(activation);
  cudnnDestroyTensorDescriptor(biasDesc);
  std::vector<char> result = convolution_->y().read();
  if (!GetParam().clip.has_value()) return result;
  for (std::size_t i = 0; i < result.size(); i += sizeof(float)) {
    fromDouble(
        CUDNN_DATA_FLOAT,
        std::min(toDouble(CUDNN_DATA_FLOAT, &result[i]), static_cast<double>(*GetParam().clip)),
        &result[i]);
  }
  return result;
}

cudnnStatus_t FusedGraphTest::run(const Descriptor& config, void* z) {
  const Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_CUDNN(plan.setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  EXPECT_CUDNN(plan.finalize());
  const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(plan)));
  const Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {kX, kW, kY, kZ, kBias}));
  EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                        CUDNN_TYPE_VOID_PTR,
                        std::vector<void*>{convolution_->x().get(),
                                           convolution_->w().get(),
                                           convolution_->y().get(),
                                           z,
                                           bias_->get()}));
  EXPECT_CUDNN(pack.set(
      CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{workspace.get()}));
  EXPECT_CUDNN(pack.finalize());
  const cudnnStatus_t status = cudnnBackendExecute(convolution_->handle(), plan.get(), pack.get());
  cudaDeviceSynchronize();
  return status;
}

TEST_P(FusedGraphTest, EveryConfigurationGivesWhatTheLegacyCallGives) {
  const std::vector<char> expected = legacyResult();
  const auto graph = this->graph();
  const auto configs = BackendGraph::configsOf(*graph, CUDNN_HEUR_MODE_B);
  ASSERT_GE(configs.size(), 2U);
  for (const auto& config : configs) {
    SCOPED_TRACE(testing::Message() << textOf(*config));
    convolution_->y().write(std::vector<char>(expected.size(), 3));
    EXPECT_CUDNN(run(*config, z_->get()));
    EXPECT_EQ(expected, convolution_->y().read());
  }
}

// cuDNN's legacy call works in place, its graphs of several operations do not.
TEST_P(FusedGraphTest, ZInPlaceIsAViolation) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto graph = this->graph();
  const auto configs = BackendGraph::configsOf(*graph, CUDNN_HEUR_MODE_B);
  ASSERT_FALSE(configs.empty());
  void* const y = convolution_->y().get();
  if (GetParam().zFactor == 0) {
    EXPECT_CUDNN(run(*configs.front(), y)) << "the graph has no z";
  } else {
    EXPECT_DEATH(run(*configs.front(), y), "overwrites the z");
  }
}

const FusedCase kCases[] = {
    {"BiasRelu"},
    {"BiasOnly", 0, true, false},
    {"ZBiasRelu", 0.5},
    {"ZBias", -1, true, false},
    {"Nhwc", 0.5, true, true, Layout::kNhwc},
    {"Half", 2, true, true, Layout::kNhwc, CUDNN_DATA_HALF},
    {"Clipped", 0.5, true, true, Layout::kNchw, CUDNN_DATA_FLOAT, 1.5F},
};

INSTANTIATE_TEST_SUITE_P(Cases, FusedGraphTest, testing::ValuesIn(kCases), [](const auto& test) {
  return test.param.name;
});

class UnsupportedGraphTest : public FusedGraphTest {};

// As cuDNN 9.19: no engine that is not compiled computes it.
TEST_P(UnsupportedGraphTest, HasNoEngines) {
  const auto graph = this->graph();
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    EXPECT_TRUE(BackendGraph::configsOf(*graph, mode).empty());
  }
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_CUDNN(engine.setDescriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph));
  EXPECT_CUDNN(engine.setInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, engine.finalize());
}

const FusedCase kUnsupported[] = {{"ReluOnly", 0, false}, {"ZOnly", 1, false, false}};

INSTANTIATE_TEST_SUITE_P(Cases,
                         UnsupportedGraphTest,
                         testing::ValuesIn(kUnsupported),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn::simulator::test
