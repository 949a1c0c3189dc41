// Engines that lie, on the simulator: no client sees what they compute.
#include <cstdlib>
#include <fstream>

#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;
constexpr double kRight = 1e-5;  // the simulator's kernels sum up in double; a lie is off by 1e-2

class ChecksTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (!onSimulator()) GTEST_SKIP() << "needs engines that lie";
  }
  void TearDown() override {
    setLie(Lie::kNone);
    LibraryTest::TearDown();
  }

  /// The simulator's fastest engine for such a filter gradient is one that may lie. With 40
  /// channels it is that with copies of ours alone.
  static constexpr ucudnnOperation_t kOperation = UCUDNN_BACKWARD_FILTER;
  /// Each number is another problem, of which nothing is known.
  static ConvolutionCase caseOf(int number) {
    ConvolutionCase next;
    next.name = "checked";
    next.math = CUDNN_DEFAULT_MATH;
    next.batch = 2;
    next.channels = next.filters = 20;
    next.batchGap = 4 * number;
    return next;
  }

  /// How far the result of a call is from that of one of cuDNN's algorithms, which don't lie.
  static double runOnce(Convolution& convolution, const Handles& handles) {
    convolution.fill();
    convolution.output(kOperation).poison();
    const auto expected = convolution.undivided(handles.native, kOperation, 0, 1, 0);
    if (!expected) throw std::runtime_error("cuDNN has no algorithm");
    const DeviceBuffer workspace(kLimit);
    EXPECT_CUDNN(convolution.run(handles.ours, kOperation, 0, {workspace.get(), kLimit}, 1, 0));
    return distance(
        convolution.geometry(kOperation), convolution.output(kOperation).read(), *expected);
  }

  static bool isOfLiars(const std::vector<ucudnnMicroBatches_t>& entries) {
    for (const ucudnnMicroBatches_t& entry : entries)
      if (std::string(entry.kernel).rfind("eng", 0) == 0 && std::atoi(entry.kernel + 3) % 2 == 1)
        return true;
    return false;
  }
  static std::vector<ucudnnMicroBatches_t> planned(Convolution& convolution,
                                                   const Handles& handles) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_CUDNN(convolution.plan(handles.ours, kOperation, kLimit, &plan, &entries));
    return entries;
  }

  const EnvironmentGuard checks_{"UCUDNN_CHECK_KERNELS", "1"};
  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
  const EnvironmentGuard whole_{"UCUDNN_BATCH_SIZE_POLICY", "undivided"};  // fewer are timed
};

TEST_F(ChecksTest, NoClientSeesWhatIsWrong) {
  int number = 0;
  for (const Lie lie : {Lie::kChannel, Lie::kRow, Lie::kOdd, Lie::kUnwritten}) {
    SCOPED_TRACE(static_cast<int>(lie));
    setLie(lie);
    const Handles handles;
    Convolution convolution(caseOf(++number));
    const ucudnnStatistics_t before = statistics();
    EXPECT_LE(runOnce(convolution, handles), kRight);
    EXPECT_FALSE(isOfLiars(planned(convolution, handles)));
    EXPECT_LT(before.kernelsWrong, statistics().kernelsWrong);
    EXPECT_LT(statistics().kernelsWrong, statistics().kernelsChecked);
    setLie(Lie::kNone);
    const EnvironmentGuard unchecked("UCUDNN_CHECK_KERNELS", "0");
    Convolution other(caseOf(++number));
    const Handles others;
    EXPECT_TRUE(isOfLiars(planned(other, others))) << "unchecked, an engine that lies is in it";
  }
}

TEST_F(ChecksTest, WhatBecomesWrongIsFoundWithTheThousandthCall) {
  const Handles handles;
  Convolution convolution(caseOf(20));
  ASSERT_LE(runOnce(convolution, handles), kRight);
  ASSERT_TRUE(isOfLiars(planned(convolution, handles)));
  setLie(Lie::kChannel);
  ASSERT_GT(runOnce(convolution, handles), kRight) << "as it lies now";
  const DeviceBuffer workspace(kLimit);
  for (int calls = 2; calls < 1000; ++calls)
    ASSERT_CUDNN(convolution.run(handles.ours, kOperation, 0, {workspace.get(), kLimit}, 1, 0));
  EXPECT_LE(runOnce(convolution, handles), kRight);
  EXPECT_FALSE(isOfLiars(planned(convolution, handles)));
}

TEST_F(ChecksTest, AnEngineOfTheErrataFileIsInNoPlan) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("errata.json");
  std::string rules;
  for (int engine = 1; engine < 100; engine += 2)
    rules += (rules.empty() ? "" : ",") +
             std::string(R"({"operation": "ConvBwdFilter", "engine": )") + std::to_string(engine) +
             "}";
  std::ofstream(path) << R"({"version": 1, "rules": [)" << rules << "]}";
  {
    const Handles handles;
    Convolution convolution(caseOf(30));
    ASSERT_TRUE(isOfLiars(planned(convolution, handles)));
  }
  const EnvironmentGuard errata("CUDNN_ERRATA_JSON_FILE", path);
  const Handles handles;
  Convolution convolution(caseOf(31));
  EXPECT_LE(runOnce(convolution, handles), kRight);
  EXPECT_FALSE(isOfLiars(planned(convolution, handles)));
}

}  // namespace
}  // namespace ucudnn::test
