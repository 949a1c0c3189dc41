// backend_contract.hpp: descriptors, up to the graph.
#include "backend_contract.hpp"

namespace ucudnn::simulator::test {
namespace {

TEST_F(BackendContractTest, WhatIsEmptyCannotBeFinalized) {
  const std::pair<cudnnBackendDescriptorType_t, cudnnStatus_t> cases[] = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM_NULL_POINTER},
      {CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED},
      {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_STATUS_SUCCESS},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_STATUS_SUCCESS},
  };
  for (const auto& [type, expected] : cases) {
    EXPECT_EQ(expected, Descriptor(type).finalize()) << type;
  }
}

TEST_F(BackendContractTest, NullDescriptors) {
  std::int64_t number = 1;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendDestroyDescriptor(nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnBackendInitialize(nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendFinalize(nullptr));
  EXPECT_EQ(
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
      cudnnBackendSetAttribute(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnBackendGetAttribute(
                nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number, &number));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnBackendExecute(nullptr, nullptr, nullptr));
}

TEST_F(BackendContractTest, SettingATensorsAttributes) {
  const Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Int64s four{1, 2, 3, 4};
  const auto raw = [&](cudnnBackendAttributeName_t name, std::int64_t count, const void* from) {
    return cudnnBackendSetAttribute(made.get(), name, CUDNN_TYPE_INT64, count, from);
  };
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
            made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_DOUBLE, four));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, made.setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, raw(CUDNN_ATTR_TENSOR_DIMENSIONS, 4, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, raw(CUDNN_ATTR_TENSOR_DIMENSIONS, 0, four.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, raw(CUDNN_ATTR_TENSOR_DIMENSIONS, -1, four.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, made.setInts(CUDNN_ATTR_TENSOR_UNIQUE_ID, {1, 2}));
}

TEST_F(BackendContractTest, FinalizingATensor) {
  tensor({});
  tensor({{4, 8, 10, 10}, {}}, CUDNN_STATUS_BAD_PARAM);
  tensor({{}, {800, 100, 10, 1}}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, 8, 10, 10}, {800, 100, 10}}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, -8, 10, 10}, {800, 100, 10, 1}}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, 8, 10, 10}, {800, -100, 10, 1}}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, 8, 10, 10}, {800, 100, 10, 1}, 0}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, 8, 10, 10}, {800, 100, 10, 1}, 3}, CUDNN_STATUS_BAD_PARAM);
  tensor({{4, 0, 10, 10}, {800, 0, 10, 1}});
  tensor({{4, 8}, {8, 1}});
  tensor({{4, 8, 10, 10}, {0, 100, 10, 1}});
  tensor({{16, 8, 4096, 4096}, {1 << 27, 1 << 24, 4096, 1}});  // 2^31 elements
}

