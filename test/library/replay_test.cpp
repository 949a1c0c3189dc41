// Calls that repeat are replayed as CUDA graphs: which, and with what result.
#include "replay.hpp"

#include "../support/simulator.hpp"
#include "fused.hpp"

namespace ucudnn::test {
namespace {

constexpr double kAlpha = 1.5;  // not 1: a factor that is lost, or applied twice, shows

class ReplayTest : public ReplayFixture {};

/// The third call with these arguments is replayed and right, whatever ran before.
void expectReplayedInTheEnd(Repeated& calls,
                            ucudnnOperation_t operation,
                            double alpha = 1,
                            double beta = 0) {
  const bool wasNew = calls.call(operation, alpha, beta).replayed == 0;
  EXPECT_TRUE(wasNew);
  EXPECT_EQ(1, calls.call(operation, alpha, beta).replayed);
  EXPECT_EQ(1, calls.call(operation, alpha, beta).replayed);
}

TEST_F(ReplayTest, FirstCallIsEnqueuedSecondCapturedLaterOnesLaunched) {
  Repeated calls(replayCase());
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    const Counts first = calls.call(operation);
    EXPECT_EQ(0, first.replayed);
    EXPECT_EQ(1, first.split);
    EXPECT_EQ(0, first.graphs);
    const Counts second = calls.call(operation);
    EXPECT_EQ(1, second.replayed);
    EXPECT_EQ(1, second.split);
    EXPECT_EQ(1, second.graphs);
    EXPECT_LT(0, second.graphBytes);
    for (int i = 0; i < 3; ++i) {
      const Counts later = calls.call(operation);
      EXPECT_EQ(1, later.replayed);
      EXPECT_EQ(1, later.split);
      EXPECT_EQ(0, later.graphs);
      EXPECT_EQ(0, later.graphBytes);
      EXPECT_EQ(0, later.captures);
      EXPECT_EQ(0, later.convolutions);
      EXPECT_EQ(onSimulator() ? 1 : 0, later.launches);
    }
    if (!onSimulator()) continue;
    EXPECT_LE(2, first.convolutions);
    EXPECT_EQ(0, first.captures + first.launches);
    EXPECT_EQ(first.convolutions, second.convolutions);
    EXPECT_EQ(1, second.captures);
    EXPECT_EQ(1, second.launches);
  }
}

TEST_F(ReplayTest, ReplayedCallAsksForNothingButDescriptorsAndItsStream) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator counts calls";
  Repeated calls(replayCase());
  for (const ucudnnOperation_t operation : kOperations) {
    for (int i = 0; i < 3; ++i) ASSERT_CUDNN(calls.enqueue(operation));
    const std::int64_t before = callCount();
    ASSERT_CUDNN(calls.enqueue(operation));
    // Six getters of descriptors, the handle's stream, whether it is captured, its id, the launch.
    EXPECT_EQ(10, callCount() - before) << toText(operation);
  }
}

std::vector<ConvolutionCase> layouts() {
  std::vector<ConvolutionCase> cases(5, replayCase());
  cases[1].name = "Half";
  cases[1].type = CUDNN_DATA_HALF;
  cases[1].math = CUDNN_TENSOR_OP_MATH;
  cases[2].name = "Double";
  cases[2].type = CUDNN_DATA_DOUBLE;
  cases[3].name = "PointerGroups";
  cases[3].parts = 2;
  cases[4].name = "NhwcWithGaps";
  cases[4].format = CUDNN_TENSOR_NHWC;
  cases[4].batchGap = 37;
  return cases;
}

class ReplayResultTest : public ReplayFixture,
                         public ::testing::WithParamInterface<ConvolutionCase> {
 protected:
  ReplayResultTest() : ReplayFixture({GetParam()}) {}
};

