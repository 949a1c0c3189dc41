// Programs that know nothing of μ-cuDNN, with libucudnn_preload.so in front of cuDNN.
#include <filesystem>
#include <regex>

#include "preload/preload_fixture.hpp"

namespace ucudnn::test {
namespace {

// Each mode calls every operation three times with a handle.
TEST_F(PreloadTest, SplitsWhatAProgramHasQueried) {
  expectSplit("query", 3);
}
TEST_F(PreloadTest, SplitsWhatAProgramHasMeasured) {
  expectSplit("find", 3);
}
TEST_F(PreloadTest, SplitsWhatAProgramNeverAsksAbout) {
  expectSplit("fixed", 3);
}
TEST_F(PreloadTest, ServesThreads) {
  expectSplit("threads", 9);
}
// CUDA refuses to wait for a device while any stream of it is captured, and cuDNN crashes then.
TEST_F(PreloadTest, ThreadsMayWaitForTheDeviceBesideOthersCalls) {
  expectSplit("waits", 27, kReplaying);
}
// Nobody sees such a wait come: only who captures nothing is safe from it.
TEST_F(PreloadTest, ThreadsMayWaitForTheDeviceByWaysThatWeDoNotSee) {
  expectSplit("unseen", 27);
  EXPECT_EQ("0", capturesIn("unseen"));
}
TEST_F(PreloadTest, CapturesWhatTwoThreadsCallInTurnsIfItIsToldTo) {
  expectSplit("turns", 18, kReplaying);
  expectAllReplayedButTheFirst();
}
// Neither to replay calls nor to time kernels, whatever the program does.
TEST_F(PreloadTest, CapturesNothingUnlessItIsToldTo) {
  for (const char* const mode : {"turns", "find", "graph"}) {
    std::filesystem::remove(file("database"));
    EXPECT_EQ("0", capturesIn(mode)) << mode;
    std::filesystem::remove(file("database"));
    EXPECT_NE("0", capturesIn(mode, kReplaying)) << mode;
  }
}
TEST_F(PreloadTest, AdoptsHandlesThatItHasNotSeenCreatedOrDestroyed) {
  expectSplit("outside", 15);
}
TEST_F(PreloadTest, GoesWithExec) {
  expectSplit("exec", 3);
}
TEST_F(PreloadTest, ServesStaticDestructors) {
  expectSplit("atexit", 3);
}
TEST_F(PreloadTest, LivesInForkedChildren) {
  expectSplit("fork", 6);
}

// Nothing is printed that nobody asked for.
TEST_F(PreloadTest, WhatIsNotMeasuredYetIsNothingToWarnOf) {
  const std::string settings =
      "UCUDNN_BENCHMARK_SHARE=0 UCUDNN_WORKSPACE_LIMIT=" + std::to_string(kLimit) +
      " UCUDNN_DATABASE=" + file("new") + " ";
  for (const std::string mode : {"graph", "query"}) {
    const Outcome outcome = shell(settings + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error) << mode;
  }
}

TEST_F(PreloadTest, FindsACudnnOfLocalScope) {
  ASSERT_EQ(0, shell(plain("query", "bare")).status);
  const std::string host = std::string(HOST) + " " PLUGIN " query " + file("preloaded");
  const Outcome outcome = shell(traced() + preloading(UCUDNN_PRELOAD) + host);
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ("", outcome.error);
  expectSameResults("preloaded", "bare");
  for (const char* const operation : kOperations)
    EXPECT_EQ(3, traceLines(operation, "\tsplit")) << operation;
}

// As PyTorch is: a library that Python has loaded, linked with a shared runtime.
TEST_F(PreloadTest, CapturesWhatTwoThreadsOfALibraryOfLocalScopeCall) {
  const std::string host = std::string(HOST) + " " PLUGIN " turns " + file("preloaded");
  const Outcome outcome = shell(traced() + kReplaying + preloading(UCUDNN_PRELOAD) + host);
  EXPECT_EQ(0, outcome.status) << outcome.output;
  expectAllReplayedButTheFirst();
}

// Each library gets the cuDNN that it is linked with, whoever calls first, and ours is planned for.
TEST_F(PreloadTest, ACudnnOfAnotherVersionInTheSameProcessIsItsClients) {
  ASSERT_EQ(0, shell(plain("query", "bare")).status);
  const std::string loaded = file("preloaded");
  for (const std::string& line :
       {std::string(HOST) + " " PLUGIN " query " + loaded + " " OTHER_PLUGIN,  // one by one
        std::string(BOTH) + " query " + loaded})                               // from the start
    for (const std::string setting : {"", "UCUDNN_DISABLE=1 "}) {
      std::filesystem::remove(file("trace"));
      const Outcome outcome = shell(traced() + setting + preloading(UCUDNN_PRELOAD) + line);
      EXPECT_EQ(0, outcome.status) << outcome.output;
      // Before ours is loaded nobody knows that it will be.
      EXPECT_EQ(setting.empty() && line.find(HOST) == 0 ? 1 : 0,
                std::count(outcome.error.begin(), outcome.error.end(), '\n'))
          << outcome.error;
      const std::string other = "other 0 0 7000 0\n";
      EXPECT_EQ(0U, outcome.output.find(other)) << outcome.output;
      EXPECT_EQ(outcome.output.size() - other.size(), outcome.output.rfind(other));
      expectSameResults("preloaded", "bare");
      for (const char* const operation : kOperations)
        EXPECT_EQ(setting.empty() ? 3 : 0, traceLines(operation, "\tsplit")) << operation;
    }
}

TEST_F(PreloadTest, KeepsEveryAnswerWithinTheLimit) {
  for (const std::size_t limit : {kLimit, std::size_t{1000000}, std::size_t{0}})
    for (const std::string mode : {"query", "find", "graph", "autotune"}) {
      SCOPED_TRACE(mode + " " + std::to_string(limit));
      // An engine is not exchanged for one that is less deterministic, whatever the limit.
      if (limit == 0 && (mode == "graph" || mode == "autotune")) continue;
      const std::string setting = "UCUDNN_WORKSPACE_LIMIT=" + std::to_string(limit) + " ";
      const Outcome outcome =
          shell(setting + "UCUDNN_SIMULATOR_ARITHMETIC=off " + preloaded(mode, "results"));
      EXPECT_EQ(0, outcome.status) << outcome.output;
      EXPECT_LE(workspaceOf(outcome), limit);
    }
  EXPECT_GT(workspaceOf(shell(plain("query", "bare"))), kLimit);
}

TEST_F(PreloadTest, WritesATraceForEachProcess) {
  const Outcome outcome =
      shell(variables() + "UCUDNN_TRACE=" + file("trace.%p") + " " + preloaded("fork", "results"));
  EXPECT_EQ(0, outcome.status);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file(".")))
    if (entry.path().filename().string().rfind("trace.", 0) == 0) {
      ++files;
      EXPECT_EQ(12U, linesOf(entry.path()).size());
    }
  EXPECT_EQ(2, files);
}

