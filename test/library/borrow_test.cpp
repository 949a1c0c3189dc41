// Micro-batches whose workspace is in the output, where samples are yet to be written: beyond the
// limit, and only for calls that overwrite it.
#include <algorithm>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr ucudnnOperation_t kBorrowing[] = {UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA};

ConvolutionCase caseOf(int channels) {
  ConvolutionCase parameters;
  parameters.batch = 23;
  parameters.channels = parameters.filters = channels;
  parameters.input = {28, 28};
  return parameters;
}

class BorrowTest : public LibraryTest {
 protected:
  /// Kernels with workspace are the fastest, at any batch size but the whole.
  void force(const ConvolutionCase& parameters) {
    parameters_ = parameters;
    convolution_.reset();
    handles_.reset();
    forced_.reset();  // its environment ends before the next one's begins
    forced_ = std::make_unique<ForcedSplits>(std::vector<ConvolutionCase>{parameters});
    handles_ = std::make_unique<Handles>();
    convolution_ = std::make_unique<Convolution>(parameters);
  }
  void TearDown() override {
    convolution_.reset();
    handles_.reset();
    forced_.reset();
    LibraryTest::TearDown();
  }

  /// Within no workspace at all.
  std::vector<ucudnnMicroBatches_t> planned(ucudnnOperation_t operation) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    EXPECT_CUDNN(convolution_->plan(handles_->ours, operation, 0, &plan, &entries));
    EXPECT_EQ(0U, plan.workspaceBytes);
    return entries;
  }
  static bool borrows(const std::vector<ucudnnMicroBatches_t>& entries) {
    return std::any_of(entries.begin(), entries.end(), [](const ucudnnMicroBatches_t& entry) {
      return entry.workspaceBytes > 0;
    });
  }
  /// An H200 has kernels without workspace that are as fast for the other.
  static bool mustBorrow(ucudnnOperation_t operation) {
    return operation == UCUDNN_FORWARD || onSimulator();
  }
  bool borrows(ucudnnOperation_t operation) { return borrows(planned(operation)); }

  std::vector<char> expected(ucudnnOperation_t operation, double beta) {
    convolution_->fill();
    for (int algorithm = 0; algorithm < 8; ++algorithm)
      if (auto bytes = convolution_->undivided(handles_->native, operation, algorithm, 1, beta)) {
        convolution_->fill();
        return *bytes;
      }
    throw std::runtime_error("cuDNN has no algorithm");
  }
  /// Checks a call without workspace.
  void expectRight(ucudnnOperation_t operation, double beta) {
    SCOPED_TRACE(testing::Message() << toText(operation) << " beta " << beta);
    const auto right = expected(operation, beta);
    DeviceBuffer& output = convolution_->output(operation);
    if (beta == 0) output.poison();
    ASSERT_CUDNN(convolution_->run(handles_->ours, operation, 0, {}, 1, beta));
    const double far = distance(convolution_->geometry(operation), output.read(), right);
    EXPECT_LE(far, std::max(toleranceBetweenAlgorithms(), tolerance(parameters_)));
  }
  void expectAllRight(ucudnnOperation_t operation) {
    // The third in a row is replayed.
    for (const double beta : {0.0, 0.0, 0.0, 1.0, 0.5, 0.0}) expectRight(operation, beta);
  }

  ConvolutionCase parameters_;
  std::unique_ptr<ForcedSplits> forced_;
  std::unique_ptr<Handles> handles_;
  std::unique_ptr<Convolution> convolution_;
};

TEST_F(BorrowTest, WhereTheCallOverwrites) {
  for (const cudnnTensorFormat_t format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
    SCOPED_TRACE(format);
    ConvolutionCase parameters = caseOf(24);
    parameters.format = format;
    force(parameters);
    for (const ucudnnOperation_t operation : kBorrowing) {
      const long long before = statistics().splitCalls;
      const bool isSplit = microBatchCount(planned(operation)) > 1;
      EXPECT_TRUE(borrows(operation) || format == CUDNN_TENSOR_NHWC || !mustBorrow(operation))
          << toText(operation);
      expectRight(operation, 0);
      EXPECT_EQ(before + (isSplit ? 1 : 0), statistics().splitCalls);
      expectAllRight(operation);
    }
  }
}

/// The first call doesn't decide for all: calls that add have their own plans.
TEST_F(BorrowTest, AlsoBehindACallThatAdds) {
  force(caseOf(42));
  for (const ucudnnOperation_t operation : kBorrowing) {
    expectRight(operation, 1);
    EXPECT_TRUE(borrows(operation) || !mustBorrow(operation));
    expectAllRight(operation);
    EXPECT_TRUE(borrows(operation) || !mustBorrow(operation));
  }
}