TEST_P(ReplayResultTest, EqualsTheEnqueuedCalls) {
  for (const bool deterministic : {false, true}) {
    Repeated calls(GetParam());
    if (deterministic) calls.demandSameBits();
    for (const ucudnnOperation_t operation : kOperations)
      for (const double beta : {0.0, 1.0, 0.5}) {
        SCOPED_TRACE(std::string(toText(operation)) + ", beta " + std::to_string(beta));
        long long replayed = 0, split = 0;
        for (int i = 0; i < 4; ++i) {
          const Counts did = calls.call(operation, kAlpha, beta);
          replayed += did.replayed;
          split += did.split;
        }
        // Filter gradients in half stay undivided, by one kernel.
        EXPECT_EQ(3 * split, 4 * replayed);
        const bool whole =
            operation == UCUDNN_BACKWARD_FILTER && GetParam().type == CUDNN_DATA_HALF;
        EXPECT_EQ(whole ? 0 : 4 * GetParam().parts, split);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         ReplayResultTest,
                         ::testing::ValuesIn(layouts()),
                         [](const auto& test) { return test.param.name; });

/// Another operand, and what it held before is wrong from now on.
void moveOperand(Convolution& convolution, ucudnnOperation_t which, unsigned seed) {
  auto other = std::make_unique<DeviceBuffer>(convolution.output(which).bytes());
  other->write(randomValues(convolution.geometry(which), seed));
  convolution.exchange(which, std::move(other))->poison();
}

TEST_F(ReplayTest, AnotherPointerOrFactorIsAnotherCall) {
  Repeated calls(replayCase());
  const DeviceBuffer otherWorkspace(calls.workspace().bytes);
  const Workspace first = calls.workspace();
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    calls.convolution().fill();
    calls.workspace() = first;
    expectReplayedInTheEnd(calls, operation);
    for (const ucudnnOperation_t which : kOperations) {
      SCOPED_TRACE(std::string("moved: written by ") + toText(which));
      // Freed only afterwards: the address is a new one.
      Convolution& convolution = calls.convolution();
      auto other = std::make_unique<DeviceBuffer>(convolution.output(which).bytes());
      other->write(randomValues(convolution.geometry(which), 50));
      const auto former = convolution.exchange(which, std::move(other));
      const auto kept = former->read();
      expectReplayedInTheEnd(calls, operation);
      EXPECT_TRUE(kept == former->read()) << "written to";
    }
    calls.workspace().memory = otherWorkspace.get();
    expectReplayedInTheEnd(calls, operation);
    expectReplayedInTheEnd(calls, operation, kAlpha, 0);
    expectReplayedInTheEnd(calls, operation, kAlpha, 1);
    expectReplayedInTheEnd(calls, operation, kAlpha, 0.5);
    EXPECT_EQ(1, calls.call(operation, kAlpha, 1).replayed) << "forgotten";
  }
}

TEST_F(ReplayTest, NewContentsAreRead) {
  Repeated calls(replayCase());
  for (const ucudnnOperation_t operation : kOperations)
    for (const unsigned seed : {100U, 200U, 300U, 400U}) {
      for (const ucudnnOperation_t which : kOperations)
        calls.convolution().output(which).write(
            randomValues(calls.convolution().geometry(which), seed + which));
      EXPECT_EQ(seed == 100 ? 0 : 1, calls.call(operation).replayed);
    }
}

// Memory that an allocator takes back and hands out again may have its former address.
TEST_F(ReplayTest, BuffersAllocatedAnewAreRead) {
  Repeated calls(replayCase());
  for (const ucudnnOperation_t operation : kOperations)
    for (unsigned round = 0; round < 8; ++round) {
      moveOperand(calls.convolution(), kOperations[round % 3], round);
      calls.call(operation);
      calls.call(operation);
      calls.call(operation);
    }
}

TEST_F(ReplayTest, DescriptorChangedInPlaceIsAnotherCall) {
  Repeated calls(replayCase());
  const ConvolutionCase& c = calls.convolution().parameters();
  for (const ucudnnOperation_t operation : kOperations)
    for (const auto mode : {CUDNN_CROSS_CORRELATION, CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION}) {
      SCOPED_TRACE(std::string(toText(operation)) + ", mode " + std::to_string(mode));
      ASSERT_CUDNN(cudnnSetConvolutionNdDescriptor(calls.convolution().convDesc(),
                                                   2,
                                                   c.pad.data(),
                                                   c.stride.data(),
                                                   c.dilation.data(),
                                                   mode,
                                                   CUDNN_DATA_FLOAT));
      ASSERT_CUDNN(cudnnSetConvolutionMathType(calls.convolution().convDesc(), c.math));
      for (int i = 0; i < 3; ++i) calls.call(operation);
      EXPECT_EQ(1, calls.call(operation).replayed);
    }
}

TEST_F(ReplayTest, AnotherPlanIsAnotherCall) {
  Repeated calls(replayCase());
  const Workspace whole = calls.workspace();
  for (const ucudnnOperation_t operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    calls.workspace() = whole;
    expectReplayedInTheEnd(calls, operation);
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    ASSERT_CUDNN(calls.convolution().plan(
        calls.handle(), operation, calls.workspace().bytes, &plan, &entries));
    EXPECT_EQ(1, plan.replayed);
    ASSERT_LT(0U, plan.workspaceBytes);
    const std::string before = textOf(entries);
    calls.workspace().bytes = plan.workspaceBytes;
    expectReplayedInTheEnd(calls, operation);
    calls.workspace().bytes = plan.workspaceBytes - 1;
    expectReplayedInTheEnd(calls, operation);
    calls.workspace() = {};
    expectReplayedInTheEnd(calls, operation);
    calls.workspace() = whole;
    ASSERT_CUDNN(calls.convolution().plan(calls.handle(), operation, whole.bytes, &plan, &entries));
    // A GPU's times may differ so much that what smaller limits have shown is a better plan.
    const bool isKept = textOf(entries) == before;
    EXPECT_TRUE(isKept ? calls.call(operation).replayed == 1 : !onSimulator()) << before;
    // The client names a limit: the plan for it does without workspace.
    constexpr int kWithinLimit = CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT;
    for (const UcudnnHandle_t handle : {calls.handle(), calls.enqueuing()}) {
      int algorithm = 0;
      ASSERT_CUDNN(
          calls.convolution().queryPreferred(handle, operation, kWithinLimit, 0, &algorithm));
    }
    for (int i = 0; i < 3; ++i) calls.call(operation);
  }
}

class FusedReplayTest : public ReplayFixture {
 protected:
  FusedReplayTest() : ReplayFixture({}) {}
};

TEST_F(FusedReplayTest, AnythingThatChangesIsAnotherCall) {
  const ForcedSplits forced({replayCase()}, ForcedSplits::Operations::kFused);
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  Repeated calls(replayCase());
  const auto thrice = [&](Fused& fused, double alpha1, double alpha2, bool inPlace) {
    long long replayed = 0, split = 0;
    for (int i = 0; i < 3; ++i) {
      const Counts did = calls.call(UCUDNN_FORWARD, inPlace, [&](UcudnnHandle_t handle) {
        return fused.run(handle, kAlgorithm, calls.workspace(), alpha1, alpha2, inPlace);
      });
      replayed += did.replayed;
      split += did.split;
    }
    EXPECT_EQ(3, split);
    return replayed;
  };
  for (const auto mode : {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY}) {
    SCOPED_TRACE("activation " + std::to_string(mode));
    Fused fused(calls.convolution(), mode);
    Fused others(calls.convolution(), mode);  // another bias and activation
    others.bias().write(std::vector<char>(others.bias().bytes()));
    auto z = std::make_unique<DeviceBuffer>(fused.z().bytes());
    z->write(randomValues(calls.convolution().geometry(UCUDNN_FORWARD), 60));
    EXPECT_EQ(2, thrice(fused, 1, 0, false));
    EXPECT_EQ(2, thrice(fused, kAlpha, 0, false));
    EXPECT_EQ(2, thrice(fused, kAlpha, 0.5, false));
    EXPECT_EQ(2, thrice(fused, kAlpha, 0.25, false));
    EXPECT_EQ(2, thrice(fused, kAlpha, 0.25, true));
    EXPECT_EQ(2, thrice(others, kAlpha, 0.25, true));
    fused.exchangeZ(z);
    EXPECT_EQ(2, thrice(fused, kAlpha, 0.25, false));
    fused.exchangeZ(z);
    EXPECT_EQ(3, thrice(fused, kAlpha, 0.25, false)) << "forgotten";
    // A coefficient without a meaning for the mode, but part of what cuDNN is given.
    fused.setCoefficient(mode, 0.125);
    EXPECT_EQ(2, thrice(fused, kAlpha, 0.25, false));
    fused.bias().write(std::vector<char>(fused.bias().bytes()));
    EXPECT_EQ(3, thrice(fused, kAlpha, 0.25, false));
  }
}

TEST_F(ReplayTest, NothingIsReplayedWhereItIsTurnedOffOrTested) {
  for (const bool tested : {false, true}) {
    Repeated calls(replayCase());
    if (tested)
      ASSERT_CUDNN(ucudnnSetEquivalenceTest(calls.handle(), 1));
    else
      ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), 0));
    for (const ucudnnOperation_t operation : kOperations)
      for (int i = 0; i < 4; ++i) {
        const Counts did = calls.call(operation);
        EXPECT_EQ(0, did.replayed + did.graphs);
        EXPECT_EQ(1, did.split);
      }
  }
}

