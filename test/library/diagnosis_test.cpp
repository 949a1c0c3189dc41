// The answers of diagnosis.h agree with what runs.
#include <cstring>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class DiagnosisTest : public LibraryTest {};

TEST_F(DiagnosisTest, EachPointOfTheParetoFrontIsAPlanThatRuns) {
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

      // The plan is that of a call that repeats.
      const DeviceBuffer workspace(plan.workspaceBytes);
      const Workspace all{workspace.get(), plan.workspaceBytes};
      ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, all));
      const ucudnnStatistics_t before = statistics();
      convolution.output(operation).poison();
      ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, all));
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

TEST_F(DiagnosisTest, FewerEntriesThanThereAreMayBeAskedFor) {
  const EnvironmentGuard tuning("UCUDNN_TUNING", "exhaustive");  // from a batch of one on
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
  ucudnnMicroBatches_t entries[2] = {{}, {0, 99, 99, 0, 0, 0, 0, "untouched", 0}};
  int count = -1;
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(1, entries, &count)) << "their size is none";
  entries[0].size = sizeof(entries[0]);
  ASSERT_CUDNN(candidates(1, entries, &count));
  EXPECT_EQ(all, count);
  EXPECT_EQ(1, entries[0].batch) << "by batch size";
  EXPECT_EQ(1, entries[0].count);
  EXPECT_STREQ("untouched", entries[1].kernel);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(1, nullptr, &count));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(-1, entries, &count));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, candidates(1, entries, nullptr));
}

/// The structs of an earlier client end sooner, and those of a later one have more members.
TEST_F(DiagnosisTest, StructsLieAsFarApartAsTheirSizeSays) {
  const Handles handles;
  const Convolution convolution(ConvolutionCase{});
  const auto candidates = [&](int requested, void* entries, int* count) {
    return ucudnnGetConvolutionCandidates(handles.ours,
                                          UCUDNN_FORWARD,
                                          convolution.xDesc(),
                                          convolution.wDesc(),
                                          convolution.convDesc(),
                                          convolution.yDesc(),
                                          requested,
                                          count,
                                          static_cast<ucudnnMicroBatches_t*>(entries));
  };
  constexpr int kEntries = 3;
  int count = 0;
  ucudnnMicroBatches_t ours[kEntries] = {};
  ours[0].size = sizeof(ours[0]);
  ASSERT_CUDNN(candidates(kEntries, ours, &count));
  ASSERT_LE(kEntries, count);
  constexpr std::size_t kEarlier = offsetof(ucudnnMicroBatches_t, workspaceBytes);
  for (const std::size_t size : {kEarlier, sizeof(ours[0]) + 16}) {
    SCOPED_TRACE(size);
    std::vector<char> bytes(size * kEntries + 1, -1);
    std::memcpy(bytes.data(), &size, sizeof(size));
    ASSERT_CUDNN(candidates(kEntries, bytes.data(), &count));
    for (std::size_t i = 0; i < kEntries; ++i) {
      ucudnnMicroBatches_t entry{};
      std::memcpy(&entry, bytes.data() + i * size, std::min(size, sizeof(entry)));
      EXPECT_EQ(size, entry.size);
      EXPECT_EQ(ours[i].batch, entry.batch);
      EXPECT_EQ(ours[i].timeMs, entry.timeMs);
      if (size < sizeof(entry)) continue;
      EXPECT_STREQ(ours[i].kernel, entry.kernel);
      EXPECT_EQ(0, bytes[(i + 1) * size - 1]) << "a member that we don't know";
    }
    EXPECT_EQ(-1, bytes.back()) << "behind the array";
  }
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
  EXPECT_EQ(sizeof(plan), plan.size);
  const auto planned = [&](std::size_t size) {
    plan = {size, 0, 0, -1, 0};
    return ucudnnGetConvolutionPlan(handles.ours,
                                    UCUDNN_FORWARD,
                                    convolution.xDesc(),
                                    convolution.wDesc(),
                                    convolution.convDesc(),
                                    convolution.yDesc(),
                                    kLimit,
                                    &plan,
                                    0,
                                    &count,
                                    nullptr);
  };
  EXPECT_CUDNN(planned(offsetof(ucudnnPlan_t, predictedMs)));
  EXPECT_EQ(kLimit, plan.limitBytes);
  EXPECT_EQ(-1, plan.predictedMs);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, planned(0));
}