TEST_F(PreloadTest, TraceSaysWhyCallsPassThrough) {
  const Outcome outcome =
      shell("UCUDNN_TRACE=" + file("trace") + " " + preloaded("fixed", "results"));
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ(3, traceLines("forward", "\tcudnn\tnot measured yet\tstream 0x0\tup to 2097152 bytes"));
}

TEST_F(PreloadTest, ReportSumsUpWhatBecameOfTheCalls) {
  const std::string run = preloading("") + UCUDNN_TOOL " run --report ";
  const Outcome outcome = shell(variables() + kReplaying + run + plain("find", "results"));
  EXPECT_EQ(0, outcome.status);
  const auto contains = [&](const std::string& words) {
    return outcome.error.find(words) != std::string::npos;
  };
  EXPECT_TRUE(contains("ucudnn: 12 convolution calls: 12 split, 0 undivided, 0 left to cuDNN; 8 "))
      << outcome.error;
  for (const char* const operation : {"forward", "bwd data", "bwd filter"})
    EXPECT_TRUE(contains("  2 x 2\n    " + std::string(operation) + " 384x")) << operation;
  // FFT is the fastest undivided too, but does not fit.
  EXPECT_TRUE(contains("     3      3       0.0   1.7 MiB       0.1       0 B  2 x 2\n"))
      << outcome.error;
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (std::size_t at = outcome.error.find(words); at != std::string::npos;
         at = outcome.error.find(words, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(3, count("ucudnn: ")) << outcome.error;
  EXPECT_EQ(4, count("  2 x 2\n")) << outcome.error;
}

TEST_F(PreloadTest, ReportSaysWhyCallsPassThrough) {
  const std::string run = preloading("") + UCUDNN_TOOL " run --report ";
  const Outcome outcome = shell(run + plain("fixed", "results"));
  EXPECT_NE(std::string::npos, outcome.error.find("ucudnn: 12 left to cuDNN: not measured yet\n"))
      << outcome.error;
}

TEST_F(PreloadTest, DisabledNothingIsLoaded) {
  ASSERT_EQ(0, shell(plain("find", "bare")).status);
  const Outcome outcome =
      shell(traced() + "LD_DEBUG=files UCUDNN_DISABLE=1 " + preloaded("find", "preloaded"));
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ(readText(file("bare")), readText(file("preloaded")));
  EXPECT_EQ("", readText(file("trace")));
  EXPECT_NE(std::string::npos, outcome.error.find("libucudnn_preload.so"));
  EXPECT_EQ(std::string::npos, outcome.error.find("libucudnn.so"));
}

TEST_F(PreloadTest, BadSettingsLeaveTheProgramToCudnn) {
  ASSERT_EQ(0, shell(plain("query", "bare")).status);
  for (const std::string setting : {"UCUDNN_KERNELS=some", "UCUDNN_TRACE=/nonexistent/x"}) {
    const Outcome outcome = shell(setting + " " + preloaded("query", "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ(readText(file("bare")), readText(file("preloaded")));
    EXPECT_NE(std::string::npos, outcome.error.find(setting.substr(0, setting.find('=') + 1)))
        << outcome.error;
  }
}

TEST_F(PreloadTest, WithoutTheLibraryBesideItEverythingPassesThrough) {
  const std::string copy = file("libucudnn_preload.so");
  std::filesystem::copy_file(UCUDNN_PRELOAD, copy);
  ASSERT_EQ(0, shell(plain("query", "bare")).status);
  const Outcome outcome = shell(preloading(copy) + plain("query", "preloaded"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ(readText(file("bare")), readText(file("preloaded")));
  EXPECT_EQ(1, std::count(outcome.error.begin(), outcome.error.end(), '\n')) << outcome.error;
  EXPECT_NE(std::string::npos, outcome.error.find(UCUDNN_SONAME)) << outcome.error;
}

TEST_F(PreloadTest, ServesAClientOfTheLibraryAsBefore) {
  const std::string work = " run 'plain;0 3 0 7 8 8 1 1 0 1 2 9 8 3 3 1 1 1 1 1 1'";
  const Outcome bare = shell(std::string(LIBRARY_CLIENT) + work);
  const Outcome outcome = shell(preloading(UCUDNN_PRELOAD) + LIBRARY_CLIENT + work);
  EXPECT_EQ(0, bare.status) << bare.output;
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ(bare.output, outcome.output);
}

TEST(PreloadAlone, OtherProgramsNeverNoticeIt) {
  const Outcome bare = shell("/bin/ls /");
  const Outcome outcome = shell("LD_DEBUG=files " + preloading(UCUDNN_PRELOAD) + "/bin/ls /");
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ(bare.output, outcome.output);
  EXPECT_NE(std::string::npos, outcome.error.find("libucudnn_preload.so"));
  std::vector<std::string> libraries = {"libucudnn.so", "libcudnn", "libcudart"};
  if (preloading("").empty()) libraries.push_back("libstdc++");  // which UBSan's runtime needs
  for (const std::string& library : libraries)
    EXPECT_EQ(std::string::npos, outcome.error.find(library)) << library;
}

TEST(PreloadAlone, ACudnnOfAnotherVersionPassesThroughWithOneWarning) {
  for (const std::string& line : {preloading(UCUDNN_PRELOAD) + OTHER_CLIENT " " OTHER_CUDNN,
                                  preloading(UCUDNN_PRELOAD ":" OTHER_CUDNN) + OTHER_CLIENT}) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(0, outcome.status);
    EXPECT_EQ("0 0 7000 0\n", outcome.output);
    EXPECT_EQ(1, std::count(outcome.error.begin(), outcome.error.end(), '\n')) << outcome.error;
    EXPECT_NE(std::string::npos, outcome.error.find("another than libcudnn.so.9")) << outcome.error;
    for (const char* const quiet : {"UCUDNN_LOG_LEVEL=error ", "UCUDNN_DISABLE=1 "})
      EXPECT_EQ("", shell(quiet + line).error);
  }
}

TEST(PreloadAlone, AnotherRuntimeLeavesAllToCudnnWithOneLineThatHelps) {
  const std::string line = "LD_LIBRARY_PATH=" GUARD_FOLDER " " +
                           preloading(UCUDNN_PRELOAD ":" OTHER_RUNTIME) + GUARD_CLIENT;
  const Outcome outcome = shell(line);
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ(std::string::npos, outcome.output.find("planned")) << outcome.output;
  const std::string major = std::regex_replace(RUNTIME, std::regex(".*\\."), "");
  EXPECT_EQ("ucudnn: calls are left to cuDNN: built for CUDA " + major +
                ", and the program has libcudart.so.11.0. Install it anew where the program is: "
                "pip install ./misc/python\n",
            outcome.error);
  EXPECT_EQ("", shell("UCUDNN_LOG_LEVEL=error " + line).error);
}

TEST(PreloadAlone, AProgramMayDropItsCudnn) {
  const Outcome outcome = shell(preloading(UCUDNN_PRELOAD) + OTHER_CLIENT " " OTHER_CUDNN " again");
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ("0 0 7000 0\n0 0 7000 0\n", outcome.output);
}

TEST(PreloadAlone, WhatIsCalledBelowAPlannedCallIsCudnns) {
  const TemporaryDirectory directory;
  std::filesystem::copy_file(UCUDNN_PRELOAD, directory.file("libucudnn_preload.so"));
  const std::string library = UCUDNN_SONAME;
  std::filesystem::create_symlink(GUARD_FOLDER "/" + library, directory.file(library));
  const Outcome outcome = shell("LD_LIBRARY_PATH=" GUARD_FOLDER " " +
                                preloading(directory.file("libucudnn_preload.so")) + GUARD_CLIENT);
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ("", outcome.error);
  EXPECT_EQ(
      "the program is unmodified\n"
      "waits for a device are not seen\n"  // the client has no shared runtime
      "planned FindConvolutionForwardAlgorithm\n"
      "native FindConvolutionForwardAlgorithm\n"
      "native GetConvolutionForwardWorkspaceSize\n"
      "planned GetConvolutionForwardWorkspaceSize\n"
      "native GetConvolutionForwardWorkspaceSize\n"
      "native GetExecutionPlanWorkspaceSize\n"
      "native BackendGetAttribute\n"
      "50 bytes\n"
      "native GetExecutionPlanWorkspaceSize\n"
      "native BackendGetAttribute\n"
      "70 bytes\n"
      "native BackendPopulateCudaGraph\n"
      "3013\n",  // CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API
      outcome.output);
}

TEST(PreloadAlone, WithoutACudnnCallsFailAsUninitialized) {
  const Outcome outcome = shell(preloading(UCUDNN_PRELOAD) + OTHER_CLIENT);
  EXPECT_EQ(0, outcome.status);
  EXPECT_EQ("1001 1001 0 1001\n", outcome.output);  // CUDNN_STATUS_NOT_INITIALIZED
}

}  // namespace
}  // namespace ucudnn::test
