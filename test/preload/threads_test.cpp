// Programs whose threads ask plans of the graph API for their workspace while others use the plans'
// handle. ThreadSanitizer and AddressSanitizer see more of it (misc/test.sh --sanitize).
#include "preload/preload_fixture.hpp"

namespace ucudnn::test {
namespace {

class PreloadThreadsTest : public PreloadTest {
 protected:
  void SetUp() override {}  // nothing need be measured

  static void expectRuns(const std::string& settings, const std::string& mode) {
    const Outcome outcome = shell("UCUDNN_SIMULATOR_ARITHMETIC=off " + settings +
                                  preloading(UCUDNN_PRELOAD) + PLAIN + " " + mode + " /dev/null");
    EXPECT_EQ(0, outcome.status) << outcome.output << outcome.error;
    EXPECT_EQ("", outcome.error);
  }
};

TEST_F(PreloadThreadsTest, APlanIsAskedWhileItsHandleEnds) {
  expectRuns("UCUDNN_WORKSPACE_LIMIT=64KiB ", "ends");
  expectRuns("UCUDNN_TOTAL_WORKSPACE_SIZE=1MiB ", "ends");
}

TEST_F(PreloadThreadsTest, PlansAreAskedWhileOthersRun) {
  expectRuns("UCUDNN_TOTAL_WORKSPACE_SIZE=1MiB ", "asks");
}

TEST_F(PreloadThreadsTest, PlansAreAskedWhileTheCapChanges) {
  expectRuns("", "caps");
}

// ThreadSanitizer allows a child no threads, which the division of a total takes.
TEST_F(PreloadThreadsTest, ChildrenForkedAmidCallsDoNotHang) {
  const std::string files = "UCUDNN_DATABASE=" + file("database") + " UCUDNN_LOG_LEVEL=debug " +
                            "UCUDNN_LOG_FILE=" + file("log") + " UCUDNN_TRACE=" + file("trace") +
                            " ";
  expectRuns(files, "forks");
  expectRuns("UCUDNN_TOTAL_WORKSPACE_SIZE=1MiB UCUDNN_TOTAL_WORKSPACE_POLICY=share ", "forks");
}

}  // namespace
}  // namespace ucudnn::test
