// Calls that add to their output, where a query has only planned those that overwrite it. An engine
// has a graph of its own for them.
#include <algorithm>
#include <utility>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"
#include "recording.hpp"

namespace ucudnn::test {
namespace {

class AddingTest : public LibraryTest, public ::testing::WithParamInterface<ucudnnOperation_t> {
 protected:
  /// Asks for the operation's workspace, as most clients do before they call.
  void query(int channels) {
    ConvolutionCase next = fftCase(72);
    next.math = CUDNN_DEFAULT_MATH;
    next.channels = channels;
    forced_ = std::make_unique<ForcedSplits>(std::vector<ConvolutionCase>{next});
    handles_ = std::make_unique<Handles>();
    convolution_ = std::make_unique<Convolution>(next);
    std::vector<Performance> named;
    ASSERT_CUDNN(convolution_->query(handles_->ours, GetParam(), Query::kGet, 1, &named));
    bytes_ = named.at(0).memory;
    workspace_ = std::make_unique<DeviceBuffer>(bytes_);
    before_ = statistics();
  }
  void TearDown() override {
    workspace_.reset();
    convolution_.reset();
    handles_.reset();
    LibraryTest::TearDown();
  }

  cudnnStatus_t run(double beta) {
    return convolution_->run(handles_->ours, GetParam(), 0, {workspace_->get(), bytes_}, 1, beta);
  }
  std::vector<char> expected(double beta) {
    convolution_->fill();
    for (const int algorithm : {1, 0})
      if (auto bytes = convolution_->undivided(handles_->native, GetParam(), algorithm, 1, beta)) {
        convolution_->fill();
        return *bytes;
      }
    throw std::runtime_error("cuDNN has no algorithm");
  }
  void expectOutput(const std::vector<char>& expected) {
    const double far = distance(
        convolution_->geometry(GetParam()), convolution_->output(GetParam()).read(), expected);
    EXPECT_LE(far, std::max(toleranceBetweenAlgorithms(), tolerance(convolution_->parameters())));
  }
  void expectRight(double beta) {
    SCOPED_TRACE(beta);
    const auto right = expected(beta);
    ASSERT_CUDNN(run(beta));
    expectOutput(right);
  }

