// A client that follows the library's answers gets no error that plain cuDNN would not give: plans
// that no longer hold, micro-batches that are refused, workspaces that the named algorithm exceeds.
#include <algorithm>
#include <set>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"
#include "fused.hpp"
#include "recording.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;
// Calls of cuDNN that a planned call makes before its first micro-batch (capture_test.cpp counts
// them).
constexpr std::int64_t kGetters = 6;

const char* const kFunctions[] = {
    "cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"};

class RefusalTest : public LibraryTest {
 protected:
  std::string log() const { return directory_.file("log"); }
  /// Logs the fate of plans to log(), and passes each micro-batch to cuDNN: a replayed one can't be
  /// refused.
  std::map<std::string, std::string> logging() const {
    return {{"UCUDNN_LOG_LEVEL", "info"}, {"UCUDNN_LOG_FILE", log()}, {"UCUDNN_GRAPH_MEMORY", "0"}};
  }
  /// Lines that say that a plan was given up, or that a call is not what its caller named.
  std::size_t lines() const {
    std::size_t count = 0;
    for (const char* const words : {"was refused (",
                                    "no longer has all kernels",
                                    "were measured: ",
                                    "so it is not deterministic"})
      count += linesWith(log(), {"[info]", words}).size();
    return count;
  }

 private:
  TemporaryDirectory directory_;
};

void expectRight(const Convolution& convolution,
                 ucudnnOperation_t operation,
                 const std::vector<char>& result,
                 const std::optional<std::vector<char>>& expected) {
  ASSERT_TRUE(expected);
  EXPECT_LE(distance(convolution.geometry(operation), result, *expected),
            toleranceBetweenAlgorithms());
}

TEST_F(RefusalTest, RefusedMicroBatchIsMadeUpForOnceAndForgotten) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  int channels = 200;
  for (const ucudnnOperation_t operation : kOperations)
    for (const double beta : {0.0, 0.5})
      for (const std::int64_t microBatch : {1, 2}) {
        SCOPED_TRACE(std::string(toText(operation)) + ", beta " + std::to_string(beta) +
                     ", micro-batch " + std::to_string(microBatch));
        const ConvolutionCase parameters = fftCase(++channels);
        const ForcedSplits forced({parameters});
        const EnvironmentGuard settings(logging());
        const Handles handles;
        Convolution convolution(parameters);
        const DeviceBuffer workspace(kLimit);
        const Workspace all{workspace.get(), kLimit};
        const auto run = [&] {
          return convolution.run(handles.ours, operation, 0, all, 1.5, beta);
        };
        ASSERT_CUDNN(run());
        const std::vector<char> original = convolution.output(operation).read();
        const auto expected = convolution.undivided(handles.native, operation, 0, 1.5, beta);
        const std::size_t linesBefore = lines();
        failCall(kGetters + microBatch);
        EXPECT_CUDNN(run());
        failCall(0);
        expectRight(convolution, operation, convolution.output(operation).read(), expected);
        EXPECT_EQ(linesBefore + 1, lines());

        const ucudnnStatistics_t before = statistics();
        for (int again = 0; again < 2; ++again) {
          convolution.output(operation).write(original);
          EXPECT_CUDNN(run());
          expectRight(convolution, operation, convolution.output(operation).read(), expected);
        }
        EXPECT_EQ(before.splitCalls, statistics().splitCalls) << "the plan was used again";
        EXPECT_EQ(before.bypassedCalls + 2, statistics().bypassedCalls);
        EXPECT_EQ(linesBefore + 1, lines());

        const Handles others;  // the plan is given up by this handle only
        ASSERT_CUDNN(convolution.run(others.ours, operation, 0, all));
        EXPECT_EQ(before.splitCalls + 1, statistics().splitCalls);
      }
}

