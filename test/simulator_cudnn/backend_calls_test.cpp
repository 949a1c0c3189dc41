// The backend API's calls: what Execute refuses, streams, captures, host time, failures, leaks.
#include <functional>
#include <numeric>

#include "backend_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

constexpr std::int64_t kCopying = 46;  // an engine of the forward pass that needs a workspace
constexpr std::int64_t kPlain = 28;    // and one that needs none

struct PackCase {
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
  bool finalized = true;
};

cudnnStatus_t execute(const Convolution& convolution,
                      const Descriptor& plan,
                      const PackCase& values) {
  const Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_CUDNN(pack.setInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, values.uids));
  EXPECT_CUDNN(
      pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, values.pointers));
  EXPECT_CUDNN(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                        CUDNN_TYPE_VOID_PTR,
                        std::vector<void*>{values.workspace}));
  if (values.finalized) {
    EXPECT_CUDNN(pack.finalize());
  }
  return cudnnBackendExecute(convolution.handle(), plan.get(), pack.get());
}

class BackendExecuteTest : public testing::Test {
 protected:
  DescriptorPointer planOf(std::int64_t engine) const {
    return graph_.plan(*graph_.config({engine, {}}, CUDNN_STATUS_SUCCESS));
  }

  Convolution convolution_{ConvolutionCase{}};
  BackendGraph graph_{convolution_, Operation::kForward};
  void* x_ = convolution_.x().get();
  void* w_ = convolution_.w().get();
  void* y_ = convolution_.y().get();
};