TEST_F(DiagnosisTest, DescribingAPlanDoesNotChangeTheLimitOfACall) {
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

// A client that asked plain cuDNN passes what a kernel needs to the byte.
TEST_F(DiagnosisTest, ACallMayUseItsWorkspaceToTheLastByte) {
  if (!onSimulator()) GTEST_SKIP() << "counts virtual time";
  const Handles handles;
  ConvolutionCase odd = fftCase(387);
  odd.batch = 5;
  odd.filters = 3;
  Convolution convolution(odd);
  setArithmetic(Arithmetic::kOff);
  std::vector<ucudnnParetoPoint_t> front;
  ASSERT_CUDNN(convolution.front(handles.ours, UCUDNN_FORWARD, &front));
  const std::size_t bytes = front.back().workspaceBytes;
  ASSERT_NE(0U, bytes % 512) << "another case is needed";
  const DeviceBuffer workspace(bytes);
  const auto timeMs = [&](std::size_t granted) {
    EXPECT_CUDNN(convolution.run(handles.ours, UCUDNN_FORWARD, 0, {workspace.get(), granted}));
    const double before = clockMs(nullptr);
    EXPECT_CUDNN(convolution.run(handles.ours, UCUDNN_FORWARD, 0, {workspace.get(), granted}));
    return clockMs(nullptr) - before;
  };
  EXPECT_LT(timeMs(bytes), timeMs(bytes - 1));
}

TEST_F(DiagnosisTest, StatisticsAndVersionNeedNoHandle) {
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetStatistics(nullptr));
  ucudnnStatistics_t all{};
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetStatistics(&all)) << "its size is none";
  // A client of an earlier version, whose struct ends sooner.
  all.size = offsetof(ucudnnStatistics_t, planningMs);
  all.planningMs = -1;
  EXPECT_CUDNN(ucudnnGetStatistics(&all));
  EXPECT_EQ(offsetof(ucudnnStatistics_t, planningMs), all.size);
  EXPECT_EQ(-1, all.planningMs);
  all.size = sizeof(all) + 64;  // of a later one
  EXPECT_CUDNN(ucudnnGetStatistics(&all));
  EXPECT_EQ(sizeof(all), all.size);
  double value = -1;
  EXPECT_CUDNN(ucudnnGetStatistic("kernelsMeasured", &value));
  EXPECT_EQ(static_cast<double>(all.kernelsMeasured), value);
  EXPECT_CUDNN(ucudnnGetStatistic("planningMs", &value));
  EXPECT_EQ(all.planningMs, value);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetStatistic("size", &value));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnGetStatistic(nullptr, &value));
  EXPECT_EQ(std::to_string(UCUDNN_MAJOR) + "." + std::to_string(UCUDNN_MINOR) + "." +
                std::to_string(UCUDNN_PATCHLEVEL),
            ucudnnGetVersionString());
}

// Timings repeat within half a percent: a smaller gain may be none.
TEST_F(DiagnosisTest, SplitMustWinOnePercent) {
  const std::pair<double, bool> cases[] = {{1.002, false}, {1.005, false}, {1.02, true}};
  const std::map<std::string, std::string> variables = {{"UCUDNN_GRAPH_MEMORY", "0"}};
  const EnvironmentGuard enqueued(variables);
  int channels = 260;
  for (const auto& [undividedTimes, splits] : cases) {
    SCOPED_TRACE("undivided takes " + std::to_string(undividedTimes) + " of the split's time");
    const ConvolutionCase parameters = fftCase(++channels);
    const ForcedSplits forced({parameters});
    const ChildResult child = runClient({"plan", parameters.serialized()}, {});
    ASSERT_EQ(0, child.status) << child.output;
    // The undivided kernels get so much of what the split takes.
    const std::string text = "predicted forward: ";
    const auto place = child.output.find(text);
    ASSERT_NE(std::string::npos, place) << child.output;
    const double splitMs = std::stod(child.output.substr(place + text.size()));
    const std::string sql =
        "UPDATE measurement SET time_ms = " + std::to_string(splitMs * undividedTimes) +
        " WHERE size_id IN (SELECT id FROM size AS undivided WHERE batch = (SELECT max(batch) FROM "
        "size WHERE problem_id = undivided.problem_id))";
    executeSql(forced.database(), sql.c_str());
    const Handles handles;
    const Convolution convolution(parameters);
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
    EXPECT_EQ(splits, microBatchCount(entries) > 1);
  }
}

}  // namespace
}  // namespace ucudnn::test