// z in place is overwritten by what has run; apart, or not added, the call can be repeated.
TEST_F(RefusalTest, RefusedMicroBatchOfTheFusedOperationIsMadeUpFor) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  constexpr std::int64_t kFusedGetters = kGetters + 2;  // of the activation and z
  ConvolutionCase parameters;
  parameters.channels = 11;
  const ForcedSplits forced({parameters}, ForcedSplits::Operations::kFused);
  const EnvironmentGuard settings(logging());
  for (const double alpha2 : {0.0, 0.5})
    for (const bool inPlace : {false, true}) {
      SCOPED_TRACE("alpha2 " + std::to_string(alpha2) + (inPlace ? ", in place" : ", apart"));
      const Handles handles;
      Convolution convolution(parameters);
      Fused fused(convolution, CUDNN_ACTIVATION_RELU);
      const DeviceBuffer workspace(kLimit);
      const auto result = [&](auto handle, std::int64_t failing) {
        convolution.fill();
        failCall(failing);
        EXPECT_CUDNN(
            fused.run(handle, kAlgorithm, {workspace.get(), kLimit}, 1.5, alpha2, inPlace));
        failCall(0);
        return convolution.y().read();
      };
      const auto expected = result(handles.native, 0);
      const long long splitBefore = statistics().splitCalls;
      result(handles.ours, 0);
      ASSERT_EQ(splitBefore + 1, statistics().splitCalls);
      const std::size_t linesBefore = lines();
      EXPECT_LE(distance(convolution.geometry(UCUDNN_FORWARD),
                         result(handles.ours, kFusedGetters + 2),
                         expected),
                toleranceBetweenAlgorithms());
      EXPECT_EQ(linesBefore + 1, lines());
    }
}

// Any of the calls before the first micro-batch fails: where it is the look whether cuDNN has the
// plan's kernels, the plan is not begun, now or later.
TEST_F(RefusalTest, PlanThatCudnnNoLongerHasIsNotBegun) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  constexpr std::int64_t kCalls = kGetters + 16;
  const ConvolutionCase parameters = fftCase(220);
  const ForcedSplits forced({parameters});
  const EnvironmentGuard settings(logging());
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  const auto run = [&](const Handles& handles, ucudnnOperation_t operation) {
    return convolution.run(handles.ours, operation, 0, {workspace.get(), kLimit}, 1, 1);
  };
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const Handles handles;
    const auto expected = convolution.undivided(handles.native, operation, 0, 1, 1);
    const std::vector<char> original = convolution.output(operation).read();
    ASSERT_CUDNN(run(handles, operation));  // plans
    int refusedPlans = 0;
    for (std::int64_t n = 1; n <= kCalls && refusedPlans == 0; ++n) {
      const Handles others;  // it looks for itself
      const std::size_t linesBefore = lines();
      const auto refused = [&] { return linesWith(log(), {"no longer has all kernels"}).size(); };
      const std::size_t refusedBefore = refused();
      for (const bool fails : {true, false}) {
        const std::int64_t enqueuedBefore = callCount(kFunctions[operation]);
        convolution.output(operation).write(original);
        failCall(fails ? n : 0);
        const cudnnStatus_t status = run(others, operation);
        failCall(0);
        if (refused() == refusedBefore) break;
        ++refusedPlans;
        ASSERT_CUDNN(status);
        expectRight(convolution, operation, convolution.output(operation).read(), expected);
        EXPECT_EQ(enqueuedBefore + 1, callCount(kFunctions[operation]));
        EXPECT_EQ(linesBefore + 1, lines());
      }
    }
    EXPECT_EQ(2, refusedPlans);
    convolution.output(operation).write(original);
  }
}

class SmallWorkspaceTest : public RefusalTest {
 protected:
  /// Calls check(operation, algorithm, needed, given).
  template <typename Check>
  void forEachSmallWorkspace(const Handles& handles, const Convolution& convolution, Check check) {
    for (const ucudnnOperation_t operation : kOperations)
      for (int algorithm = 0; algorithm < 8; ++algorithm) {  // cuDNN has at most 8 of an operation
        std::size_t needed = 0;
        if (convolution.workspaceSize(handles.native, operation, algorithm, &needed) !=
            CUDNN_STATUS_SUCCESS)
          continue;
        for (const std::size_t given : {std::size_t{0}, needed / 2, needed - 1, needed}) {
          if (given > needed) continue;  // it needs none
          SCOPED_TRACE(std::string(toText(operation)) + ", algorithm " + std::to_string(algorithm) +
                       ", " + std::to_string(given) + " of " + std::to_string(needed));
          check(operation, algorithm, needed, given);
        }
      }
  }
};

