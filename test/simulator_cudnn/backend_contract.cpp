#include "backend_contract.hpp"

#include <string>

namespace ucudnn::simulator::test {
namespace {

constexpr const char* kDevice =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
    R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
    R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
    R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"totalGlobalMem":150109880320,"smClockRateKHz":1980000,)"
    R"("memClockRateKHz":3201000,"l2CacheSize":62914560,"cudaDeviceId":0,"deviceVer":900,)"
    R"("driverVer":13000,"deviceName":"NVIDIA H200"})";

}  // namespace

DescriptorPointer tensor(const TensorCase& values, cudnnStatus_t expected) {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (!values.dims.empty()) {
    EXPECT_CUDNN(made->setInts(CUDNN_ATTR_TENSOR_DIMENSIONS, values.dims));
  }
  if (!values.strides.empty()) {
    EXPECT_CUDNN(made->setInts(CUDNN_ATTR_TENSOR_STRIDES, values.strides));
  }
  if (values.alignment != 0) {
    EXPECT_CUDNN(made->setInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, values.alignment));
  }
  EXPECT_CUDNN(made->setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, values.uid));
  EXPECT_CUDNN(made->set(CUDNN_ATTR_TENSOR_DATA_TYPE,
                         CUDNN_TYPE_DATA_TYPE,
                         std::vector<cudnnDataType_t>{values.type}));
  EXPECT_EQ(expected, made->finalize());
  return made;
}

DescriptorPointer convolution(const PlainConvolution& values, cudnnStatus_t expected) {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto setInts = [&](cudnnBackendAttributeName_t name, const Int64s& numbers) {
    if (!numbers.empty()) {
      EXPECT_CUDNN(made->setInts(name, numbers));
    }
  };
  setInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, values.pre);
  setInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, values.post);
  setInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, values.strides);
  setInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, values.dilations);
  if (values.spatialRank != 0) {
    EXPECT_CUDNN(made->setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, values.spatialRank));
  }
  EXPECT_CUDNN(made->set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                         CUDNN_TYPE_DATA_TYPE,
                         std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}));
  EXPECT_CUDNN(made->set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                         CUDNN_TYPE_CONVOLUTION_MODE,
                         std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION}));
  EXPECT_EQ(expected, made->finalize());
  return made;
}

DescriptorPointer operation(const Descriptor* x,
                            const Descriptor* w,
                            const Descriptor* y,
                            const Descriptor* convolution,
                            cudnnStatus_t expected) {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const auto set = [&](cudnnBackendAttributeName_t name, const Descriptor* part) {
    if (part != nullptr) {
      EXPECT_CUDNN(made->setDescriptor(name, *part));
    }
  };
  set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
  set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
  set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
  EXPECT_EQ(expected, made->finalize());
  return made;
}

DescriptorPointer operation(const TensorCase& x,
                            const TensorCase& w,
                            const TensorCase& y,
                            cudnnStatus_t expected) {
  return operation(
      tensor(x).get(), tensor(w).get(), tensor(y).get(), convolution().get(), expected);
}

DescriptorPointer graphOf(const Descriptor& operation) {
  auto graph = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_CUDNN(graph->setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation));
  EXPECT_CUDNN(graph->finalize());
  return graph;
}

void BackendContractTest::SetUp() {
  if (cudnnGetVersion() / 100 != 919) GTEST_SKIP() << "what cuDNN 9.19 answers";
  const std::string text = kDevice;
  ASSERT_CUDNN(device_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                           CUDNN_TYPE_CHAR,
                           std::vector<char>(text.begin(), text.end())));
  ASSERT_CUDNN(device_.finalize());
  graph_ = graphOf(*operation(kX, kW, kY));
}

DescriptorPointer BackendContractTest::heuristics(cudnnBackendHeurMode_t mode) const {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_));
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_));
  EXPECT_CUDNN(made->set(
      CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector<cudnnBackendHeurMode_t>{mode}));
  EXPECT_CUDNN(made->finalize());
  return made;
}

DescriptorPointer BackendContractTest::engine(std::int64_t index, cudnnStatus_t expected) const {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_));
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_ENGINE_DEVICEPROP, device_));
  EXPECT_CUDNN(made->setInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index));
  EXPECT_EQ(expected, made->finalize()) << index;
  return made;
}

DescriptorPointer BackendContractTest::plan(const Descriptor& config) const {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_));
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  EXPECT_CUDNN(made->finalize());
  return made;
}

DescriptorPointer BackendContractTest::config(std::int64_t index,
                                              const std::map<std::int64_t, std::int64_t>& knobs,
                                              cudnnStatus_t expected) const {
  auto made = std::make_unique<Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  EXPECT_CUDNN(made->setDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE, *engine(index)));
  std::vector<DescriptorPointer> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const auto& [type, value] : knobs) {
    choices.push_back(std::make_unique<Descriptor>(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    EXPECT_CUDNN(choices.back()->set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     CUDNN_TYPE_KNOB_TYPE,
                                     std::vector<int>{static_cast<int>(type)}));
    EXPECT_CUDNN(choices.back()->setInt(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value));
    EXPECT_CUDNN(choices.back()->finalize());
    handles.push_back(choices.back()->get());
  }
  if (!handles.empty()) {
    EXPECT_CUDNN(
        made->set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles));
  }
  EXPECT_EQ(expected, made->finalize());
  return made;
}

}  // namespace ucudnn::simulator::test
