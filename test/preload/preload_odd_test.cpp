// Programs of the graph API whose graphs are understood where others are left alone, and those that
// are left alone: nobody hears of it who hasn't asked.
#include "preload/preload_fixture.hpp"

namespace ucudnn::test {
namespace {

class PreloadOddTest : public PreloadTest {
 protected:
  void SetUp() override {}

  /// Runs the mode with the preload and the settings, of which only words are wanted.
  Outcome say(const std::string& mode, const std::string& settings) const {
    const Outcome outcome =
        shell(settings + "UCUDNN_SIMULATOR_ARITHMETIC=off " + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    return outcome;
  }

  /// Each fused call runs by a plan, or has been compared with one.
  void expectPlanned() const {
    EXPECT_EQ(traceLines("bias_activation_forward", "\tcudnn\tits own kernel is as fast"),
              traceLines("bias_activation_forward", "\tcudnn"));
  }

  /// Runs the mode without and with the preload and the settings; what it measures is measured by a
  /// run of before.
  Outcome runWith(const std::string& mode, std::string settings) const {
    const Outcome bare = shell(plain(mode, "bare"));
    EXPECT_EQ(0, bare.status) << bare.output;
    std::remove(file("database").c_str());
    std::remove(file("trace").c_str());
    settings += "UCUDNN_DATABASE=" + file("database") + " ";
    EXPECT_EQ("", say(mode, settings).error);
    const Outcome outcome =
        shell(settings + "UCUDNN_TRACE=" + file("trace") + " " + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    expectSameResults("preloaded", "bare");
    return outcome;
  }
};

const std::string kSmall = "UCUDNN_WORKSPACE_LIMIT=262144 ";
constexpr std::size_t kLimitOfHuge = std::size_t{1} << 20;

// The engine that comes first needs no workspace.
TEST_F(PreloadOddTest, AFusedConvolutionOfAFrontendIsPlanned) {
  runWith("frontend", "UCUDNN_BENCHMARK_SHARE=always ");
  EXPECT_EQ(3, traceLines("bias_activation_forward", ""));
  expectPlanned();
}

// Measured, and until then by its own engine.
TEST_F(PreloadOddTest, AFusedConvolutionOfAFrontendIsDivided) {
  constexpr std::size_t kLimit = 400'000;  // the samples' copies fit it one by one
  ASSERT_LT(kLimit, workspaceOf(shell(plain("frontends", "bare")))) << "nothing is divided";
  for (const char* const share : {"always", "0"}) {
    SCOPED_TRACE(share);
    const Outcome outcome = runWith("frontends",
                                    std::string("UCUDNN_BENCHMARK_SHARE=") + share +
                                        " UCUDNN_WORKSPACE_LIMIT=" + std::to_string(kLimit) + " ");
    EXPECT_GE(kLimit, workspaceOf(outcome));
    EXPECT_EQ(0, traceLines("bias_activation_forward", "\tcudnn\ta graph that is not split"));
    if (share == std::string("0"))
      EXPECT_LT(0,
                traceLines("bias_activation_forward", "\tsplit", ", not measured yet\t4 x 1 eng"));
    else
      expectPlanned();
  }
}

// XLA's activations, by engines alone; a convolution that is scaled, by algorithms.
TEST_F(PreloadOddTest, WhatXlaFusesIsHeldToTheCap) {
  constexpr std::size_t kLimit = 400'000;
  for (const std::string mode : {"xla", "scaled"}) {
    ASSERT_LT(kLimit, workspaceOf(shell(plain(mode, "bare")))) << "nothing is divided";
    for (const std::string share : {"always", "0"}) {
      SCOPED_TRACE(mode + ", share " + share);
      const Outcome outcome =
          runWith(mode,
                  "UCUDNN_BENCHMARK_SHARE=" + share +
                      " UCUDNN_WORKSPACE_LIMIT=" + std::to_string(kLimit) + " ");
      EXPECT_GE(kLimit, workspaceOf(outcome));
      EXPECT_LT(0, traceLines("bias_activation_forward", ""));
      EXPECT_EQ(0, traceLines("bias_activation_forward", "a graph that is not split"));
      const auto inParts = traceLines("bias_activation_forward", "\tsplit", ", not measured yet\t");
      if (share != "0") expectPlanned();
      EXPECT_EQ(mode == "xla" && share == "0", inParts > 0) << inParts;
    }
  }
}

// cuDNN's fused call refuses such a RELU, so that no algorithm may run.
TEST_F(PreloadOddTest, NoAlgorithmRunsForAReluThatKeepsNans) {
  for (const std::string& settings : {std::string("UCUDNN_BENCHMARK_SHARE=always "),
                                      kSmall + "UCUDNN_BENCHMARK_SHARE=always ",
                                      kSmall + "UCUDNN_BENCHMARK_SHARE=0 ",
                                      kSmall + "UCUDNN_KERNELS=legacy ",
                                      std::string("UCUDNN_TOTAL_WORKSPACE_SIZE=4MiB ")}) {
    SCOPED_TRACE(settings);
    runWith("frontends", settings);
    const auto results = readResults(file("bare"));
    EXPECT_LT(0, std::count(results.begin(), results.end(), 3.5F)) << "no NaN has been kept";
    EXPECT_LT(0, traceLines("bias_activation_forward", ""));
    for (const char* const algorithm : {"GEMM/", "FFT", "WINOGRAD", "DIRECT"})
      EXPECT_EQ(0, traceLines("bias_activation_forward", algorithm)) << algorithm;
  }
}

// Measured, and until then, with a cap or without: cuDNN is slow at so many elements at once.
TEST_F(PreloadOddTest, ATensorOf2To31ElementsIsAlwaysDivided) {
  const std::string cap = "UCUDNN_WORKSPACE_LIMIT=" + std::to_string(kLimitOfHuge) + " ";
  ASSERT_LT(kLimitOfHuge, workspaceOf(shell(plain("huge", "bare"))));
  for (const bool isMeasured : {true, false})
    for (const bool isCapped : {true, false}) {
      if (isMeasured && !isCapped) continue;  // that touches all of its memory
      SCOPED_TRACE(std::string(isMeasured ? "measured" : "not measured") +
                   (isCapped ? ", with a cap" : ""));
      const Outcome outcome = runWith("huge",
                                      std::string("UCUDNN_CHECK_KERNELS=0 "  // checks touch it
                                                  "UCUDNN_BENCHMARK_SHARE=") +
                                          (isMeasured ? "always " : "0 ") + (isCapped ? cap : ""));
      if (isCapped) {
        EXPECT_GE(kLimitOfHuge, workspaceOf(outcome));
      }
      for (const char* const operation : {"forward", "backward_data", "backward_filter"}) {
        EXPECT_LT(0, traceLines(operation, "\tsplit")) << operation;
        EXPECT_EQ(traceLines(operation, ""), traceLines(operation, "\tsplit")) << operation;
        EXPECT_EQ(isMeasured ? 0 : traceLines(operation, ""),
                  traceLines(operation, ", not measured yet\t"))
            << operation;
      }
    }
}

// Whatever is left alone, and why.
TEST_F(PreloadOddTest, NothingIsSaidThatNobodyAskedFor) {
  for (const std::string& settings :
       {std::string(),
        std::string("UCUDNN_WORKSPACE_LIMIT=0 "),
        std::string("UCUDNN_WORKSPACE_LIMIT=131B "),
        kSmall,
        kSmall + "UCUDNN_DETERMINISTIC=1 ",
        kSmall + "UCUDNN_BENCHMARK_SHARE=always ",
        std::string("UCUDNN_WORKSPACE_LIMIT=0 UCUDNN_BENCHMARK_SHARE=always ")})
    for (const char* const mode : {"odd", "frontends", "graph", "autotune", "outlive"}) {
      SCOPED_TRACE(settings + mode);
      EXPECT_EQ("", say(mode, settings).error);
    }
}

// But for settings of the user's own.
TEST_F(PreloadOddTest, ABadSettingIsSaidAllTheSame) {
  const Outcome unknown = say("graph", "UCUDNN_WORKSPACE=1 ");
  EXPECT_NE(std::string::npos, unknown.error.find("UCUDNN_WORKSPACE")) << unknown.error;
  const Outcome bad = say("graph", "UCUDNN_KERNELS=some ");
  EXPECT_NE(std::string::npos, bad.error.find("UCUDNN_KERNELS=\"some\"")) << bad.error;
}

TEST_F(PreloadOddTest, TheReportCountsWhatIsToldBeyondTheCap) {
  const Outcome bare = shell("UCUDNN_SIMULATOR_ARITHMETIC=off " + plain("odd", "bare"));
  const Outcome outcome = say("odd", "UCUDNN_REPORT=1 UCUDNN_WORKSPACE_LIMIT=0 ");
  EXPECT_NE(std::string::npos,
            outcome.error.find(" of these belong to graphs that cuDNN runs alone; "))
      << outcome.error;
  EXPECT_EQ(workspaceOf(bare), workspaceOf(outcome)) << "of those graphs";
}

}  // namespace
}  // namespace ucudnn::test