/// Captures a call and launches it.
template <typename Call>
cudnnStatus_t runCaptured(cudnnHandle_t handle, Call call) {
  Recording recording;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const auto record = [&] {
    ASSERT_CUDNN(cudnnSetStream(handle, recording.stream()));
    ASSERT_NO_FATAL_FAILURE(recording.begin());
    status = call();
    ASSERT_NO_FATAL_FAILURE(recording.end());
    ASSERT_NO_FATAL_FAILURE(recording.launch());
  };
  record();
  EXPECT_CUDNN(cudnnSetStream(handle, nullptr));
  return status;
}

// Unknown and captured, it cannot be planned: this is how cuDNN alone runs it.
TEST_F(SmallWorkspaceTest, AnySizeRunsWithoutAPlanToo) {
  const EnvironmentGuard settings(logging());
  const Handles handles;
  Convolution convolution(fftCase(221));
  const DeviceBuffer workspace(kLimit);
  forEachSmallWorkspace(
      handles,
      convolution,
      [&](ucudnnOperation_t operation, int algorithm, std::size_t, std::size_t given) {
        const auto expected = convolution.undivided(handles.native, operation, 0, 1, 0);
        convolution.output(operation).poison();
        ASSERT_CUDNN(runCaptured(handles.ours, [&] {
          return convolution.run(handles.ours, operation, algorithm, {workspace.get(), given});
        }));
        expectRight(convolution, operation, convolution.output(operation).read(), expected);
      });
  // An algorithm that cuDNN does not have (forward DIRECT) is a name like any other.
  EXPECT_CUDNN(runCaptured(handles.ours, [&] {
    return convolution.run(
        handles.ours, UCUDNN_FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, {workspace.get(), 0});
  }));
  EXPECT_EQ(0, statistics().kernelsMeasured);
}

bool isDeterministic(ucudnnOperation_t operation, int algorithm) {
  return operation == UCUDNN_FORWARD ||
         (algorithm != 0 && (operation != UCUDNN_BACKWARD_FILTER || algorithm != 3));
}

/// Whether cuDNN has a deterministic algorithm in that little workspace.
bool hasDeterministic(const Handles& handles,
                      const Convolution& convolution,
                      ucudnnOperation_t operation,
                      std::size_t bytes) {
  for (int algorithm = 0; algorithm < 8; ++algorithm) {
    std::size_t needed = 0;
    if (isDeterministic(operation, algorithm) &&
        convolution.workspaceSize(handles.native, operation, algorithm, &needed) ==
            CUDNN_STATUS_SUCCESS &&
        needed <= bytes)
      return true;
  }
  return false;
}

TEST_F(SmallWorkspaceTest, LostDeterminismIsLoggedOnceOrRefused) {
  const EnvironmentGuard settings(logging());
  const Handles handles;
  Convolution convolution(fftCase(222));
  const DeviceBuffer workspace(kLimit);
  constexpr int kDeterministic = 1;
  int lost = 0;
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const std::size_t linesBefore = lines();
    const bool has = hasDeterministic(handles, convolution, operation, 0);
    if (!has) ++lost;
    for (const int enabled : {0, 1}) {
      ASSERT_CUDNN(handles.ours.setDeterministic(enabled != 0));
      for (int call = 0; call < 3; ++call) {
        const cudnnStatus_t status = runCaptured(handles.ours, [&] {
          return convolution.run(handles.ours, operation, kDeterministic, {});
        });
        if (has || enabled == 0)
          EXPECT_EQ(CUDNN_STATUS_SUCCESS, status);
        else
          EXPECT_EQ(convolution.run(handles.native, operation, kDeterministic, {}), status);
      }
    }
    EXPECT_EQ(linesBefore + (has ? 0 : 1), lines());
  }
  if (onSimulator()) {
    EXPECT_LT(0, lost) << "the test was to have such an operation";
  }
}