/// A problem of its own: its plans differ from the other tests'.
ConvolutionCase pacesCase() {
  ConvolutionCase result = replayCase();
  result.channels = 12;
  return result;
}

class PacesTest : public ReplayFixture {
 protected:
  PacesTest() : ReplayFixture({pacesCase()}) {}
  /// The device likes single samples, the host does not: two plans.
  void SetUp() override {
    ReplayFixture::SetUp();
    if (IsSkipped()) return;
    executeSql(database(),
               "UPDATE measurement SET time_ms = time_ms * 20, device_ms = device_ms * 20 WHERE "
               "size_id IN (SELECT id FROM size WHERE batch > 1)");
    executeSql(database(),
               "UPDATE measurement SET time_ms = time_ms * 400 WHERE size_id IN (SELECT id FROM "
               "size WHERE batch = 1)");
  }
};

TEST_F(PacesTest, FirstAndRepeatedCallMayHaveDifferentPlans) {
  Repeated calls(pacesCase());
  // Not filter gradients: their sums depend on how they are divided.
  for (const ucudnnOperation_t operation : {UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA}) {
    const Counts first = calls.call(operation);
    const Counts second = calls.call(operation);
    EXPECT_EQ(1, second.replayed);
    if (onSimulator()) {
      EXPECT_LT(first.convolutions, second.convolutions);
      EXPECT_EQ(7, second.convolutions);
    }
  }
}

TEST_F(PacesTest, DeterministicCallHasOnePlan) {
  const EnvironmentGuard unchecked("UCUDNN_CHECK_KERNELS", "0");  // checks are convolutions, too
  const EnvironmentGuard deterministic("UCUDNN_DETERMINISTIC", "1");
  Repeated calls(pacesCase());
  for (const ucudnnOperation_t operation : kOperations) {
    std::vector<std::vector<char>> results;
    std::vector<std::int64_t> convolutions;
    for (int i = 0; i < 4; ++i) {
      calls.convolution().fill();
      const Counts before = Counts::now();
      ASSERT_CUDNN(calls.enqueue(operation));
      results.push_back(calls.convolution().output(operation).read());
      convolutions.push_back((Counts::now() - before).convolutions);
      EXPECT_EQ(i == 0 ? 0 : 1, (Counts::now() - before).replayed);
      EXPECT_TRUE(results[0] == results.back()) << toText(operation) << " is not bit-equal";
    }
    EXPECT_EQ(convolutions[0], convolutions[1]);
  }
}

}  // namespace
}  // namespace ucudnn::test
