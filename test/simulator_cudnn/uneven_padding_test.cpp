// Graphs whose paddings differ before and behind, against sums made by hand.
#include <cuda_runtime_api.h>

#include <cstring>

#include "backend_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

// x[4,5], one row before, two columns behind; w[3,3]; a step of two along the columns.
constexpr int kHeight = 4, kWidth = 5, kFilter = 3, kStep = 2;
constexpr int kBefore[] = {1, 0}, kBehind[] = {0, 2};
constexpr int kRows = kHeight + 1 - kFilter + 1, kColumns = (kWidth + 2 - kFilter) / kStep + 1;

Geometry geometryOf(int height, int width) {
  Geometry geometry;
  geometry.type = CUDNN_DATA_FLOAT;
  geometry.dims = {1, 1, height, width};
  geometry.strides = {height * width, height * width, width, 1};
  return geometry;
}

/// Calls use(place in x, place in w, place in y) for each product.
template <typename Use>
void forEachProduct(Use use) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j)
      for (int k = 0; k < kFilter; ++k)
        for (int l = 0; l < kFilter; ++l) {
          const int row = i + k - kBefore[0], column = j * kStep + l - kBefore[1];
          if (row >= 0 && row < kHeight && column >= 0 && column < kWidth)
            use(row * kWidth + column, k * kFilter + l, i * kColumns + j);
        }
}

class UnevenPaddingTest : public testing::TestWithParam<cudnnBackendDescriptorType_t> {};

TEST_P(UnevenPaddingTest, EveryEngineComputesWhatItSays) {
  struct Names {
    cudnnBackendAttributeName_t x, w, y, convolution;
    std::size_t output;  ///< of x, w and y
  };
  const std::map<cudnnBackendDescriptorType_t, Names> names = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        2}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        0}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        1}}};
  const Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), node(GetParam());
  EXPECT_CUDNN(convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                               CUDNN_TYPE_DATA_TYPE,
                               std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}));
  EXPECT_CUDNN(convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                               CUDNN_TYPE_CONVOLUTION_MODE,
                               std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION}));
  EXPECT_CUDNN(convolution.setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {kBefore[0], kBefore[1]}));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {kBehind[0], kBehind[1]}));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, kStep}));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1}));
  EXPECT_CUDNN(convolution.finalize());
  const Geometry geometries[] = {
      geometryOf(kHeight, kWidth), geometryOf(kFilter, kFilter), geometryOf(kRows, kColumns)};
  const Names& own = names.at(GetParam());
  const std::size_t output = own.output;
  EXPECT_CUDNN(node.setDescriptor(own.x, *makeTensor(geometries[0], 1, 16)));
  EXPECT_CUDNN(node.setDescriptor(own.w, *makeTensor(geometries[1], 2, 16)));
  EXPECT_CUDNN(node.setDescriptor(own.y, *makeTensor(geometries[2], 3, 16)));
  EXPECT_CUDNN(node.setDescriptor(own.convolution, convolution));
  ASSERT_CUDNN(node.finalize());
  cudnnHandle_t handle = nullptr;
  ASSERT_CUDNN(cudnnCreate(&handle));
  const Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_CUDNN(graph.set(
      CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle}));
  EXPECT_CUDNN(graph.setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, node));
  ASSERT_CUDNN(graph.finalize());

  std::vector<float> values[3];
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<char> bytes = makeValues(geometries[i], static_cast<unsigned>(i + 1));
    values[i].resize(bytes.size() / sizeof(float));
    std::memcpy(values[i].data(), bytes.data(), bytes.size());
    buffers.push_back(std::make_unique<DeviceBuffer>(bytes.size()));
    buffers.back()->write(bytes);
  }
  std::vector<float> sums(values[output].size(), 0);
  forEachProduct([&](int x, int w, int y) {
    const int places[] = {x, w, y};
    float product = 1;
    for (std::size_t i = 0; i < 3; ++i)
      if (i != output) product *= values[i][static_cast<std::size_t>(places[i])];
    sums[static_cast<std::size_t>(places[output])] += product;
  });
  std::size_t engines = 0;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
    for (const auto& config : BackendGraph::configsOf(graph, mode)) {
      const Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
          pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      EXPECT_CUDNN(plan.set(
          CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle}));
      EXPECT_CUDNN(plan.setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config));
      ASSERT_CUDNN(plan.finalize());
      const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(plan)));
      std::vector<void*> pointers = {buffers[0]->get(), buffers[1]->get(), buffers[2]->get()};
      const DeviceBuffer result(sums.size() * sizeof(float));
      pointers[output] = result.get();
      EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2, 3}));
      EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers));
      EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                            CUDNN_TYPE_VOID_PTR,
                            std::vector<void*>{workspace.get()}));
      EXPECT_CUDNN(pack.finalize());
      EXPECT_CUDNN(cudnnBackendExecute(handle, plan.get(), pack.get())) << textOf(*config);
      const std::vector<char> bytes = result.read();
      std::vector<float> got(sums.size());
      std::memcpy(got.data(), bytes.data(), bytes.size());
      EXPECT_EQ(sums, got) << textOf(*config);
      ++engines;
    }
  EXPECT_LT(2U, engines);
  EXPECT_CUDNN(cudnnDestroy(handle));
}

INSTANTIATE_TEST_SUITE_P(
    Operations,
    UnevenPaddingTest,
    testing::Values(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));

}  // namespace
}  // namespace ucudnn::simulator::test