/// cuDNN's heuristics prefer one that adds atomically, in no workspace, to Winograd's, which fits.
TEST_F(SmallWorkspaceTest, ADeterministicAlgorithmStandsInForOneWhereItFits) {
  const EnvironmentGuard settings(logging());
  setRounding(true);
  const Handles handles;
  ConvolutionCase parameters;
  parameters.math = CUDNN_DEFAULT_MATH;
  parameters.channels = parameters.filters = 12;
  Convolution convolution(parameters);
  const DeviceBuffer workspace(kLimit);
  int chosen = 0;
  forEachSmallWorkspace(
      handles,
      convolution,
      [&](ucudnnOperation_t operation, int algorithm, std::size_t needed, std::size_t given) {
        const bool named = isDeterministic(operation, algorithm);
        if (!named || given == needed || !hasDeterministic(handles, convolution, operation, given))
          return;
        std::vector<Performance> ranked;
        ASSERT_CUDNN(convolution.query(handles.native, operation, Query::kGet, 8, &ranked));
        const auto first =
            std::find_if(ranked.begin(), ranked.end(), [&](const Performance& entry) {
              return entry.status == CUDNN_STATUS_SUCCESS && entry.memory <= given;
            });
        ASSERT_TRUE(first != ranked.end());
        if (first->determinism == CUDNN_NON_DETERMINISTIC) ++chosen;
        std::set<std::vector<char>> results;
        for (int run = 0; run < 3; ++run) {
          ASSERT_CUDNN(runCaptured(handles.ours, [&] {
            return convolution.run(handles.ours, operation, algorithm, {workspace.get(), given});
          }));
          results.insert(convolution.output(operation).read());
        }
        EXPECT_EQ(1U, results.size()) << "not the same bits each time";
      });
  setRounding(false);
  EXPECT_EQ(0U, lines());
  if (onSimulator()) {
    EXPECT_LT(0, chosen) << "the heuristics were to prefer another";
  }
}

/// The least workspace that cuDNN needs for a deterministic algorithm.
std::size_t leastDeterministicBytes(const Handles& handles, const Convolution& convolution) {
  std::size_t bytes = 0;
  while (bytes < kLimit && !hasDeterministic(handles, convolution, UCUDNN_BACKWARD_FILTER, bytes))
    bytes += 512;
  return bytes;
}

TEST_F(SmallWorkspaceTest, AnAnswerRunsOnAHandleOfAnotherPolicy) {
  ConvolutionCase parameters = fftCase(223);
  parameters.math = CUDNN_DEFAULT_MATH;
  parameters.dilation = {2, 2};  // all that is deterministic needs copies of the samples
  parameters.pad = {4, 4};
  const ForcedSplits forced({parameters});
  const EnvironmentGuard setting("UCUDNN_DETERMINISTIC", "1");
  const Handles handles, others;
  ASSERT_CUDNN(others.ours.setOptimizerBatchSizePolicy(UCUDNN_BATCH_SIZE_POLICY_UNDIVIDED));
  Convolution convolution(parameters);
  const std::size_t least = leastDeterministicBytes(handles, convolution);
  if (least == 0 || least >= kLimit) GTEST_SKIP() << "no limit is too small undivided only";
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  constexpr int kSpecifyLimit = 2;
  int named = -1;  // undivided none is valid by itself: what is asked for is the limit
  convolution.queryPreferred(
      handles.ours, UCUDNN_BACKWARD_FILTER, kSpecifyLimit, least - 512, &named);
  std::size_t bytes = 0;
  ASSERT_CUDNN(convolution.workspaceSize(handles.ours, UCUDNN_BACKWARD_FILTER, kAlgorithm, &bytes));
  if (bytes >= least) GTEST_SKIP() << "split it needs as much";
  const auto expected = convolution.undivided(handles.native, UCUDNN_BACKWARD_FILTER, 0, 1, 0);
  const DeviceBuffer workspace(bytes);
  for (const UcudnnHandle_t& handle : {handles.ours, others.ours}) {
    convolution.output(UCUDNN_BACKWARD_FILTER).poison();
    ASSERT_CUDNN(
        convolution.run(handle, UCUDNN_BACKWARD_FILTER, kAlgorithm, {workspace.get(), bytes}));
    expectRight(convolution,
                UCUDNN_BACKWARD_FILTER,
                convolution.output(UCUDNN_BACKWARD_FILTER).read(),
                expected);
  }
}

}  // namespace
}  // namespace ucudnn::test