  const EnvironmentGuard engines_{"UCUDNN_KERNELS", "engines"};
  std::unique_ptr<ForcedSplits> forced_;
  std::unique_ptr<Handles> handles_;
  std::unique_ptr<Convolution> convolution_;
  std::size_t bytes_ = 0;
  std::unique_ptr<DeviceBuffer> workspace_;
  ucudnnStatistics_t before_{};
};

TEST_P(AddingTest, TheyAreSplitLikeOthers) {
  ASSERT_NO_FATAL_FAILURE(query(12));
  for (const double beta : {0.0, 1.0, 0.0, 1.0}) expectRight(beta);
  EXPECT_EQ(before_.splitCalls + 4, statistics().splitCalls);
  EXPECT_EQ(before_.bypassedCalls, statistics().bypassedCalls);
  EXPECT_EQ(before_.plans, statistics().plans) << "it is the same plan, for more calls";
}

TEST_P(AddingTest, TheFirstOneMayBeCaptured) {
  ASSERT_NO_FATAL_FAILURE(query(14));
  expectRight(0);
  Recording recording;
  ASSERT_CUDNN(cudnnSetStream(handles_->ours, recording.stream()));
  const auto right = expected(1);
  ASSERT_NO_FATAL_FAILURE(recording.begin());
  ASSERT_CUDNN(run(1));
  ASSERT_NO_FATAL_FAILURE(recording.end());
  ASSERT_NO_FATAL_FAILURE(recording.launch());
  expectOutput(right);
  EXPECT_EQ(before_.bypassedCalls, statistics().bypassedCalls);
}

INSTANTIATE_TEST_SUITE_P(Operations,
                         AddingTest,
                         ::testing::ValuesIn(kOperations),
                         [](const auto& test) {
                           std::string name = toText(test.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

/// A query and a call that overwrites have planned.
class AfterOverwritingTest : public LibraryTest {
 protected:
  void prepare(const ConvolutionCase& parameters, ucudnnOperation_t operation) {
    operation_ = operation;
    handles_ = std::make_unique<Handles>();
    convolution_ = std::make_unique<Convolution>(parameters);
    setArithmetic(Arithmetic::kOff);  // nothing is computed while it measures
    const cudnnStatus_t status = convolution_->workspaceSize(handles_->ours, operation, 1, &bytes_);
    setArithmetic(Arithmetic::kFull);
    ASSERT_CUDNN(status);
    workspace_ = std::make_unique<DeviceBuffer>(bytes_ + 1);
    ASSERT_CUDNN(run(1, 0));
  }
  void TearDown() override {
    workspace_.reset();
    convolution_.reset();
    handles_.reset();
    LibraryTest::TearDown();
  }

  cudnnStatus_t run(double alpha, double beta) {
    return convolution_->run(
        handles_->ours, operation_, 1, {workspace_->get(), bytes_}, alpha, beta);
  }
  std::vector<char> overwritten() {
    convolution_->fill();
    EXPECT_CUDNN(run(1, 0));
    return convolution_->output(operation_).read();
  }

  ucudnnOperation_t operation_ = UCUDNN_FORWARD;
  std::unique_ptr<Handles> handles_;
  std::unique_ptr<Convolution> convolution_;
  std::size_t bytes_ = 0;
  std::unique_ptr<DeviceBuffer> workspace_;
};

TEST_F(AfterOverwritingTest, ACallThatSuitsNoEngineWaitsForNone) {
  if (!onSimulator()) GTEST_SKIP() << "a GPU does not count calls";
  const EnvironmentGuard kernels("UCUDNN_KERNELS", "all");
  for (const ucudnnOperation_t operation : kOperations)
    for (const auto& [alpha, beta] : {std::make_pair(1.0, 0.5), std::make_pair(2.0, 1.0)}) {
      ConvolutionCase next = fftCase(11);
      next.math = CUDNN_DEFAULT_MATH;
      next.batch = beta == 1 ? 40 : 50;
      next.filters = 8;
      ASSERT_NO_FATAL_FAILURE(prepare(next, operation));
      const auto before = callCount("cudnnBackendFinalize");
      ASSERT_CUDNN(run(alpha, beta));
      EXPECT_EQ(before, callCount("cudnnBackendFinalize")) << toText(operation) << " " << beta;
    }
}

TEST_F(AfterOverwritingTest, WhatIsOverwrittenHasTheSameBitsBehindACallThatAdds) {
  if (!onSimulator()) GTEST_SKIP() << "times are the simulator's";
  setRounding(true);
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 15; ++seed)
    for (const ucudnnOperation_t operation : {UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA}) {
      setRandomTimes(seed);
      ConvolutionCase next = fftCase(10 + static_cast<int>(seed));
      next.math = CUDNN_DEFAULT_MATH;
      next.batch = 12;
      next.filters = 8;
      const EnvironmentGuard settings({{"UCUDNN_KERNELS", "all"},
                                       {"UCUDNN_DETERMINISTIC", "1"},
                                       {"UCUDNN_WORKSPACE_LIMIT", "512KiB"}});
      ASSERT_NO_FATAL_FAILURE(prepare(next, operation));
      const auto first = overwritten();
      {  // Somebody measures more: a plan that is made now may be another one.
        const EnvironmentGuard policy("UCUDNN_BATCH_SIZE_POLICY", "all");
        const Handles others;
        std::size_t bytes = 0;
        setArithmetic(Arithmetic::kOff);
        EXPECT_CUDNN(convolution_->workspaceSize(others.ours, operation, 1, &bytes));
        setArithmetic(Arithmetic::kFull);
      }
      const auto before = statistics();
      EXPECT_CUDNN(run(1, 1));
      plans += statistics().plans > before.plans ? 1 : 0;
      EXPECT_TRUE(first == overwritten()) << toText(operation) << " " << seed;
    }
  setRandomTimes(0);
  setRounding(false);
  EXPECT_EQ(0, plans);
}

/// A database says of filter gradients, channels last, that they need no more to add than to
/// overwrite.
class AddingLiesTest : public AfterOverwritingTest {
 protected:
  void lie() {
    case_.math = CUDNN_DEFAULT_MATH;
    case_.format = CUDNN_TENSOR_NHWC;
    case_.channels = 24;
    case_.filters = 16;
    const ChildResult child =
        runClient({"plan", case_.serialized()}, {{"UCUDNN_SIMULATOR_ARITHMETIC", "off"}});
    ASSERT_EQ(0, child.status) << child.output;
    const std::string filter = std::to_string(24 * 16 * 25 * sizeof(float));
    executeSql(database_,
               "UPDATE measurement SET workspace_bytes = workspace_bytes - " + filter +
                   " WHERE kernel LIKE 'eng%' AND workspace_bytes >= " + filter);
    before_ = statistics();
  }
  void expectNoneLeftToCudnn() { EXPECT_EQ(before_.bypassedCalls, statistics().bypassedCalls); }

  TemporaryDirectory directory_;
  std::string database_ = directory_.file("measurements.db");
  const EnvironmentGuard settings_{{{"UCUDNN_KERNELS", "engines"},
                                    {"UCUDNN_DATABASE", database_},
                                    {"UCUDNN_BATCH_SIZE_POLICY", "undivided"}}};
  ConvolutionCase case_ = fftCase(72);
  ucudnnStatistics_t before_{};
};

TEST_F(AddingLiesTest, LeaveCallsThatOverwriteAlone) {
  ASSERT_NO_FATAL_FAILURE(lie());
  ASSERT_NO_FATAL_FAILURE(prepare(case_, UCUDNN_BACKWARD_FILTER));
  expectNoneLeftToCudnn();
  ASSERT_CUDNN(run(1, 1));  // by cuDNN, if need be
  before_ = statistics();
  for (int i = 0; i < 3; ++i) ASSERT_CUDNN(run(1, 0));
  expectNoneLeftToCudnn();
}

TEST_F(AddingLiesTest, AreFoundOutByAPlanForAllCalls) {
  case_.batch = 5;
  ASSERT_NO_FATAL_FAILURE(lie());
  ASSERT_NO_FATAL_FAILURE(prepare(case_, UCUDNN_BACKWARD_FILTER));
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  ASSERT_CUDNN(
      convolution_->plan(handles_->ours, UCUDNN_BACKWARD_FILTER, bytes_ << 1, &plan, &entries));
  bytes_ = plan.workspaceBytes;
  workspace_ = std::make_unique<DeviceBuffer>(bytes_);
  ASSERT_CUDNN(run(1, 1));
  expectNoneLeftToCudnn();
}

}  // namespace
}  // namespace ucudnn::test
