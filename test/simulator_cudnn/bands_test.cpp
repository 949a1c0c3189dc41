// Bands of one sample: parts along a spatial dimension that keep the whole's strides and have their
// own paddings. The engines' treatment of them was seen on an H100 (2026-11-26).
#include <cuda_runtime_api.h>

#include <algorithm>

#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

using Sizes = std::vector<int>;

/// A range of a tensor, channels first, along a dimension; `first` is its place in the whole.
struct Band {
  Geometry geometry;
  std::size_t first = 0;
};

Geometry packed(const Sizes& dims) {
  Geometry geometry{CUDNN_DATA_FLOAT, dims, Sizes(dims.size(), 1)};
  for (std::size_t d = dims.size() - 1; d > 0; --d)
    geometry.strides[d - 1] = geometry.strides[d] * dims[d];
  return geometry;
}

Band bandOf(const Geometry& whole, std::size_t dimension, int begin, int count) {
  Band band{whole,
            static_cast<std::size_t>(begin) * static_cast<std::size_t>(whole.strides[dimension]) *
                bytesOf(whole.type)};
  band.geometry.dims[dimension] = count;
  return band;
}

std::vector<std::int64_t> widened(const Sizes& values) {
  return {values.begin(), values.end()};
}

/// A forward convolution's graph, of steps of one.
DescriptorPointer forwardGraph(cudnnHandle_t handle,
                               const Geometry& x,
                               const Geometry& w,
                               const Geometry& y,
                               const Sizes& before,
                               const Sizes& behind) {
  const Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
      node(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const Sizes ones(before.size(), 1);
  EXPECT_CUDNN(convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                               CUDNN_TYPE_DATA_TYPE,
                               std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}));
  EXPECT_CUDNN(convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                               CUDNN_TYPE_CONVOLUTION_MODE,
                               std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION}));
  EXPECT_CUDNN(convolution.setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                                  static_cast<std::int64_t>(before.size())));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, widened(before)));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, widened(behind)));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, widened(ones)));
  EXPECT_CUDNN(convolution.setInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, widened(ones)));
  EXPECT_CUDNN(convolution.finalize());
  EXPECT_CUDNN(
      node.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, *makeTensor(x, 1, 4)));
  EXPECT_CUDNN(
      node.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, *makeTensor(w, 2, 4)));
  EXPECT_CUDNN(
      node.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, *makeTensor(y, 3, 4)));
  EXPECT_CUDNN(node.setDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution));
  EXPECT_CUDNN(node.finalize());
  auto graph = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_CUDNN(graph->set(
      CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle}));
  EXPECT_CUDNN(graph->setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, node));
  EXPECT_CUDNN(graph->finalize());
  return graph;
}

class BandsTest : public testing::Test {
 protected:
  BandsTest() { EXPECT_CUDNN(cudnnCreate(&handle_)); }
  ~BandsTest() override {
    ucudnnSimulatorSetArithmetic(0);
    EXPECT_CUDNN(cudnnDestroy(handle_));
  }

  void execute(const Descriptor& config, void* x, void* w, void* y) {
    const Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
        pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    EXPECT_CUDNN(plan.set(
        CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle_}));
    EXPECT_CUDNN(plan.setDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
    ASSERT_CUDNN(plan.finalize());
    const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(plan)));
    EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2, 3}));
    EXPECT_CUDNN(pack.set(
        CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::vector<void*>{x, w, y}));
    EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                          CUDNN_TYPE_VOID_PTR,
                          std::vector<void*>{workspace.get()}));
    EXPECT_CUDNN(pack.finalize());
    EXPECT_CUDNN(cudnnBackendExecute(handle_, plan.get(), pack.get())) << textOf(config);
  }

  cudnnHandle_t handle_ = nullptr;
};

