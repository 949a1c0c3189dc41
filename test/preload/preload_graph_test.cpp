// Programs that use cuDNN's graph API and know nothing of μ-cuDNN.
#include <cstdio>

#include "preload/preload_fixture.hpp"
#include "support/no_errata.hpp"

namespace ucudnn::test {
namespace {

using PreloadGraphTest = PreloadTest;

// Why a call is left to cuDNN once it has been measured.
constexpr const char* kOwnIsBest = "\tcudnn\tits own kernel is as fast";

// The first engines that need no tensor cores compute by FFT forward and for the filter.
TEST_F(PreloadGraphTest, SplitsPlansOfTheGraphApi) {
  runBoth("graph");
  for (const char* const operation : {"forward", "backward_filter"}) {
    EXPECT_EQ(3, traceLines(operation, "transform=fourier")) << operation;
    EXPECT_EQ(3, traceLines(operation, "\tsplit", "FFT/fma")) << operation;
  }
  for (const char* const operation : {"backward_data", "bias_activation_forward"}) {
    EXPECT_EQ(3, traceLines(operation, "transform=none")) << operation;
    EXPECT_EQ(0, traceLines(operation, "FFT")) << operation;
    EXPECT_EQ(3, traceLines(operation, kOwnIsBest)) << operation;
  }
}

// Each of the plans that a program tries runs as ours, and no less exactly, or is the fastest
// itself. Split plans run FFT, which is the fastest here.
TEST_F(PreloadGraphTest, SplitsPlansThatAProgramTimes) {
  runBoth("autotune");
  for (const char* const operation : kOperations) {
    EXPECT_LT(1, traceLines(operation, "")) << operation;
    EXPECT_LT(0, traceLines(operation, kOwnIsBest)) << operation;
    EXPECT_EQ(traceLines(operation, kOwnIsBest), traceLines(operation, "\tcudnn")) << operation;
    EXPECT_LT(0, traceLines(operation, "transform=none")) << operation;
    EXPECT_EQ(0, traceLines(operation, "transform=none", "FFT")) << operation;
    EXPECT_EQ(0, traceLines(operation, "transform=none", "WINOGRAD")) << operation;
  }
  for (const char* const operation : {"forward", "backward_data", "backward_filter"}) {
    EXPECT_EQ(1, traceLines(operation, "transform=fourier")) << operation;
    EXPECT_EQ(1, traceLines(operation, "transform=fourier", "2 x 2 FFT/fma")) << operation;
  }
  // The client's Winograd engine allows either.
  EXPECT_EQ(1, traceLines("backward_filter", "math=fma N=4", "2 x 2 FFT/fma"));
}

// The first engines forward and for the filter need more than the limit.
TEST_F(PreloadGraphTest, UntilItIsMeasuredAnEngineRunsInParts) {
  ASSERT_EQ(0, shell(plain("graph", "bare")).status);
  const std::string unmeasured =
      "UCUDNN_BENCHMARK_SHARE=0 UCUDNN_WORKSPACE_LIMIT=" + std::to_string(kLimit) +
      " UCUDNN_TRACE=" + file("trace") + " ";
  const Outcome outcome = shell(unmeasured + "UCUDNN_REPORT=1 " + preloaded("quick", "preloaded"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  expectSameResults("preloaded", "bare");
  EXPECT_NE(std::string::npos, outcome.error.find("6 ran in parts within the limit"))
      << outcome.error;
  for (const char* const operation : {"forward", "backward_filter"})
    EXPECT_EQ(3, traceLines(operation, "\tsplit", ", not measured yet\t2 x 2 eng")) << operation;
  for (const char* const operation : {"backward_data", "bias_activation_forward"})
    EXPECT_EQ(3, traceLines(operation, "\tcudnn\tnot measured yet")) << operation;
}

TEST_F(PreloadGraphTest, AGraphsWorkspaceIsOursUnderATotal) {
  ASSERT_EQ(0, shell(plain("graph", "bare")).status);
  const std::string total = traced() + "UCUDNN_TOTAL_WORKSPACE_SIZE=4MiB ";
  shell(total + "UCUDNN_SIMULATOR_ARITHMETIC=off " + preloaded("graph", "measured"));
  const Outcome outcome = shell(total + preloaded("graph", "preloaded"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ(0U, workspaceOf(outcome));
  expectSameResults("preloaded", "bare");
  for (const char* const operation : {"forward", "backward_filter"})
    EXPECT_LT(0, traceLines(operation, "FFT")) << operation;
  for (const char* const operation : {"backward_data", "bias_activation_forward"})
    EXPECT_EQ(traceLines(operation, ""), traceLines(operation, "transform=none")) << operation;
}

TEST_F(PreloadGraphTest, APlanThatIsNotAskedAboutIsCudnns) {
  ASSERT_EQ(0, shell(plain("unasked", "bare")).status);
  const Outcome outcome = shell(traced() + preloaded("unasked", "preloaded"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ(readText(file("bare")), readText(file("preloaded")));
  for (const char* const operation : kOperations)
    EXPECT_EQ(3, traceLines(operation, "\tcudnn\tthe workspace of its plan was not asked for"))
        << operation;
}

// As a program does that keeps the workspace's size beside the engine's number.
TEST_F(PreloadGraphTest, APlanThatIsNotAskedRunsInWhatAnotherLikeItWasTold) {
  runBoth("twins");
  for (const char* const operation : {"forward", "backward_filter"})
    EXPECT_EQ(3, traceLines(operation, "\tsplit")) << operation;
  for (const char* const operation : {"backward_data", "bias_activation_forward"})
    EXPECT_EQ(3, traceLines(operation, "\tcudnn")) << operation;
}

TEST_F(PreloadGraphTest, OneSampleIsPlannedToo) {
  runBoth("single");
  for (const char* const operation : kOperations)
    EXPECT_EQ(3, traceLines(operation, "N=1\tundivided") + traceLines(operation, kOwnIsBest))
        << operation;
}

TEST_F(PreloadGraphTest, ADescriptorThatIsFilledTwiceIsOfTheSecondGraph) {
  expectBareResults("refill");
}
TEST_F(PreloadGraphTest, APlanMayOutliveItsHandle) {
  expectBareResults("outlive");
  EXPECT_EQ(1, traceLines("forward", "\tcudnn\ta graph that is not split"));
}
TEST_F(PreloadGraphTest, APackMayHoldMoreThanAGraphNeeds) {
  expectBareResults("crowd");
  EXPECT_EQ(1, traceLines("forward", "")) << "it is read";
}
// cuDNN's algorithms that are need more than the limit.
TEST_F(PreloadGraphTest, ADeterministicEngineStaysDeterministic) {
  expectBareResults("exact", "UCUDNN_WORKSPACE_LIMIT=0 UCUDNN_LOG_LEVEL=error ");
  EXPECT_LT(0, traceLines("backward_filter", ""));
  EXPECT_EQ(0, traceLines("backward_filter", "ALGO_0/") + traceLines("backward_filter", "ALGO_3/"));
}

TEST_F(PreloadGraphTest, APlansWorkspaceStaysAsItWasTold) {
  expectBareResults("twice",
                    "UCUDNN_WORKSPACE_LIMIT=0 UCUDNN_DETERMINISTIC=1 UCUDNN_LOG_LEVEL=error ");
}
// Under TF32 cuDNN's deterministic algorithms need a copy of x: within the limit there is only a
// split, or an engine.
constexpr const char* kSplitOnly =
    "UCUDNN_WORKSPACE_LIMIT=500000 UCUDNN_DETERMINISTIC=1 UCUDNN_LOG_LEVEL=error ";

TEST_F(PreloadGraphTest, NoSplitIsPromisedThatTheSettingsForbid) {
  for (const char* const setting :
       {"UCUDNN_BATCH_SIZE_POLICY=undivided ", "UCUDNN_MAX_ERROR=1e-15 "}) {
    SCOPED_TRACE(setting);
    expectBareResults("fast", std::string(kSplitOnly) + setting);
  }
}
TEST_F(PreloadGraphTest, APromisedSplitNeedsNoMeasurement) {
  const std::string settings = std::string(kSplitOnly) + "UCUDNN_DATABASE= ";
  expectBareResults("fast", settings + "UCUDNN_BENCHMARK_SHARE=0 ");
  expectBareResults("capture", settings + "UCUDNN_BENCHMARK_SHARE=0 ");
}

/// A program that nobody traces: what is found of its plans is kept with them.
class PreloadAgainTest : public PreloadGraphTest {
 protected:
  void SetUp() override {}  // nothing need be measured

  void run(const std::string& mode) {
    ASSERT_EQ(0, shell(plain(mode, "bare")).status);
    const Outcome outcome =
        shell("UCUDNN_DATABASE= UCUDNN_BENCHMARK_SHARE=0 " + preloaded(mode, "preloaded"));
    ASSERT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    expectSameResults("preloaded", "bare");
    const std::size_t place = outcome.output.find("left ");
    ASSERT_NE(std::string::npos, place) << outcome.output;
    ASSERT_EQ(2,
              std::sscanf(outcome.output.c_str() + place, "left %d\nplanned %d", &left, &planned));
    EXPECT_EQ(132, left + planned);
  }

  int left = 0, planned = 0;  ///< calls
};

TEST_F(PreloadAgainTest, WhatIsLeftAloneStaysSo) {
  run("again");
  EXPECT_EQ(0, planned);
}

TEST_F(PreloadAgainTest, WhatIsLeftAloneRunsItsPlanOnceItIsMeasured) {
  run("'again measured'");
  EXPECT_LT(0, left);
  EXPECT_LT(0, planned);
}

class PreloadPartsTest : public PreloadGraphTest {
 protected:
  /// Nothing is known, and nothing may be measured.
  void runUnmeasured(const std::string& mode, const std::string& settings) const {
    ASSERT_EQ(0, shell(plain(mode, "bare")).status);
    const Outcome outcome =
        shell(settings + "UCUDNN_BENCHMARK_SHARE=0 UCUDNN_TRACE=" + file("trace") + " " +
              preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    expectSameResults("preloaded", "bare");
  }
};

// Parts of the batch fit, and cost no measurement.
TEST_F(PreloadPartsTest, NothingIsMeasuredForWantOfWorkspace) {
  runUnmeasured("fast", kSplitOnly);
  EXPECT_LT(0, traceLines("backward_filter", ""));
  EXPECT_EQ(traceLines("backward_filter", ""),
            traceLines("backward_filter", "\tsplit", ", not measured yet\t4 x 1 eng"));
}

// Parts with the copy of their output in the output. They are asked about ever more seldom: each
// question counts calls, which pay for measuring.
TEST_F(PreloadPartsTest, PartsThatBorrowStayUntilMeasuringPays) {
  const std::string settings =
      "UCUDNN_WORKSPACE_LIMIT=1600000 UCUDNN_REPORT=1 UCUDNN_TRACE=" + file("trace") + " ";
  ASSERT_EQ(0, shell(plain("'first often'", "bare")).status);
  const Outcome outcome = shell(settings + preloaded("'first often'", "preloaded"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  expectSameResults("preloaded", "bare");
  EXPECT_EQ(std::string::npos, outcome.error.find("not asked for")) << outcome.error;
  EXPECT_EQ(600, traceLines("forward", "\tsplit, not measured yet\t1 x 24 eng"));
}

// One call of cuDNN's or CUDA's fails. Where the program makes it, the program ends; but no
// execution of a plan fails.
TEST_F(PreloadPartsTest, APassingFailureFailsNoExecution) {
  const std::string settings =
      std::string(kSplitOnly) + "UCUDNN_BENCHMARK_SHARE=0 UCUDNN_SIMULATOR_ARITHMETIC=off ";
  int failed = 0;
  for (int n = 20; n < 650; n += 5) {
    const Outcome outcome = shell(settings + "UCUDNN_SIMULATOR_FAIL_CALL=" + std::to_string(n) +
                                  " UCUDNN_LOG_LEVEL=off " + preloaded("fast", "preloaded"));
    failed += outcome.status == 3 ? 1 : 0;
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 3) << n << ": " << outcome.status;
    EXPECT_EQ(std::string::npos, outcome.output.find("cudnnBackendExecute"))
        << n << ": " << outcome.output;
  }
  EXPECT_LT(0, failed) << "no call of the program's own";
}

// Each engine is called twice, then captured.
TEST_F(PreloadPartsTest, GroupsAndVolumesRunInPartsAlsoWhereTheyAreCaptured) {
  runUnmeasured("shapes",
                "UCUDNN_WORKSPACE_LIMIT=100000 CUDNN_ERRATA_JSON_FILE=" +
                    writeNoErrata(file("errata.json")) + " ");
  for (const char* const operation : kOperations)
    for (const char* const shape : {"groups=2", "x=float:*,48,6,6,6/"}) {
      const auto inParts = traceLines(operation, shape, "\tsplit, not measured yet\t");
      EXPECT_LT(0, inParts) << operation << ' ' << shape;
      EXPECT_EQ(0, inParts % 3) << operation << ' ' << shape;
    }
}

}  // namespace
}  // namespace ucudnn::test
