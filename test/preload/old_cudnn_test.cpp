// Programs with a cuDNN 9.1, as PyTorch 2.4 to 2.6 bring it: the simulator says that it is so old.
#include <cstdlib>

#include "preload/preload_fixture.hpp"

namespace ucudnn::test {
namespace {

class OldCudnnTest : public PreloadTest {
 protected:
  void SetUp() override {
    ::setenv("UCUDNN_SIMULATOR_CUDNN_VERSION", "90100", 1);
    PreloadTest::SetUp();
  }
  void TearDown() override { ::unsetenv("UCUDNN_SIMULATOR_CUDNN_VERSION"); }

  void expectWithinTheCap(const std::string& mode, const std::string& settings) const {
    ASSERT_LT(kLimit, workspaceOf(shell(plain(mode, "bare")))) << "nothing is capped";
    const Outcome outcome = shell(traced() + settings + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    EXPECT_GE(kLimit, workspaceOf(outcome));
    expectSameResults("preloaded", "bare");
  }
};

TEST_F(OldCudnnTest, LegacyCallsAreSplit) {
  expectSplit("find", 3);
}

TEST_F(OldCudnnTest, PlansOfTheGraphApiAreSplitWithinTheCap) {
  for (const char* const mode : {"graph", "autotune"}) {
    SCOPED_TRACE(mode);
    expectWithinTheCap(mode, "");
    for (const char* const operation : {"forward", "backward_filter"})
      EXPECT_LT(0, traceLines(operation, "\tsplit")) << operation;
  }
}

TEST_F(OldCudnnTest, ItsEnginesAreMeasuredAndRun) {
  expectWithinTheCap("graph", "UCUDNN_KERNELS=all UCUDNN_DATABASE= ");
  std::ptrdiff_t engines = 0;
  for (const char* const operation : kOperations) {
    EXPECT_EQ(3, traceLines(operation, ""));
    EXPECT_EQ(0, traceLines(operation, "a graph that is not split"));
    engines += traceLines(operation, " eng");
  }
  EXPECT_LT(0, engines);
}

TEST_F(OldCudnnTest, UntilItIsMeasuredAnEngineRunsInParts) {
  expectWithinTheCap("quick", "UCUDNN_KERNELS=all UCUDNN_DATABASE= UCUDNN_BENCHMARK_SHARE=0 ");
  for (const char* const operation : {"forward", "backward_filter"})
    EXPECT_EQ(3, traceLines(operation, "\tsplit", ", not measured yet\t2 x 2 eng")) << operation;
}

}  // namespace
}  // namespace ucudnn::test
