// The sums over a process's calls.
#include "context/report.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "planner/planner.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

CallRecord planned(int algorithm, double predictedMs, double undividedMs) {
  CallRecord record;
  record.steps = {{{algorithm, CUDNN_FMA_MATH}, 2, 2, false}};
  record.divided = true;
  record.predictedMs = predictedMs;
  record.workspaceBytes = std::size_t{3} << 20;
  record.undividedMs = undividedMs;
  record.undividedBytes = std::size_t{2} << 20;
  return record;
}

TEST(ReportTest, ComparesPlansWithWhatTheProgramWouldHaveRun) {
  const Problem compared = test::sampleProblem(Operation::kForward),
                unknown = test::sampleProblem(Operation::kBackwardData),
                left = test::sampleProblem(Operation::kBackwardFilter);
  CallRecord native;
  native.why = "not measured yet";
  Report report;
  for (int i = 0; i < 2; ++i)
    report.add(&compared, planned(CUDNN_CONVOLUTION_FWD_ALGO_FFT, 1.5, 4));
  // Nothing is said to be gained.
  report.add(&unknown, planned(CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, 2, 0));
  report.add(&left, native);
  const std::string text = report.text();
  for (const char* const part :
       {"4 convolution calls: 3 split, 0 undivided, 1 left to cuDNN",
        "planned calls take 5.0 ms, as measured; the program's own kernels 10.0 ms,\n        the "
        "fastest undivided ones within the limits 10.0 ms\n",
        "\n     2      2       3.0     3 MiB       8.0     2 MiB  2 x 2\n    forward ",
        "\n     1      1       2.0     3 MiB         -         -  2 x 2\n    bwd "
        "data 4x9x8 k4 3x3 ",
        "\n     1      0         -         -         -         -  cuDNN, not measured yet\n    "})
    EXPECT_NE(std::string::npos, text.find(part)) << part << "\n" << text;
}

TEST(ReportTest, WritesASplitWithoutItsKernels) {
  CallRecord record;
  record.steps = {{Kernel(), 108, 1, true}, {Kernel(), 74, 2, false}};
  EXPECT_EQ("108 + 2 x 74", record.splitText());
  record.steps = {{Kernel(), 256, 1, false}};
  EXPECT_EQ("undivided", record.splitText());
  record.divided = true;
  EXPECT_EQ("in parts", record.splitText());
}

TEST(ReportTest, FitsATerminal) {
  Problem problem = test::sampleProblem(Operation::kForward, 256, 2048);
  problem.xStrides[0] = 123456789;
  CallRecord record = planned(CUDNN_CONVOLUTION_FWD_ALGO_FFT, 1.5, 4);
  while (record.steps.size() < 30) record.steps.push_back(record.steps.front());
  Report report;
  report.add(&problem, record);
  std::istringstream lines(report.text());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_GT(count, 5U);
}

TEST(ReportTest, SaysNothingOfPlansWhereThereAreNone) {
  CallRecord native;
  native.why = "not measured yet";
  Report report;
  EXPECT_EQ(0U, report.text().find("ucudnn: no convolution call came by: ")) << report.text();
  report.add(nullptr, native);
  EXPECT_EQ(std::string::npos, report.text().find("no convolution call")) << report.text();
  EXPECT_EQ(std::string::npos, report.text().find("planned calls")) << report.text();
}

// The gain is what the program's own kernels would have taken more.
TEST(ReportTest, GainsAreAgainstTheProgramsOwnKernels) {
  const Problem problem = test::sampleProblem(Operation::kForward);
  Report report;
  CallRecord record = planned(CUDNN_CONVOLUTION_FWD_ALGO_FFT, 1, 1.5);
  record.ownMs = 251;
  for (int i = 0; i < 2; ++i) report.add(&problem, record);
  const std::string text = report.text();
  EXPECT_NE(std::string::npos, text.find("the plans have gained 500 ms so far")) << text;
  EXPECT_NE(std::string::npos,
            text.find("take 2.0 ms, as measured; the program's own kernels 502.0 ms,\n        the "
                      "fastest undivided ones within the limits 3.0 ms\n"))
      << text;
}

