// Promises about the workspace: misc/docs/CLIENTS.md, "At run time", 7, 8, 9, 12, 14.
#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kGranularity = 512;  // misc/docs/CLIENTS.md, "At run time", 12
constexpr int kNoWorkspace = 0;            // the preferences of the removed queries
constexpr int kSpecifyLimit = 2;
constexpr std::size_t kLimit = std::size_t{64} << 20;

/// A convolution whose plan is split and needs workspace, and what plain cuDNN makes of it.
class WorkspaceTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    static int tests = 0;
    const ConvolutionCase own = fftCase(128 + ++tests);
    forced_.emplace(std::vector<ConvolutionCase>{own});
    handles_.emplace();
    convolution_.emplace(own);
  }

  /// Runs on `workspace` and compares with what cuDNN computes without any.
  void expectRightResult(ucudnnOperation_t operation, int algorithm, Workspace workspace) {
    convolution_->fill();
    convolution_->output(operation).poison();
    const auto expected = convolution_->undivided(handles_->native, operation, 0, 1, 0);
    ASSERT_TRUE(expected);
    ASSERT_CUDNN(convolution_->run(handles_->ours, operation, algorithm, workspace));
    EXPECT_LE(
        distance(
            convolution_->geometry(operation), convolution_->output(operation).read(), *expected),
        toleranceBetweenAlgorithms());
  }

  std::size_t workspaceBytes(ucudnnOperation_t operation, int algorithm) {
    std::size_t bytes = 1;
    EXPECT_CUDNN(convolution_->workspaceSize(handles_->ours, operation, algorithm, &bytes));
    return bytes;
  }

  /// The workspace that GetWorkspaceSize names for the algorithm that a query names for the plan.
  std::size_t plannedBytes(ucudnnOperation_t operation) {
    std::vector<Performance> named;
    EXPECT_CUDNN(convolution_->query(handles_->ours, operation, Query::kGet, 1, &named));
    const std::size_t bytes = workspaceBytes(operation, named.at(0).algorithm);
    EXPECT_EQ(named.at(0).memory, bytes);
    return bytes;
  }

  std::optional<ForcedSplits> forced_;
  std::optional<Handles> handles_;
  std::optional<Convolution> convolution_;
};

TEST_F(WorkspaceTest, ReportedSizeSufficesAndNothingBehindItIsTouched) {
  constexpr std::size_t kGuard = 4096;
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const std::size_t bytes = plannedBytes(operation);
    ASSERT_LT(0U, bytes);
    DeviceBuffer memory(bytes + kGuard);
    memory.write(std::vector<char>(memory.bytes(), 0x5A));
    const long long splitBefore = statistics().splitCalls;
    expectRightResult(operation, 0, {memory.get(), bytes});
    EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
    const std::vector<char> after = memory.read();
    EXPECT_TRUE(std::vector<char>(kGuard, 0x5A) ==
                std::vector<char>(after.end() - static_cast<std::ptrdiff_t>(kGuard), after.end()));
  }
}

TEST_F(WorkspaceTest, ReportedSizesAreMultiplesOf512) {
  for (const ucudnnOperation_t operation : kOperations)
    for (std::size_t limit = 1000; limit < kLimit; limit = limit * 3 + 77) {
      int algorithm = -1;
      ASSERT_CUDNN(convolution_->queryPreferred(
          handles_->ours, operation, kSpecifyLimit, limit, &algorithm));
      const std::size_t bytes = workspaceBytes(operation, algorithm);
      EXPECT_EQ(0U, bytes % kGranularity);
      EXPECT_LE(bytes, limit) << toText(operation);
    }
}

TEST_F(WorkspaceTest, AnySizeAtTheCallRuns) {
  for (const ucudnnOperation_t operation : kOperations) {
    const std::size_t bytes = plannedBytes(operation);
    const DeviceBuffer memory(2 * bytes);
    const long long bypassedBefore = statistics().bypassedCalls;
    for (const std::size_t size : {bytes - 1,
                                   bytes - kGranularity,
                                   bytes / 2,
                                   bytes / 7,
                                   kGranularity,
                                   std::size_t{1},
                                   std::size_t{0},
                                   2 * bytes}) {
      SCOPED_TRACE(std::string(toText(operation)) + " within " + std::to_string(size));
      expectRightResult(operation, 0, {memory.get(), size});
    }
    SCOPED_TRACE(toText(operation));
    expectRightResult(operation, 0, {nullptr, 0});
    expectRightResult(operation, 0, {nullptr, bytes});  // no memory is no memory
    EXPECT_EQ(bypassedBefore, statistics().bypassedCalls) << "there is a plan for each size";
  }
}