// There is nothing of the kind in the backend API.
TEST(TensorContractTest, ALegacyTensorSpansLessThan2To31Elements) {
  if (cudnnGetVersion() / 100 != 919) GTEST_SKIP() << "what cuDNN 9.19 answers";
  constexpr int kMost = 2147483647;
  struct {
    std::vector<int> dims, strides;
    cudnnStatus_t expected;
  } const cases[] = {
      {{1, 1, 1, kMost}, {kMost, kMost, kMost, 1}, CUDNN_STATUS_SUCCESS},
      {{2, 1, 32768, 32767}, {32768 * 32767, 1, 32767, 1}, CUDNN_STATUS_SUCCESS},
      {{2, 1, 32768, 32768}, {1 << 30, 1, 32768, 1}, CUDNN_STATUS_NOT_SUPPORTED},
      // Gaps count, and what lies behind the last element does not.
      {{2, 1, 8, 8}, {kMost - 64, 64, 8, 1}, CUDNN_STATUS_SUCCESS},
      {{2, 1, 8, 8}, {kMost - 63, 64, 8, 1}, CUDNN_STATUS_NOT_SUPPORTED},
      {{1, 1, 8, 8}, {kMost, 64, 8, 1}, CUDNN_STATUS_SUCCESS},
      // Elements may lie in one place, but not all of a dimension.
      {{65536, 65536, 1, 1}, {1, 1, 1, 1}, CUDNN_STATUS_SUCCESS},
      {{2, 3, 8, 8}, {0, 64, 8, 1}, CUDNN_STATUS_BAD_PARAM},
      {{2, 3, 8, 8}, {192, 64, 8, 0}, CUDNN_STATUS_BAD_PARAM},
      {{1, 3, 8, 8}, {0, 64, 8, 1}, CUDNN_STATUS_SUCCESS},
  };
  cudnnTensorDescriptor_t made = nullptr;
  ASSERT_CUDNN(cudnnCreateTensorDescriptor(&made));
  for (const auto type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE}) {
    for (const auto& [dims, strides, expected] : cases) {
      SCOPED_TRACE(testing::PrintToString(dims) + testing::PrintToString(strides));
      EXPECT_EQ(expected, cudnnSetTensorNdDescriptor(made, type, 4, dims.data(), strides.data()));
      EXPECT_EQ(expected,
                cudnnSetTensor4dDescriptorEx(made,
                                             type,
                                             dims[0],
                                             dims[1],
                                             dims[2],
                                             dims[3],
                                             strides[0],
                                             strides[1],
                                             strides[2],
                                             strides[3]));
    }
    const int fits[] = {1, 1, 46340, 46341}, doesNot[] = {1, 1, 46341, 46341};
    for (const auto format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
      EXPECT_CUDNN(cudnnSetTensorNdDescriptorEx(made, format, type, 4, fits));
      EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
                cudnnSetTensorNdDescriptorEx(made, format, type, 4, doesNot));
    }
  }
  EXPECT_CUDNN(cudnnDestroyTensorDescriptor(made));
}

TEST_F(BackendContractTest, AFinalizedDescriptorIsFixed) {
  const auto made = tensor({});
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, made->setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, 2));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, made->finalize());
}

TEST_F(BackendContractTest, GettingATensorsAttributes) {
  const auto made = tensor({});
  Int64s got(8, -1);
  std::int64_t count = -1;
  const auto get = [&](cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type,
                       std::int64_t room,
                       void* to) {
    count = -1;
    return cudnnBackendGetAttribute(made->get(), name, type, room, &count, to);
  };
  EXPECT_CUDNN(get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, got.data()));
  EXPECT_EQ(4, count);
  EXPECT_EQ((Int64s{4, 8, 10, 10, -1, -1, -1, -1}), got);
  EXPECT_CUDNN(get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, got.data()));
  EXPECT_EQ(2, count);
  EXPECT_CUDNN(get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, nullptr));
  EXPECT_EQ(4, count);
  EXPECT_CUDNN(get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, got.data()));
  EXPECT_EQ(0, count);
  EXPECT_CUDNN(cudnnBackendGetAttribute(
      made->get(), CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, nullptr, got.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, -1, got.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
            get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_DATA_TYPE, 4, got.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            get(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, got.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            get(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 2, got.data()));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            get(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0, got.data()));
  EXPECT_CUDNN(get(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0, nullptr));
  EXPECT_EQ(1, count);
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            get(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, got.data()));
  const Descriptor open(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED,
            cudnnBackendGetAttribute(
                open.get(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &count, got.data()));
}

TEST_F(BackendContractTest, FinalizingAConvolution) {
  convolution();
  convolution({{}, {}});  // paddings are 0 unless set
  convolution({{1, 1}, {0, 1}});
  convolution({{1, 1}, {1, 1}, {}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {0, 1}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {1}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {1, 1}, {}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {1, 1}, {0, 1}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{-1, 1}, {1, 1}}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {1, 1}, {1, 1}, 0}, CUDNN_STATUS_BAD_PARAM);
  convolution({{1, 1}, {1, 1}, {1, 1}, {1, 1}, 3}, CUDNN_STATUS_BAD_PARAM);
}

