// `ucudnn check` on the simulator.
#include <fstream>

#include "tool/simulated_tool.hpp"

namespace ucudnn::test {
namespace {

class CheckedLayers : public ToolTest {
 protected:
  void SetUp() override {
    std::ofstream(layers_) << "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,"
                              "stride_h\nsmall,9,7,8,2,12,3,3,1,1,1,1\n";
  }
  Outcome check(const std::string& options, const std::string& environment = "") {
    const Outcome outcome = runTool("check " + layers_ + " --json " + json_ + options, environment);
    EXPECT_EQ(outcome.error, "");
    return outcome;
  }
  Json found() const { return Json::parse(readFile(json_)); }

  const std::string layers_ = directory_.file("layers.csv"), json_ = directory_.file("found.json");
};

TEST_F(CheckedLayers, AllKernelsOfTheLayersAreRight) {
  const Outcome outcome = check("");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_GT(found().at("checked"), 30);
  EXPECT_TRUE(found().at("wrong").empty()) << found().dump(1);
  EXPECT_TRUE(found().at("time_was_enough"));
}

TEST_F(CheckedLayers, ThoseThatLieAreNamed) {
  const Outcome outcome = check(" --operations backward_data", "UCUDNN_SIMULATOR_LIES=channel");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  const Json liars = found().at("wrong");
  EXPECT_FALSE(liars.empty());
  for (const Json& liar : liars) {
    const std::string kernel = liar.at("kernel");
    EXPECT_EQ(kernel.rfind("eng", 0), 0U) << kernel;
    EXPECT_EQ(std::stoi(kernel.substr(3)) % 2, 1) << kernel << ": these alone lie";
    EXPECT_NE(outcome.output.find(kernel), std::string::npos) << outcome.output;
    EXPECT_TRUE(liar.at("wrong_again"));
  }
  EXPECT_LT(liars.size(), found().at("checked")) << "others are right";
}

TEST_F(CheckedLayers, ATimeLimitEndsIt) {
  const Outcome outcome = check(" --time-limit 0.001");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_FALSE(found().at("time_was_enough"));
  EXPECT_GT(found().at("late"), 0);
}

// `timeout` signals a process and its group: twice. To check these lists takes half a minute at
// least.
TEST_F(CheckedLayers, AnInterruptionKeepsWhatWasFound) {
  const std::string lists = UCUDNN_LAYERS "/deepbench_train.csv " UCUDNN_LAYERS "/programs.csv";
  const Outcome outcome = runTool("check " + lists + " --json " + json_, "timeout -s INT 2");
  EXPECT_EQ(outcome.status, 124) << outcome.error;
  EXPECT_FALSE(found().at("time_was_enough"));
  EXPECT_GT(found().at("seconds"), 0);
}

}  // namespace
}  // namespace ucudnn::test