// y in bands of two along each spatial dimension in turn, each by another of the engines that take
// it: the first and last have a padding on one side alone.
TEST_F(BandsTest, BandsInPlaceMakeTheWhole) {
  constexpr int kBand = 2, kBands = 3;
  for (const std::size_t spatial : {2U, 3U})
    for (std::size_t dimension = 2; dimension < 2 + spatial; ++dimension) {
      SCOPED_TRACE(testing::Message() << spatial << "-D along " << dimension);
      Sizes image(spatial, 5), filter(spatial, 3), pad(spatial, 1);
      image[dimension - 2] = kBand * kBands;
      const auto of = [](int n, int c, const Sizes& sizes) {
        Sizes dims = {n, c};
        dims.insert(dims.end(), sizes.begin(), sizes.end());
        return packed(dims);
      };
      const Geometry x = of(1, 3, image), w = of(4, 3, filter), y = of(1, 4, image);
      const auto upload = [](const Geometry& geometry, unsigned seed) {
        auto buffer = std::make_unique<DeviceBuffer>(geometry.bytes());
        buffer->write(makeValues(geometry, seed));
        return buffer;
      };
      const auto xBuffer = upload(x, 1), wBuffer = upload(w, 2);
      const DeviceBuffer whole(y.bytes()), bands(y.bytes());
      const auto wholeGraph = forwardGraph(handle_, x, w, y, pad, pad);
      execute(*BackendGraph::configsOf(*wholeGraph, CUDNN_HEUR_MODE_A).front(),
              xBuffer->get(),
              wBuffer->get(),
              whole.get());
      for (int i = 0; i < kBands; ++i) {
        Sizes before = pad, behind = pad;
        const bool isFirst = i == 0, isLast = i + 1 == kBands;
        before[dimension - 2] = isFirst ? 1 : 0;
        behind[dimension - 2] = isLast ? 1 : 0;
        const int begin = isFirst ? 0 : i * kBand - 1;
        const int end = isLast ? kBand * kBands : (i + 1) * kBand + 1;
        const Band xBand = bandOf(x, dimension, begin, end - begin);
        const Band yBand = bandOf(y, dimension, i * kBand, kBand);
        const auto graph = forwardGraph(handle_, xBand.geometry, w, yBand.geometry, before, behind);
        const auto configs = BackendGraph::configsOf(*graph, CUDNN_HEUR_MODE_A);
        ASSERT_FALSE(configs.empty());
        execute(*configs[static_cast<std::size_t>(i) % configs.size()],
                static_cast<char*>(xBuffer->get()) + xBand.first,
                wBuffer->get(),
                static_cast<char*>(bands.get()) + yBand.first);
      }
      EXPECT_EQ(whole.read(), bands.read());
    }
}

TEST_F(BandsTest, CopiesToChannelsLastTakeTimeInHalf) {
  constexpr double kBytesPerMs = 4.8e9 * 0.8;  // an H200's, and what a copy reaches of it
  ucudnnSimulatorSetArithmetic(2);
  ConvolutionCase large;
  large.batch = 1;
  large.channels = large.filters = 32;
  large.input = {512, 512};
  large.filter = {1, 1};
  large.pad = {0, 0};
  large.type = CUDNN_DATA_HALF;
  const double copiedMs = 3 * 64.0 * 512 * 512 * 2 / kBytesPerMs;
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    large.layout = layout;
    Convolution convolution(large);
    const BackendGraph graph(convolution, Operation::kForward);
    std::size_t engines = 0;
    for (const auto& config : graph.configs(CUDNN_HEUR_MODE_A)) {
      const EngineText text = textOf(*config);
      // Engine 38 copies its output by itself.
      if (!hasNote(*engineOf(*config), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || text.engine == 38)
        continue;
      const auto plan = graph.plan(*config);
      const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(*plan)));
      for (const DeviceBuffer* buffer : {&convolution.x(), &convolution.w(), &convolution.y()}) {
        EXPECT_NE(nullptr, buffer->get());
      }
      const double before = ucudnnSimulatorClock(nullptr);
      EXPECT_CUDNN(graph.run(*plan, workspace.get()));
      const double timeMs = ucudnnSimulatorClock(nullptr) - before;
      EXPECT_EQ(layout == Layout::kNchw, timeMs > copiedMs) << text << " " << timeMs;
      ++engines;
    }
    EXPECT_LT(1U, engines);
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