/// A call that adds leaves those that overwrite their plan.
TEST_F(BorrowTest, AgainOnceACallHasAdded) {
  const TemporaryDirectory directory;
  const EnvironmentGuard trace("UCUDNN_TRACE", directory.file("trace"));
  force(caseOf(44));
  for (const ucudnnOperation_t operation : kBorrowing) {
    if (!borrows(operation) && !mustBorrow(operation)) continue;
    for (const double beta : {0.0, 1.0, 0.0, 1.0, 0.0}) {
      expectRight(operation, beta);
      const std::string last = linesWith(directory.file("trace"), {}).back();
      EXPECT_EQ(beta == 0, last.find("in its output") != std::string::npos) << last;
    }
  }
}

TEST_F(BorrowTest, NothingOfAFiltersGradient) {
  force(caseOf(26));
  for (const ucudnnMicroBatches_t& entry : planned(UCUDNN_BACKWARD_FILTER))
    EXPECT_EQ(0U, entry.workspaceBytes);
  expectAllRight(UCUDNN_BACKWARD_FILTER);
}

/// The memory in the gaps is not the call's.
TEST_F(BorrowTest, NothingOfAnOutputWithGaps) {
  ConvolutionCase behind = caseOf(28), between = caseOf(30);
  behind.batchGap = 8;
  between.parts = 2;
  for (const ConvolutionCase& parameters : {behind, between}) {
    force(parameters);
    for (const ucudnnOperation_t operation : kBorrowing) {
      EXPECT_FALSE(borrows(operation));
      expectAllRight(operation);
    }
  }
}

TEST_F(BorrowTest, NothingWhereItIsForbidden) {
  force(caseOf(32));
  for (const ucudnnOperation_t operation : kBorrowing) {
    EXPECT_TRUE(borrows(operation) || !mustBorrow(operation));
    ASSERT_CUDNN(handles_->ours.setBorrowOutput(false));
    EXPECT_FALSE(borrows(operation));
    expectAllRight(operation);
    ASSERT_CUDNN(handles_->ours.setBorrowOutput(true));
    EXPECT_TRUE(borrows(operation) || !mustBorrow(operation));
  }
}

TEST_F(BorrowTest, AFileOfPlansSaysSo) {
  force(caseOf(34));
  const TemporaryDirectory directory;
  const std::string file = directory.file("plans.json");
  std::vector<std::string> before;
  for (const ucudnnOperation_t operation : kBorrowing) before.push_back(textOf(planned(operation)));
  ASSERT_CUDNN(ucudnnSavePlans(file.c_str()));
  EXPECT_FALSE(linesWith(file, {"\"borrows\": true"}).empty());
  const EnvironmentGuard environment(
      {{"UCUDNN_PLANS", file}, {"UCUDNN_PLANS_STRICT", "1"}, {"UCUDNN_DATABASE", ""}});
  handles_ = std::make_unique<Handles>();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(borrows(kBorrowing[i]) || !mustBorrow(kBorrowing[i]));
    EXPECT_EQ(before[i], textOf(planned(kBorrowing[i])));
    expectAllRight(kBorrowing[i]);
  }
}

/// Until a call comes that may add.
TEST_F(BorrowTest, UnderATotalToo) {
  const EnvironmentGuard total("UCUDNN_TOTAL_WORKSPACE_SIZE", "4096");
  for (const std::string policy : {"share", "auto"}) {
    SCOPED_TRACE(policy);
    const TemporaryDirectory directory;
    const EnvironmentGuard environment(
        {{"UCUDNN_TOTAL_WORKSPACE_POLICY", policy}, {"UCUDNN_TRACE", directory.file("trace")}});
    force(caseOf(policy == "share" ? 36 : 38));
    for (const ucudnnOperation_t operation : kBorrowing) {
      expectRight(operation, 0);
      expectAllRight(operation);
    }
    const auto borrowing = linesWith(directory.file("trace"), {"in its output"});
    EXPECT_TRUE(!borrowing.empty() || !onSimulator());
  }
}

/// The memory of the call serves for measuring, and no other.
TEST_F(BorrowTest, IsMeasuredInTheCallsOwnMemory) {
  parameters_ = caseOf(6);
  parameters_.batch = 9;
  parameters_.input = {12, 12};
  const EnvironmentGuard environment("UCUDNN_BENCHMARK_MEMORY", "0");
  handles_ = std::make_unique<Handles>();
  convolution_ = std::make_unique<Convolution>(parameters_);
  for (const ucudnnOperation_t operation : kBorrowing) {
    const long long before = statistics().kernelsMeasured;
    expectRight(operation, 0);
    const auto entries = planned(operation);
    EXPECT_LT(before, statistics().kernelsMeasured);
    expectAllRight(operation);
  }
}

}  // namespace
}  // namespace ucudnn::test