TEST_F(BackendExecuteTest, RefusesWhatIsMissing) {
  const auto plan = planOf(kCopying);
  const DeviceBuffer buffer(static_cast<std::size_t>(workspaceOf(*plan)));
  void* const ws = buffer.get();
  const Descriptor open(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const auto run = [&](const PackCase& values) { return execute(convolution_, *plan, values); };
  EXPECT_CUDNN(run({{1, 2, 3}, {x_, w_, y_}, ws}));
  EXPECT_CUDNN(run({{3, 9, 1, 2}, {y_, nullptr, x_, w_}, ws}));  // in any order, and with others
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run({{1, 2}, {x_, w_}, ws}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, run({{1, 2, 4}, {x_, w_, y_}, ws}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, run({{1, 2, 3}, {x_, w_, nullptr}, ws}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, run({{1, 2, 3}, {x_, w_, y_}, nullptr}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, run({{1, 2, 3}, {x_, w_, y_}, ws, false}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            execute(convolution_, open, {{1, 2, 3}, {x_, w_, y_}, ws}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            cudnnBackendExecute(convolution_.handle(), graph_.graph().get(), plan->get()));
  EXPECT_CUDNN(execute(convolution_, *planOf(kPlain), {{1, 2, 3}, {x_, w_, y_}, nullptr}));
}

TEST_F(BackendExecuteTest, RefusesDataThatIsLessAlignedThanItsDescriptor) {
  const auto plan = planOf(kPlain);
  void* const odd = static_cast<char*>(y_) + sizeof(float);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
            execute(convolution_, *plan, {{1, 2, 3}, {x_, w_, odd}}));
}

TEST_F(BackendExecuteTest, AWorkspaceThatIsTooSmallIsAViolation) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto plan = planOf(kCopying);
  const DeviceBuffer buffer(static_cast<std::size_t>(workspaceOf(*plan)) - 1);
  EXPECT_DEATH(graph_.run(*plan, buffer.get()), "workspace");
}

TEST_F(BackendExecuteTest, OverwritesItsWorkspaceToTheEnd) {
  const auto plan = planOf(kCopying);
  const auto needed = static_cast<std::size_t>(workspaceOf(*plan));
  DeviceBuffer workspace(needed + 64);
  workspace.write(std::vector<char>(needed + 64, 7));
  EXPECT_CUDNN(graph_.run(*plan, workspace.get()));
  cudaDeviceSynchronize();
  const std::vector<char> after = workspace.read();
  EXPECT_EQ('\xFF', after.front());
  EXPECT_EQ('\xFF', after[needed - 1]);
  EXPECT_EQ(7, after[needed]);
}

TEST_F(BackendExecuteTest, IsCapturedAndReplayed) {
  cudaStream_t stream = nullptr;
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t executable = nullptr;
  const auto plan = planOf(kCopying);
  const DeviceBuffer workspace(static_cast<std::size_t>(workspaceOf(*plan)));
  const std::vector<char> before = convolution_.y().read();
  const std::vector<char> expected = convolution_.expected(Operation::kForward);
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDNN(cudnnSetStream(convolution_.handle(), stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDNN(graph_.run(*plan, workspace.get()));
  ASSERT_CUDA(cudaStreamEndCapture(stream, &captured));
  EXPECT_EQ(before, convolution_.y().read());
  ASSERT_CUDA(cudaGraphInstantiate(&executable, captured, 0));
  ASSERT_CUDA(cudaGraphLaunch(executable, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(expected, convolution_.y().read());
  ASSERT_CUDA(cudaGraphExecDestroy(executable));
  ASSERT_CUDA(cudaGraphDestroy(captured));
  ASSERT_CUDNN(cudnnSetStream(convolution_.handle(), nullptr));
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

TEST_F(BackendExecuteTest, DoubleFactorsScaleAsFloatsDo) {
  ConvolutionCase scaled;
  scaled.alpha = 0.5;
  scaled.beta = 2;
  for (const bool doubles : {false, true}) {
    Convolution convolution(scaled);
    const std::vector<char> expected = convolution.expected(Operation::kForward);
    BackendGraph::Options options;
    options.doubleFactors = doubles;
    const BackendGraph graph(convolution, Operation::kForward, options);
    EXPECT_CUDNN(graph.run(*graph.plan(*graph.config({kPlain, {}}, CUDNN_STATUS_SUCCESS))));
    EXPECT_EQ(expected, convolution.y().read());
  }
}

double hostCost(const std::function<void()>& call) {
  ucudnnSimulatorSetMeasuringCost(1);
  const double before = ucudnnSimulatorHostClockMs();
  call();
  const double cost = ucudnnSimulatorHostClockMs() - before;
  ucudnnSimulatorSetMeasuringCost(0);
  return cost;
}

TEST_F(BackendExecuteTest, BuildingAPlanTakesHostTimeAndCompilingMore) {
  const auto config = graph_.config({kCopying, {}}, CUDNN_STATUS_SUCCESS);
  const auto compiled = graph_.config({71, {}}, CUDNN_STATUS_SUCCESS);
  const double build = hostCost([&] { graph_.plan(*config); });
  EXPECT_GE(build, 0.2);
  EXPECT_LE(build, 10);
  EXPECT_GE(hostCost([&] { graph_.plan(*compiled); }), 100);
}

TEST_F(BackendExecuteTest, EnqueueingTakesTwentyToFortyFiveMicrosecondsOnceItsKernelsAreLoaded) {
  const auto plan = planOf(kPlain);
  double second = 0;
  const double both = hostCost([&] {
    EXPECT_CUDNN(graph_.run(*plan, nullptr));
    second = -ucudnnSimulatorHostClockMs();
    EXPECT_CUDNN(graph_.run(*plan, nullptr));
    second += ucudnnSimulatorHostClockMs();
  });
  EXPECT_GE(second, 0.020);
  EXPECT_LE(second, 0.045);
  EXPECT_NEAR(2, both - 2 * second, 0.1);
}

// One sample after the other: forward and backward data give the same bits, backward filter adds
// up.
TEST(BackendSplitTest, SamplesAloneGiveWhatTheBatchGives) {
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(static_cast<int>(operation));
    ConvolutionCase whole;
    whole.input = {8, 8};  // a sample begins at a multiple of 16 bytes
    Convolution convolution(whole);
    const std::vector<char> expected = convolution.expected(operation);
    for (int n = 0; n < whole.batch; ++n) {
      ConvolutionCase one = whole;
      one.batch = 1;
      one.beta = operation == Operation::kBackwardFilter && n > 0 ? 1 : 0;
      Convolution sample(one);
      const BackendGraph graph(sample, operation);
      const auto plan = graph.plan(*graph.config({0, {}}, CUDNN_STATUS_SUCCESS));
      const auto at = [&](DeviceBuffer& buffer) {
        return static_cast<char*>(buffer.get()) +
               buffer.bytes() / static_cast<std::size_t>(whole.batch) * static_cast<std::size_t>(n);
      };
      EXPECT_CUDNN(
          execute(sample,
                  *plan,
                  {{1, 2, 3}, {at(convolution.x()), convolution.w().get(), at(convolution.y())}}));
    }
    cudaDeviceSynchronize();
    EXPECT_EQ(expected, convolution.output(operation).read());
  }
}

// Everything a client does for one convolution; stops at the first error, gives back all it got.
cudnnStatus_t useEverything(const Convolution& convolution,
                            const Descriptor& graph,
                            const std::vector<void*>& data) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const auto attempt = [&](const std::function<cudnnStatus_t()>& call) {
    if (status == CUDNN_STATUS_SUCCESS) status = call();
  };
  cudnnBackendDescriptor_t engine = nullptr;
  cudnnBackendDescriptor_t config = nullptr;
  cudnnBackendDescriptor_t plan = nullptr;
  cudnnBackendDescriptor_t pack = nullptr;
  const cudnnBackendDescriptor_t graphHandle = graph.get();
  const std::int64_t uids[] = {1, 2, 3};
  const std::int64_t index = kPlain;
  const auto set = [&](cudnnBackendDescriptor_t descriptor,
                       cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type,
                       std::int64_t count,
                       const void* values) {
    attempt([=] { return cudnnBackendSetAttribute(descriptor, name, type, count, values); });
  };
  constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  attempt([&] { return cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine); });
  set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, kDescriptor, 1, &graphHandle);
  set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
  attempt([&] { return cudnnBackendFinalize(engine); });
  attempt(
      [&] { return cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config); });
  set(config, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor, 1, &engine);
  attempt([&] { return cudnnBackendFinalize(config); });
  attempt(
      [&] { return cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan); });
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, 1, &config);
  attempt([&] { return cudnnBackendFinalize(plan); });
  attempt(
      [&] { return cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack); });
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data.data());
  attempt([&] { return cudnnBackendFinalize(pack); });
  attempt([&] { return cudnnBackendExecute(convolution.handle(), plan, pack); });
  for (auto* const descriptor : {engine, config, plan, pack}) {
    if (descriptor == nullptr) continue;
    const cudnnStatus_t destroyed = cudnnBackendDestroyDescriptor(descriptor);
    if (status == CUDNN_STATUS_SUCCESS) status = destroyed;
  }
  return status;
}

