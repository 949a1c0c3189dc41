// CUDA graph capture, and what a planned call costs: misc/docs/ARCHITECTURE.md, "Invariants", 3.
#include <set>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"
#include "recording.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

/// New numbers in what the operation reads.
void changeInputs(Convolution& convolution, ucudnnOperation_t operation, unsigned seed) {
  for (const ucudnnOperation_t other : kOperations)
    if (other != operation)
      convolution.output(other).write(randomValues(convolution.geometry(other), seed + other));
}

/// Launches twice, with other inputs each time.
void expectRightReplays(Recording& recording,
                        const Handles& handles,
                        Convolution& convolution,
                        ucudnnOperation_t operation) {
  for (const unsigned seed : {100U, 200U}) {
    changeInputs(convolution, operation, seed);
    const auto expected = convolution.undivided(handles.native, operation, 0, 1, 0);
    ASSERT_TRUE(expected);
    convolution.output(operation).poison();
    ASSERT_NO_FATAL_FAILURE(recording.launch());
    EXPECT_LE(
        distance(convolution.geometry(operation), convolution.output(operation).read(), *expected),
        toleranceBetweenAlgorithms())
        << toText(operation);
  }
}

class CaptureTest : public LibraryTest {};

TEST_F(CaptureTest, PlannedCallIsCapturedAndReplayed) {
  const ForcedSplits forced({fftCase(72)});
  const Handles handles;
  Convolution convolution(fftCase(72));
  for (const ucudnnOperation_t operation : kOperations) {
    Recording recording;
    ASSERT_CUDNN(cudnnSetStream(handles.ours, recording.stream()));
    std::vector<Performance> named;
    ASSERT_CUDNN(convolution.query(handles.ours, operation, Query::kGet, 1, &named));
    const std::size_t bytes = named.at(0).memory;
    const DeviceBuffer workspace(bytes);
    const long long splitBefore = statistics().splitCalls;
    // The first call of this handle: what it remembers is set up while the stream is captured.
    ASSERT_NO_FATAL_FAILURE(recording.begin());
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), bytes}));
    ASSERT_NO_FATAL_FAILURE(recording.end());
    EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
    expectRightReplays(recording, handles, convolution, operation);
  }
}

TEST_F(CaptureTest, CallWithoutAPlanRunsPlainCudnn) {
  const Handles handles;
  Convolution convolution(fftCase(73));
  const DeviceBuffer workspace(kLimit);
  for (const ucudnnOperation_t operation : kOperations) {
    Recording recording;
    ASSERT_CUDNN(cudnnSetStream(handles.ours, recording.stream()));
    const ucudnnStatistics_t before = statistics();
    ASSERT_NO_FATAL_FAILURE(recording.begin());
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), workspace.bytes()}));
    ASSERT_NO_FATAL_FAILURE(recording.end());
    EXPECT_EQ(before.kernelsMeasured, statistics().kernelsMeasured);
    EXPECT_EQ(before.bypassedCalls + 1, statistics().bypassedCalls);
    expectRightReplays(recording, handles, convolution, operation);
    // After the capture the same call is planned.
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), workspace.bytes()}));
    EXPECT_EQ(before.bypassedCalls + 1, statistics().bypassedCalls);
    EXPECT_LT(before.kernelsMeasured, statistics().kernelsMeasured);
  }
}

TEST_F(CaptureTest, QueryWithoutAPlanDuringACaptureLeavesItValid) {
  const Handles handles;
  Convolution convolution(fftCase(74));
  Recording recording;
  ASSERT_CUDNN(cudnnSetStream(handles.ours, recording.stream()));
  ASSERT_NO_FATAL_FAILURE(recording.begin());
  std::size_t bytes = 0;
  EXPECT_CUDNN(convolution.workspaceSize(handles.ours, UCUDNN_FORWARD, 0, &bytes));
  ASSERT_NO_FATAL_FAILURE(recording.end());
}

TEST_F(CaptureTest, PlannedCallMakesNoCallsButTheDescriptorsGettersAndTheConvolutions) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator counts calls";
  const ForcedSplits forced({fftCase(75)});
  const Handles handles;
  ASSERT_CUDNN(handles.ours.setGraphMemory(0));
  Convolution convolution(fftCase(75));
  const char* const convolutions[] = {
      "cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"};
  const std::pair<const char*, std::int64_t> getters[] = {{"cudnnGetTensorNdDescriptor", 2},
                                                          {"cudnnGetFilterNdDescriptor", 1},
                                                          {"cudnnGetConvolutionNdDescriptor", 1},
                                                          {"cudnnGetConvolutionMathType", 1},
                                                          {"cudnnGetConvolutionGroupCount", 1}};
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(convolution.plan(handles.ours, operation, kLimit, &plan, &entries));
    const std::size_t bytes = plan.workspaceBytes;
    const DeviceBuffer workspace(bytes);
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), bytes}));

    std::vector<std::int64_t> before;
    for (const auto& [name, times] : getters) before.push_back(callCount(name));
    const std::int64_t convolutionsBefore = callCount(convolutions[operation]);
    const std::int64_t allBefore = callCount(nullptr);
    ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {workspace.get(), bytes}));
    const std::int64_t all = callCount(nullptr) - allBefore;
    std::int64_t expected = microBatchCount(entries);
    EXPECT_LE(2, expected);
    EXPECT_EQ(expected, callCount(convolutions[operation]) - convolutionsBefore);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(getters[i].second, callCount(getters[i].first) - before[i]) << getters[i].first;
      expected += getters[i].second;
    }
    EXPECT_EQ(expected, all) << "there were calls to other functions";
  }
}

}  // namespace
}  // namespace ucudnn::test