TEST(ReportTest, SaysWhenMeasuringPaysBack) {
  const std::string took = "ucudnn: measuring and planning took ";
  EXPECT_EQ(took + "no time; the plans have gained nothing so far\n", payBackText(0, 0, 9));
  EXPECT_EQ(took + "no time; the plans have gained 3.0 s so far\n", payBackText(0.01, 3, 9));
  EXPECT_EQ(took + "2.0 s; the plans have gained nothing so far\n", payBackText(2, -1, 9));
  EXPECT_EQ(took + "no time; the plans have gained 2 ms so far\n", payBackText(0.01, 0.0023, 9));
  EXPECT_EQ(took +
                "2.0 s; the plans have gained 40 ms so far,\n        which pays for it after 5 "
                "minutes more\n",
            payBackText(2, 0.04, 8));
  EXPECT_EQ(took + "2.0 s; the plans have gained 3.0 s so far,\n        which has paid for it\n",
            payBackText(2, 3, 9));
  // 1 s in 10 s of running, behind 2 s of measuring: 1 s is missing.
  EXPECT_EQ(
      took +
          "2.0 s; the plans have gained 1.0 s so far,\n        which pays for it after 10 s more\n",
      payBackText(2, 1, 12));
  for (const auto& [missing, text] : {std::pair(30.0, "5 minutes"),
                                      {3600.0, "10 hours"},
                                      {86400.0, "10 days"},
                                      {86400.0 * 365, "more than a year"}})
    EXPECT_NE(
        std::string::npos,
        payBackText(missing + 1, 1, missing + 11).find("after " + std::string(text) + " more"))
        << payBackText(missing + 1, 1, missing + 11);
}

TEST(ReportTest, SaysWhatMeasuringUnaskedHasTaken) {
  CallRecord native;
  native.why = "not measured yet";
  Report report;
  report.add(nullptr, native);
  EXPECT_EQ(std::string::npos, report.text().find("not asked for")) << report.text();
  addSlice(planner().statistics(), 1500);
  addSlice(planner().statistics(), 500);
  EXPECT_NE(std::string::npos,
            report.text().find("ucudnn: 2.0 s of measuring was not asked for: 2 calls waited for "
                               "it, 1500 ms at most\n"))
      << report.text();
}

// Their workspace is the program's.
TEST(ReportTest, CountsGraphsThatAreToldMoreThanTheCap) {
  CallRecord within, beyond;
  within.why = beyond.why = reason::kUnknownGraph;
  beyond.beyondBytes = std::size_t{5} << 20;
  Report report;
  report.add(nullptr, within);
  EXPECT_EQ(std::string::npos, report.text().find("beyond")) << report.text();
  for (int i = 0; i < 2; ++i) report.add(nullptr, beyond);
  const std::string text = report.text();
  EXPECT_NE(std::string::npos, text.find("3 left to cuDNN: a graph that is not split\n")) << text;
  EXPECT_NE(std::string::npos,
            text.find("2 of these belong to graphs that cuDNN runs alone; they need up to 5 MiB "
                      "more workspace than UCUDNN_WORKSPACE_LIMIT\n"))
      << text;
}

// It prints when the child ends, and the thread that held the lock is not there.
TEST(ReportTest, AForkedChildWaitsForNoThreadOfItsParent) {
  Report report;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    const Problem problem = test::sampleProblem(Operation::kForward);
    while (!ends) report.add(&problem, planned(0, 1, 2));
  });
  while (report.text().find("no convolution") != std::string::npos) std::this_thread::yield();
  int failed = 0;
  for (int i = 0; i < 50 && failed == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // ends one that waits for ever
      ::_exit(report.text().empty() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  ends = true;
  other.join();
  EXPECT_EQ(0, failed);
}

}  // namespace
}  // namespace ucudnn
