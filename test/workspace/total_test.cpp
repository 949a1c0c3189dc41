// Results and memory of a network in one workspace total.
#include <tuple>

#include "network.hpp"

namespace ucudnn::test {
namespace {

using Parameters = std::tuple<ucudnnTotalWorkspacePolicy_t, Network::Ids, double>;

class TotalTest : public TotalWorkspaceTest, public ::testing::WithParamInterface<Parameters> {};

TEST_P(TotalTest, EqualsUndivided) {
  const auto [policy, ids, beta] = GetParam();
  // Half of what three of the nine would like.
  setTotal(3 * wantedBytes(0) / 2, policy);
  const Handles handles;
  Network network({0, 1, 0}, ids);
  const long long splitBefore = statistics().splitCalls;
  for (int iteration = 0; iteration < 3; ++iteration) {
    network.prepare(beta);
    network.iterate(handles.ours, beta);
    network.expectRight(handles.native, beta);
  }
  EXPECT_LT(splitBefore, statistics().splitCalls);
  EXPECT_EQ(0, statistics().kernelsMeasured) << "the database was to answer everything";
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         TotalTest,
                         ::testing::Combine(::testing::ValuesIn(policies()),
                                            ::testing::Values(Network::Ids::kNone,
                                                              Network::Ids::kOwn),
                                            ::testing::Values(0.0, 0.5, 1.0)),
                         [](const auto& test) {
                           return std::string(toText(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) == Network::Ids::kOwn ? "Ids" : "") +
                                  std::to_string(static_cast<int>(2 * std::get<2>(test.param)));
                         });

class MemoryTest : public TotalWorkspaceTest {};

TEST_F(MemoryTest, StaysWithinTheTotalAtAllTimesAndIsFreedWithTheLastHandle) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not say how much memory is in use";
  for (const ucudnnTotalWorkspacePolicy_t policy : policies())
    for (const std::size_t total :
         {std::size_t{512}, wantedBytes(0), 2 * wantedBytes(0) + 77, std::size_t{64} << 20}) {
      SCOPED_TRACE(std::string(toText(policy)) + " " + std::to_string(total));
      setTotal(total, policy);
      Network network({0, 1, 2}, Network::Ids::kOwn);
      network.prepare();
      const std::size_t before = liveBytes();
      {
        const StreamHandle first;
        const StreamHandle second;
        const std::size_t withHandles = liveBytes();
        for (int iteration = 0; iteration < 3; ++iteration) {
          for (std::size_t i = 0; i < network.size(); ++i)
            for (const ucudnnOperation_t operation : kOperations) {
              ASSERT_CUDNN(network.layer(i).run(first.handle(), operation));
              ASSERT_LE(liveBytes(), withHandles + total);
              ASSERT_CUDA(cudaStreamSynchronize(first.stream()));
              ASSERT_CUDNN(network.layer(i).run(second.handle(), operation));
              ASSERT_LE(liveBytes(), withHandles + total);
              ASSERT_CUDA(cudaStreamSynchronize(second.stream()));
            }
        }
      }
      EXPECT_EQ(before, liveBytes());
    }
}

TEST_F(MemoryTest, SharingServesEachConvolutionWithTheWholeTotal) {
  const std::size_t total = wantedBytes(0);
  setTotal(total, UCUDNN_TOTAL_WORKSPACE_POLICY_SHARE);
  const Handles handles;
  Layer layer(layerCase(0), UCUDNN_LAYER_ANY);
  layer.prepare(0);
  for (const ucudnnOperation_t operation : kOperations) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(layer.convolution().plan(handles.ours, operation, total, &plan, &entries));
    ASSERT_LT(1, microBatchCount(entries));
    const long long splitBefore = statistics().splitCalls;
    ASSERT_CUDNN(layer.run(handles.ours, operation));
    EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
    layer.expectRight(handles.native, operation);
  }
}

TEST_F(MemoryTest, ACallThatNamesADeterministicAlgorithmGetsADeterministicPlan) {
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    setTotal(3 * wantedBytes(0) + 4096 + 512 * static_cast<std::size_t>(policy), policy);
    const Handles handles;
    Convolution convolution(layerCase(0));
    convolution.fill();
    const auto expected = convolution.undivided(handles.native, UCUDNN_BACKWARD_FILTER, 0, 1, 0);
    // The open one first, so that it has a plan that the other cannot take over.
    for (const int algorithm :
         {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1})
      ASSERT_CUDNN(convolution.run(handles.ours, UCUDNN_BACKWARD_FILTER, algorithm, {}));
    EXPECT_LE(distance(convolution.geometry(UCUDNN_BACKWARD_FILTER),
                       convolution.output(UCUDNN_BACKWARD_FILTER).read(),
                       *expected),
              1e-5);
    std::vector<char> first;
    for (int i = 0; i < 3; ++i) {
      ASSERT_CUDNN(convolution.run(
          handles.ours, UCUDNN_BACKWARD_FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, {}));
      const auto result = convolution.output(UCUDNN_BACKWARD_FILTER).read();
      if (i == 0) first = result;
      EXPECT_TRUE(first == result) << "other bits";
    }
  }
}

TEST_F(MemoryTest, ASettledCallAllocatesMeasuresAndWaitsForNothing) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not count calls";
  for (const ucudnnTotalWorkspacePolicy_t policy : policies()) {
    SCOPED_TRACE(toText(policy));
    setTotal(3 * wantedBytes(0) + 1024 * static_cast<std::size_t>(policy), policy);
    const Handles handles;
    Network network({0, 1});
    network.prepare();
    for (int iteration = 0; iteration < 4; ++iteration) network.iterate(handles.ours);
    const char* const forbidden[] = {"cudaMalloc",
                                     "cudaFree",
                                     "cudaDeviceSynchronize",
                                     "cudaStreamSynchronize",
                                     "cudaEventSynchronize",
                                     "cudaEventCreateWithFlags",
                                     "cudnnGetConvolutionForwardWorkspaceSize"};
    std::vector<std::int64_t> before;
    for (const char* const name : forbidden) before.push_back(callCount(name));
    network.iterate(handles.ours);
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(before[i], callCount(forbidden[i])) << forbidden[i];
    network.expectRight(handles.native);
  }
}

}  // namespace
}  // namespace ucudnn::test
