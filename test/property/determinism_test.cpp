// Programs that take deterministic kernels alone compute the same bits in each call and in each
// run, whatever kernels take: bits tell which kernel has run (UCUDNN_SIMULATOR_ROUNDING=kernels).
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "../preload/process.hpp"
#include "../support/temporary_directory.hpp"

namespace ucudnn::test {
namespace {

constexpr int kCalls = 100, kRuns = 20;
/// A program is measured within its calls.
constexpr const char* kMeasured = "UCUDNN_BENCHMARK_SHARE=always ";

class DeterminismTest : public ::testing::Test {
 protected:
  static std::string command(const std::string& mode, int operation, const std::string& type) {
    return std::string(DETERMINISTIC_CLIENT) + " " + mode + " " + std::to_string(operation) + " " +
           type + std::to_string(kCalls);
  }

  /// The different bits of one run's results.
  static std::set<std::string> bitsOf(const std::string& settings,
                                      const std::string& mode,
                                      int operation,
                                      const std::string& type,
                                      int seed) {
    // A program that takes the best engines, which are deterministic, gives no sign.
    const std::string program = mode == "graph" ? "UCUDNN_DETERMINISTIC=1 " : "";
    const Outcome outcome =
        shell(program + "UCUDNN_SIMULATOR_ROUNDING=kernels UCUDNN_SIMULATOR_RANDOM_TIMES=" +
              std::to_string(seed) + " " + settings + preloading(UCUDNN_PRELOAD) +
              command(mode, operation, type));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    std::istringstream lines(outcome.output);
    std::set<std::string> bits;
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) bits.insert(line);
    EXPECT_EQ(kCalls, count);
    return bits;
  }

  /// All calls of all runs of a program have the same bits.
  static void expectOneValue(const std::string& settings,
                             const std::string& mode,
                             int operation,
                             const std::string& type,
                             int runs) {
    std::set<std::string> all;
    for (int seed = 1; seed <= runs && all.size() < 2; ++seed) {
      const auto bits = bitsOf(settings, mode, operation, type, seed);
      EXPECT_EQ(1U, bits.size()) << "in one run";
      all.insert(bits.begin(), bits.end());
      EXPECT_GE(1U, all.size()) << mode << " operation " << operation << ' ' << type << settings
                                << "differs with times " << seed;
    }
  }
  static void expectOneValueOfGraphs(const std::string& settings, int runs = kRuns) {
    for (int operation = 0; operation < 4; ++operation)
      for (const char* const type : {"float ", "fma ", "half "})
        expectOneValue(settings, "graph", operation, type, runs);
  }
};

TEST_F(DeterminismTest, AGraphsBitsAreTheFirstCallsInEachRun) {
  expectOneValueOfGraphs(kMeasured);
}

// Nothing but the engines that it passes over tells of it.
TEST_F(DeterminismTest, AProgramThatPassesOverEnginesIsKnownByThat) {
  expectOneValue(kMeasured, "skips", 1, "float ", kRuns);
  expectOneValue("UCUDNN_BENCHMARK_SHARE=1 ", "skips", 1, "float ", 5);
  expectOneValue("UCUDNN_TOTAL_WORKSPACE_SIZE=2097152 ", "skips", 1, "float ", 5);
}

TEST_F(DeterminismTest, AGraphsBitsStayWhenItIsMeasuredLate) {
  expectOneValueOfGraphs("UCUDNN_BENCHMARK_SHARE=1 ", 5);
}

TEST_F(DeterminismTest, AGraphsBitsStayUnderATotal) {
  expectOneValueOfGraphs("UCUDNN_TOTAL_WORKSPACE_SIZE=2097152 ");
  expectOneValueOfGraphs(std::string(kMeasured) + "UCUDNN_TOTAL_WORKSPACE_SIZE=8KiB ", 5);
}

TEST_F(DeterminismTest, AGraphsBitsStayWithinACap) {
  for (const char* const cap : {"0", "4096B", "64KiB"})
    expectOneValueOfGraphs(std::string(kMeasured) + "UCUDNN_WORKSPACE_LIMIT=" + cap + " ", 5);
}

// Times that a database has fix what runs: in all calls of a run, which may be another kernel than
// the program's own.
TEST_F(DeterminismTest, AGraphsBitsStayInARunWithADatabase) {
  const TemporaryDirectory directory;
  const std::string settings =
      std::string(kMeasured) + "UCUDNN_DATABASE=" + directory.file("database") + " ";
  for (int operation = 0; operation < 4; ++operation) {
    std::set<std::string> later;
    for (int run = 1; run <= 3; ++run) {
      const auto bits = bitsOf(settings, "graph", operation, "float ", operation + 1);
      EXPECT_EQ(1U, bits.size()) << "operation " << operation << ", run " << run;
      if (run > 1) later.insert(bits.begin(), bits.end());
    }
    EXPECT_EQ(1U, later.size()) << "operation " << operation;
  }
}

// A legacy client that names a deterministic algorithm may name it for its speed. Its calls have
// one plan from when it is measured, here at the first.
TEST_F(DeterminismTest, ADeterministicAlgorithmsBitsAreTheFirstCalls) {
  for (const int operation : {1, 2})
    for (int seed = 1; seed <= kRuns; ++seed)
      EXPECT_EQ(1U, bitsOf(kMeasured, "legacy", operation, "", seed).size())
          << "operation " << operation << ", times " << seed;
}

// The test can fail: a program that forbids nothing is measured, and another kernel is faster.
TEST_F(DeterminismTest, BitsTellWhichKernelHasRun) {
  std::set<std::string> all;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const auto bits = bitsOf(kMeasured, "any", 2, "float ", seed);
    all.insert(bits.begin(), bits.end());
  }
  EXPECT_LT(1U, all.size());
}

}  // namespace
}  // namespace ucudnn::test