TEST_F(WorkspaceTest, LatestLimitHolds) {
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    for (int round = 0; round < 2; ++round) {
      int algorithm = -1;
      ASSERT_CUDNN(convolution_->queryPreferred(
          handles_->ours, operation, kSpecifyLimit, kLimit, &algorithm));
      EXPECT_LT(0U, workspaceBytes(operation, algorithm));
      ASSERT_CUDNN(
          convolution_->queryPreferred(handles_->ours, operation, kNoWorkspace, 0, &algorithm));
      EXPECT_EQ(0U, workspaceBytes(operation, algorithm));
      expectRightResult(operation, algorithm, {nullptr, 0});
    }
  }
}

TEST_F(WorkspaceTest, EveryAlgorithmIsAnsweredWithoutAQueryAndRuns) {
  for (const ucudnnOperation_t operation : kOperations)
    for (int algorithm = 0; algorithm < 8; ++algorithm) {  // cuDNN has at most 8 of an operation
      std::size_t nativeBytes = 0;
      if (convolution_->workspaceSize(handles_->native, operation, algorithm, &nativeBytes) !=
          CUDNN_STATUS_SUCCESS)
        continue;
      SCOPED_TRACE(std::string(toText(operation)) + ", algorithm " + std::to_string(algorithm));
      const std::size_t bytes = workspaceBytes(operation, algorithm);
      const long long bypassedBefore = statistics().bypassedCalls;
      const DeviceBuffer memory(bytes);
      expectRightResult(operation, algorithm, {memory.get(), bytes});
      EXPECT_EQ(bypassedBefore, statistics().bypassedCalls) << "there is a plan for each size";
    }
}

TEST_F(WorkspaceTest, RunsWithNoQueryBefore) {
  const DeviceBuffer memory(kLimit);
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const long long splitBefore = statistics().splitCalls;
    expectRightResult(operation, 0, {memory.get(), memory.bytes()});
    EXPECT_EQ(splitBefore + 1, statistics().splitCalls);
  }
}

TEST_F(WorkspaceTest, WithoutALimitSizesStayBelow8GiBAndWhatIsFree) {
  ASSERT_CUDNN(handles_->ours.setDefaultWorkspaceLimit(std::size_t{1} << 50));
  std::size_t freeBytes = 0;
  std::size_t totalBytes = 0;
  ASSERT_CUDA(cudaMemGetInfo(&freeBytes, &totalBytes));
  for (const ucudnnOperation_t operation : kOperations) {
    const std::size_t bytes = plannedBytes(operation);
    EXPECT_LT(bytes, std::size_t{8} << 30);
    EXPECT_LE(bytes, freeBytes);
  }
}

// Other than the default: what fits a limit of nothing is a plan of 0 bytes.
TEST_F(WorkspaceTest, DefaultLimitOfTheHandleHoldsWithoutAQuery) {
  ASSERT_CUDNN(handles_->ours.setDefaultWorkspaceLimit(0));
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    EXPECT_EQ(0U, workspaceBytes(operation, 0));
    expectRightResult(operation, 0, {nullptr, 0});
  }
}

// A plan that needs more than cuDNN's own pick is known from times of plenty; then little is left.
TEST_F(WorkspaceTest, WithoutALimitSizesStayWithinTheLittleThatIsFree) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator limits its memory";
  ConvolutionCase parameters;
  parameters.channels = 13;
  const ForcedSplits forced({parameters});
  executeSql(forced.database(),
             "UPDATE measurement SET time_ms = time_ms * 1000 WHERE workspace_bytes < 32768");
  const Handles handles;
  Convolution convolution(parameters);
  std::vector<Performance> results;
  ASSERT_CUDNN(convolution.query(handles.native, UCUDNN_FORWARD, Query::kGet, 1, &results));
  const std::size_t picked = results.at(0).memory;
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries));
  ASSERT_LT(picked + kGranularity, plan.workspaceBytes);
  const std::size_t freeBytes = plan.workspaceBytes - 1;
  setMemory(0, freeBytes);
  for (const Query how : {Query::kGet, Query::kFind}) {
    SCOPED_TRACE("query " + std::to_string(static_cast<int>(how)));
    const Handles others;
    ASSERT_CUDNN(convolution.query(others.ours, UCUDNN_FORWARD, how, 1, &results));
    EXPECT_LE(results.at(0).memory, freeBytes);
    std::size_t bytes = 0;
    ASSERT_CUDNN(
        convolution.workspaceSize(others.ours, UCUDNN_FORWARD, results.at(0).algorithm, &bytes));
    EXPECT_LE(bytes, freeBytes);
  }
}

}  // namespace
}  // namespace ucudnn::test