TEST_F(BackendExecuteTest, EveryCallCanFailAndNothingLeaks) {
  const auto use = [&] { return useEverything(convolution_, graph_.graph(), {x_, w_, y_}); };
  ASSERT_CUDNN(use());
  const std::int64_t handles = ucudnnSimulatorLiveHandles("cudnnBackendDescriptor");
  const std::int64_t before = ucudnnSimulatorCallCount(nullptr);
  ASSERT_CUDNN(use());
  const std::int64_t calls = ucudnnSimulatorCallCount(nullptr) - before;
  ASSERT_EQ(19, calls);
  for (std::int64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(n);
    ucudnnSimulatorFailCall(n);
    EXPECT_EQ(CUDNN_STATUS_INTERNAL_ERROR, use());
    ucudnnSimulatorFailCall(0);
    EXPECT_EQ(handles, ucudnnSimulatorLiveHandles("cudnnBackendDescriptor"));
  }
}

TEST_F(BackendExecuteTest, DescriptorsAreCounted) {
  const std::int64_t before = ucudnnSimulatorLiveHandles("cudnnBackendDescriptor");
  const std::int64_t resources = ucudnnSimulatorLiveResources();
  {
    const Descriptor one(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    EXPECT_EQ(before + 1, ucudnnSimulatorLiveHandles("cudnnBackendDescriptor"));
    EXPECT_EQ(resources, ucudnnSimulatorLiveResources());
  }
  EXPECT_EQ(before, ucudnnSimulatorLiveHandles("cudnnBackendDescriptor"));
}

}  // namespace
}  // namespace ucudnn::simulator::test
