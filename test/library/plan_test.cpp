// What plan.h tells, and that it is what runs: splits that win by themselves, with no help of a
// doctored database.
#include "../support/simulator.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

class PlanTest : public LibraryTest {};

TEST_F(PlanTest, EachPointOfTheParetoFrontIsAPlanThatRuns) {
  const Handles handles;
  Convolution convolution(splitFrontCase());
  int splits = 0;
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    setArithmetic(Arithmetic::kOff);  // only times are wanted of the benchmark
    std::vector<ucudnnParetoPoint_t> front;
    ASSERT_CUDNN(convolution.front(handles.ours, operation, &front));
    setArithmetic(Arithmetic::kFull);
    ASSERT_FALSE(front.empty());
    const auto expected = convolution.undivided(handles.native, operation, 0, 1, 0);
    ASSERT_TRUE(expected);
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (i > 0) {
        EXPECT_LT(front[i - 1].workspaceBytes, front[i].workspaceBytes);
        EXPECT_GT(front[i - 1].timeMs, front[i].timeMs);
      }
      ucudnnPlan_t plan{};
      std::vector<ucudnnMicroBatches_t> entries;
      ASSERT_CUDNN(
          convolution.plan(handles.ours, operation, front[i].workspaceBytes, &plan, &entries));
      EXPECT_LE(plan.workspaceBytes, front[i].workspaceBytes);
      // A split that wins no more than the timings' noise gives way to the undivided kernel.
      EXPECT_LE(plan.predictedMs, front[i].timeMs * 1.021);
      int samples = 0;
      for (const ucudnnMicroBatches_t& entry : entries) {
        samples += entry.batch * entry.count;
        EXPECT_LE(entry.workspaceBytes, plan.workspaceBytes);
      }
      EXPECT_EQ(convolution.parameters().batch, samples);
      const bool split = microBatchCount(entries) > 1;
      if (split) ++splits;

      const DeviceBuffer workspace(plan.workspaceBytes);
      const ucudnnStatistics_t before = statistics();
      convolution.output(operation).poison();
      ASSERT_CUDNN(
          convolution.run(handles.ours, operation, 0, {workspace.get(), plan.workspaceBytes}));
      EXPECT_LE(
          distance(
              convolution.geometry(operation), convolution.output(operation).read(), *expected),
          toleranceBetweenAlgorithms());
      EXPECT_EQ(before.splitCalls + (split ? 1 : 0), statistics().splitCalls);
      EXPECT_EQ(before.undividedCalls + (split ? 0 : 1), statistics().undividedCalls);
    }
    convolution.fill();
  }
  if (onSimulator()) {
    EXPECT_LT(0, splits);
  }
}

TEST_F(PlanTest, FewerEntriesThanThereAreMayBeAskedFor) {
  const Handles handles;
  ConvolutionCase parameters;
  parameters.channels = 12;
  const Convolution convolution(parameters);
  int all = -1;
  const auto candidates = [&](int requested, ucudnnMicroBatches_t* entries, int* count) {
    return ucudnnGetConvolutionCandidates(handles.ours,
                                          UCUDNN_FORWARD,
                                          convolution.xDesc(),
                                          convolution.wDesc(),
                                          convolution.convDesc(),
                                          convolution.yDesc(),
                                          requested,
                                          count,
                                          entries);
  };
  ASSERT_CUDNN(candidates(0, nullptr, &all));
  ASSERT_LT(1, all);
  ucudnnMicroBatches_t entries[2] = {{}, {99, 99, 0, 0, 0, 0, "untouched"}};
  int count = -1;
  ASSERT_CUDNN(candidates(1, entries, &count));
  EXPECT_EQ(all, count);
  EXPECT_EQ(1, entries[0].batch) << "by batch size";
  EXPECT_EQ(1, entries[0].count);
  EXPECT_STREQ("untouched", entries[1].kernel);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(1, nullptr, &count));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(-1, entries, &count));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(1, entries, nullptr));
}

TEST_F(PlanTest, DescribingAPlanDoesNotChangeTheLimitOfACall) {
  const Handles handles;
  Convolution convolution(splitFrontCase());
  int algorithm = 0;
  ASSERT_CUDNN(convolution.queryPreferred(
      handles.ours, UCUDNN_FORWARD, CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, 0, &algorithm));
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  setArithmetic(Arithmetic::kOff);
  ASSERT_CUDNN(
      convolution.plan(handles.ours, UCUDNN_FORWARD, std::size_t{64} << 20, &plan, &entries));
  std::size_t bytes = 1;
  ASSERT_CUDNN(convolution.workspaceSize(handles.ours, UCUDNN_FORWARD, algorithm, &bytes));
  EXPECT_EQ(0U, bytes);
}

TEST_F(PlanTest, StatisticsAndVersionNeedNoHandle) {
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetStatistics(nullptr));
  EXPECT_STRNE("", ucudnnGetVersionString());
}

}  // namespace
}  // namespace ucudnn::test