TEST_F(BackendContractTest, FinalizingAnOperation) {
  operation(kX, kW, kY);
  operation(kX, {{6, 4, 3, 3}, {36, 9, 3, 1}, 16, 2}, kY);  // two groups
  operation(kX, {{6, 5, 3, 3}, {45, 9, 3, 1}, 16, 2}, kY, CUDNN_STATUS_BAD_PARAM);
  operation(kX, {{6, 8, 3}, {24, 3, 1}, 16, 2}, kY, CUDNN_STATUS_BAD_PARAM);
  operation(kX, {{6, 8, 3, 3}, {75, 9, 3, 1}, 16, 2}, kY, CUDNN_STATUS_BAD_PARAM);  // gaps
  operation(kX, kW, {{4, 6, 9, 9}, {486, 81, 9, 1}, 16, 3}, CUDNN_STATUS_BAD_PARAM);
  const auto x = tensor(kX);
  const auto w = tensor(kW);
  const auto y = tensor(kY);
  const auto plain = convolution();
  operation(nullptr, w.get(), y.get(), plain.get(), CUDNN_STATUS_BAD_PARAM);
  operation(x.get(), nullptr, y.get(), plain.get(), CUDNN_STATUS_BAD_PARAM);
  operation(x.get(), w.get(), nullptr, plain.get(), CUDNN_STATUS_BAD_PARAM);
  operation(x.get(), w.get(), y.get(), nullptr, CUDNN_STATUS_BAD_PARAM);
  const Descriptor open(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  operation(&open, w.get(), y.get(), plain.get(), CUDNN_STATUS_BAD_PARAM);
}

// Legacy descriptors can't say that.
TEST_F(BackendContractTest, PaddingsMayDifferBeforeAndBehind) {
  const TensorCase larger{{4, 6, 11, 11}, {726, 121, 11, 1}, 16, 3};
  for (const PlainConvolution& values :
       {PlainConvolution{{1, 1}, {2, 2}}, {{2, 2}, {1, 1}}, {{2, 1}, {1, 2}}}) {
    const auto uneven = convolution(values);
    operation(
        tensor(kX).get(), tensor(kW).get(), tensor(kY).get(), uneven.get(), CUDNN_STATUS_BAD_PARAM);
    graph_ =
        graphOf(*operation(tensor(kX).get(), tensor(kW).get(), tensor(larger).get(), uneven.get()));
    for (const std::int64_t index : {0, 1, 28, 38, 67}) engine(index);
  }
}

TEST_F(BackendContractTest, FactorsAreFloatsOrDoubles) {
  const Descriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  constexpr auto kAlpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
  constexpr auto kBeta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA;
  EXPECT_CUDNN(made.set(kAlpha, CUDNN_TYPE_FLOAT, std::vector<float>{2}));
  EXPECT_CUDNN(made.set(kBeta, CUDNN_TYPE_DOUBLE, std::vector<double>{3}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, made.setInt(kAlpha, 1));
  const auto x = tensor(kX);
  EXPECT_CUDNN(made.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, *x));
  EXPECT_CUDNN(made.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, *tensor(kW)));
  EXPECT_CUDNN(made.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, *tensor(kY)));
  EXPECT_CUDNN(
      made.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, *convolution()));
  EXPECT_CUDNN(made.finalize());
  EXPECT_EQ(2, made.one<float>(kAlpha, CUDNN_TYPE_FLOAT));
  EXPECT_EQ(3, made.one<double>(kBeta, CUDNN_TYPE_DOUBLE));
  double wrong = 0;
  std::int64_t count = 0;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnBackendGetAttribute(made.get(), kAlpha, CUDNN_TYPE_DOUBLE, 1, &count, &wrong));
}

TEST_F(BackendContractTest, Graphs) {
  const Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const Descriptor open(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            graph.setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, open));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
            graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                      CUDNN_TYPE_HANDLE,
                      std::vector<cudnnHandle_t>{nullptr}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, graph.finalize());
  EXPECT_EQ(
      81,
      graph_->one<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64));
  std::int64_t count = 0;
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED,
            cudnnBackendGetAttribute(graph_->get(),
                                     CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     0,
                                     &count,
                                     nullptr));
}

}  // namespace
}  // namespace ucudnn::simulator::test
