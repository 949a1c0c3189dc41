// Graphs into which cuDNN puts a plan's kernels itself: new pointers without a new capture.
#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

constexpr std::int64_t kCompiled = 71;  // of the forward pass; it alone has the behavior note
constexpr std::int64_t kPlain = 28;

class NativeGraphTest : public testing::Test {
 protected:
  NativeGraphTest() { EXPECT_EQ(cudaSuccess, cudaStreamCreate(&stream_)); }
  ~NativeGraphTest() override { cudaStreamDestroy(stream_); }

  DescriptorPointer planOf(std::int64_t engine) const {
    return graph_.plan(*graph_.config({engine, {}}, CUDNN_STATUS_SUCCESS));
  }

  DescriptorPointer packOf(void* y) const {
    auto pack = std::make_unique<Descriptor>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    EXPECT_CUDNN(pack->setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2, 3}));
    EXPECT_CUDNN(pack->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                           CUDNN_TYPE_VOID_PTR,
                           std::vector<void*>{convolution_.x().get(), convolution_.w().get(), y}));
    EXPECT_CUDNN(pack->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                           CUDNN_TYPE_VOID_PTR,
                           std::vector<void*>{workspace_.get()}));
    EXPECT_CUDNN(pack->finalize());
    return pack;
  }

  cudnnStatus_t populate(const Descriptor& plan, void* y, cudaGraph_t graph) const {
    return cudnnBackendPopulateCudaGraph(
        convolution_.handle(), plan.get(), packOf(y)->get(), graph);
  }
  cudnnStatus_t update(const Descriptor& plan, void* y, cudaGraph_t graph) const {
    return cudnnBackendUpdateCudaGraph(convolution_.handle(), plan.get(), packOf(y)->get(), graph);
  }
  void launch(cudaGraphExec_t executable) const {
    ASSERT_CUDA(cudaGraphLaunch(executable, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
  }

  Convolution convolution_{ConvolutionCase{}};
  BackendGraph graph_{convolution_, Operation::kForward};
  DeviceBuffer workspace_{std::size_t{1} << 20};
  DeviceBuffer other_{convolution_.geometry(Operation::kForward).bytes()};
  cudaStream_t stream_ = nullptr;
};

TEST_F(NativeGraphTest, RunsWithThePointersOfItsLastUpdate) {
  const auto plan = planOf(kCompiled);
  const std::vector<char> before = convolution_.y().read();
  const std::vector<char> expected = convolution_.expected(Operation::kForward);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  ASSERT_CUDNN(populate(*plan, convolution_.y().get(), graph));
  EXPECT_EQ(before, convolution_.y().read());
  ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  launch(executable);
  EXPECT_EQ(expected, convolution_.y().read());
  ASSERT_CUDA(cudaGraphExecDestroy(executable));

  convolution_.y().write(before);
  ASSERT_CUDNN(update(*plan, other_.get(), graph));
  ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  launch(executable);
  EXPECT_EQ(expected, other_.read());
  EXPECT_EQ(before, convolution_.y().read());
  ASSERT_CUDA(cudaGraphExecDestroy(executable));
  ASSERT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(NativeGraphTest, AChildOfAnExecutableGraphIsReplaced) {
  const auto plan = planOf(kCompiled);
  const std::vector<char> before = convolution_.y().read();
  const std::vector<char> expected = convolution_.expected(Operation::kForward);
  cudaGraph_t whole = nullptr;
  cudaGraph_t part = nullptr;
  cudaGraphNode_t nodes[2];
  cudaGraphExec_t executable = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&whole, 0));
  ASSERT_CUDA(cudaGraphCreate(&part, 0));
  ASSERT_CUDNN(populate(*plan, convolution_.y().get(), part));
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&nodes[0], whole, nullptr, 0, part));
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&nodes[1], whole, &nodes[0], 1, part));
  std::size_t count = 0;
  ASSERT_CUDA(cudaGraphGetNodes(whole, nullptr, &count));
  EXPECT_EQ(2U, count);
  ASSERT_CUDA(cudaGraphInstantiate(&executable, whole, 0));
  ASSERT_CUDNN(update(*plan, other_.get(), part));
  for (cudaGraphNode_t const node : nodes) {
    ASSERT_CUDA(cudaGraphExecChildGraphNodeSetParams(executable, node, part));
  }
  ASSERT_CUDA(cudaGraphDestroy(part));
  const double start = ucudnnSimulatorClock(stream_);
  launch(executable);
  const double twice = ucudnnSimulatorClock(stream_) - start;
  EXPECT_EQ(expected, other_.read());
  EXPECT_EQ(before, convolution_.y().read());
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], part));  // destroyed
  ASSERT_CUDA(cudaGraphDestroy(whole));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], whole));
  ASSERT_CUDA(cudaGraphExecDestroy(executable));
  EXPECT_GT(twice, 0.005);  // one behind the other: a launch takes 3 us at least
  cudaGetLastError();
}

TEST_F(NativeGraphTest, RefusesOtherEnginesAndGraphs) {
  const auto plan = planOf(kCompiled);
  const auto plain = planOf(kPlain);
  void* const y = convolution_.y().get();
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, populate(*plain, y, graph));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, update(*plan, y, graph));  // empty
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, populate(*plan, y, nullptr));
  EXPECT_CUDNN(populate(*plan, y, graph));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, populate(*plan, y, graph));  // not empty any more
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, update(*plan, nullptr, graph));
  const BackendGraph data(convolution_, Operation::kBackwardData);
  const auto dataPlan = data.plan(*data.config({78, {}}, CUDNN_STATUS_SUCCESS));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, update(*dataPlan, y, graph));
  ASSERT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace ucudnn::simulator::test
