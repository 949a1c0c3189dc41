// What `ucudnn plan` shows: its front, and --accuracy with kernels that round.
#include <fstream>
#include <regex>

#include "tool/simulated_tool.hpp"

namespace ucudnn::test {
namespace {

const std::string kRounding = "UCUDNN_SIMULATOR_ROUNDING=1 UCUDNN_SIMULATOR_RANDOM_TIMES=2";

class AccuracyTest : public ToolTest {
 protected:
  void SetUp() override {
    std::ofstream(layers_)
        << "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h\n"
           "wide,12,12,4,8,4,5,5,2,2,1,1\n";
  }

  std::string layers_ = directory_.file("layers.csv");
};

TEST_F(AccuracyTest, ShowsWhatEachErrorCosts) {
  const Json result = run("plan --accuracy --math fma " + layers_, kRounding);
  EXPECT_EQ(nullptr, result.at("settings").at("max_error"));
  ASSERT_EQ(3U, result.at("rows").size());
  std::size_t points = 0;
  for (const Json& row : result.at("rows")) {
    SCOPED_TRACE(row.at("operation").get<std::string>());
    const Json& front = row.at("accuracy");
    ASSERT_FALSE(front.empty());
    double error = 1, timeMs = 0;
    for (const Json& point : front) {
      EXPECT_LE(point.at("error").get<double>() * 1.25, error);
      EXPECT_GT(point.at("time_ms").get<double>(), timeMs);
      EXPECT_LE(point.at("workspace_bytes").get<std::size_t>(), std::size_t{64} << 20);
      error = point.at("error");
      timeMs = point.at("time_ms");
      int samples = 0;
      for (const Json& part : point.at("configuration"))
        samples += part.at("batch").get<int>() * part.at("count").get<int>();
      EXPECT_EQ(8, samples);
    }
    EXPECT_LT(error, 1e-6);
    points += front.size();
    EXPECT_GT(row.at("configuration_error").get<double>(), 0);
    for (const Json& candidate : row.at("candidates"))
      EXPECT_GT(candidate.at("error").get<double>(), 0) << candidate;
  }
  EXPECT_GT(points, 3U);
  EXPECT_NE(std::string::npos, outcome_.output.find("\n  accuracy\n")) << outcome_.output;
}

TEST_F(AccuracyTest, APlanWithinAnErrorIsTheFrontsPoint) {
  const std::string arguments = " --math fma --operations forward " + layers_;
  const Json front = run("plan --accuracy" + arguments, kRounding).at("rows").at(0).at("accuracy");
  ASSERT_GT(front.size(), 1U);
  for (const Json& point : front) {
    const double error = point.at("error").get<double>() * 1.26;
    const Json result =
        run("plan --max-error " + std::to_string(error * 1e6) + "e-6" + arguments, kRounding);
    EXPECT_NEAR(error, result.at("settings").at("max_error"), error * 1e-3);
    EXPECT_EQ(point.at("configuration"), result.at("rows").at(0).at("configuration"));
  }
  const Json result = run("bench --max-error 1e-5" + arguments, kRounding);
  EXPECT_LE(result.at("rows").at(0).at("relative_error").get<double>(), 1e-5);
}

TEST_F(AccuracyTest, WithoutItErrorsAreNotMeasured) {
  const Json row = run("plan --operations forward " + layers_, kRounding).at("rows").at(0);
  EXPECT_TRUE(row.at("accuracy").empty());
  EXPECT_EQ(nullptr, row.at("configuration_error"));
  EXPECT_EQ(nullptr, row.at("candidates").at(0).at("error"));
}

TEST_F(AccuracyTest, IsOfEachConvolutionByItself) {
  const Outcome outcome = runTool("plan --accuracy --total-workspace 64MiB " + layers_);
  EXPECT_EQ(2, outcome.status);
  EXPECT_NE(std::string::npos, outcome.error.find("--accuracy")) << outcome.error;
}

// A split is not worth a large workspace for less than 1 %: the plan may end before the limit.
TEST_F(ToolTest, ThePlansLineOfTheFrontIsMarked) {
  for (const char* const layer : {"conv1", "conv2"}) {
    const std::string text =
        runTool("plan --operations forward --limit 64MiB --layers " + (layer + (" " + kAlexNet)),
                "UCUDNN_SIMULATOR_ARITHMETIC=off")
            .output;
    std::smatch plan, marked;
    ASSERT_TRUE(std::regex_search(
        text, plan, std::regex("within 64 MiB: ([0-9.]+) ms, .* of workspace\n +(.*)\n")))
        << text;
    ASSERT_TRUE(
        std::regex_search(text, marked, std::regex("\\* +\\S+ (?:MiB|KiB|B) +([0-9.]+)  (.*)\n")))
        << text;
    EXPECT_EQ(plan[2], marked[2]) << text;
    // The front's times are replayed ones. An undivided plan is replayed where that gains 1 %.
    EXPECT_NEAR(std::stod(plan[1]), std::stod(marked[1]), 0.01 * std::stod(plan[1])) << text;
  }
}

}  // namespace
}  // namespace ucudnn::test
