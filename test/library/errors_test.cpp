// UCUDNN_MAX_ERROR as a client meets it: how far results are from what double gives.
#include <cmath>

#include "../support/simulator.hpp"
#include "../support/temporary_directory.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimit = std::size_t{64} << 20;

class ErrorsTest : public LibraryTest {
 protected:
  /// Results are computed, which takes long: fewer timings.
  ErrorsTest() : fast_("UCUDNN_TUNING", "fast") {}
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped() || !onSimulator()) return;
    setRounding(true);
    setRandomTimes(2);  // which kernel is fastest is left to chance
  }
  void TearDown() override {
    if (onSimulator()) {
      setRounding(false);
      setRandomTimes(0);
    }
    LibraryTest::TearDown();
  }

 private:
  EnvironmentGuard fast_;
};

ConvolutionCase caseOf(const char* name, int channels) {
  ConvolutionCase convolution;
  convolution.name = name;
  convolution.channels = channels;
  convolution.filters = 4;
  return convolution;
}

/// `channels` make problems of a test's own.
std::vector<ConvolutionCase> cases(int channels) {
  std::vector<ConvolutionCase> all{caseOf("3x3", channels)};
  ConvolutionCase large = caseOf("5x5", channels);
  large.filter = {5, 5};
  large.pad = {2, 2};
  all.push_back(large);
  large.math = CUDNN_DEFAULT_MATH;
  large.name = "TF32";
  all.push_back(large);
  ConvolutionCase strided = caseOf("strided", channels);
  strided.stride = {2, 1};
  strided.groups = 2;
  all.push_back(strided);
  ConvolutionCase spatial = caseOf("3-D", channels);
  spatial.input = {4, 5, 4};
  spatial.filter = {3, 3, 3};
  spatial.pad = spatial.stride = spatial.dilation = {1, 1, 1};
  all.push_back(spatial);
  return all;
}

/// The normalized L2 distance of what is in the output to the definition's sums.
double errorOf(Convolution& convolution, ucudnnOperation_t operation) {
  const std::vector<double> exact = convolution.sumsOnHost(operation);
  const std::vector<double> result =
      toDoubles(convolution.parameters().type, convolution.output(operation).read());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(result[i] - exact[i], 2);
    norm += std::pow(exact[i], 2);
  }
  return std::sqrt(difference / norm);
}

/// The results' errors; empty where the convolution is left to cuDNN.
std::optional<double> errorOfPlan(UcudnnHandle_t handle,
                                  Convolution& convolution,
                                  ucudnnOperation_t operation) {
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  const cudnnStatus_t status = convolution.plan(handle, operation, kLimit, &plan, &entries);
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return std::nullopt;
  EXPECT_CUDNN(status);
  for (const ucudnnMicroBatches_t& entry : entries) EXPECT_GT(entry.error, 0) << entry.kernel;
  const DeviceBuffer workspace(plan.workspaceBytes);
  double error = 0;
  for (int call = 0; call < 2; ++call) {  // enqueued, then replayed
    convolution.fill();
    EXPECT_CUDNN(
        convolution.run(handle, operation, 0, Workspace{workspace.get(), plan.workspaceBytes}));
    error = std::max(error, errorOf(convolution, operation));
  }
  return error;
}

TEST_F(ErrorsTest, NoResultIsFurtherOffThanIsAllowed) {
  const Handles handles;
  double roughest = 0;
  for (const ucudnnKernels_t kernels : {UCUDNN_KERNELS_LEGACY, UCUDNN_KERNELS_ALL})
    for (const ConvolutionCase& parameters : cases(4)) {
      Convolution convolution(parameters);
      EXPECT_CUDNN(handles.ours.setKernels(kernels));
      for (const ucudnnOperation_t operation : kOperations) {
        SCOPED_TRACE(parameters.name + " " + toText(operation));
        for (const double largest : {1e-5, 1e-2}) {
          EXPECT_CUDNN(handles.ours.setMaxError(largest));
          const auto error = errorOfPlan(handles.ours, convolution, operation);
          ASSERT_TRUE(error);
          EXPECT_LE(*error, largest);
          roughest = std::max(roughest, *error);
        }
      }
    }
  if (onSimulator()) {
    EXPECT_GT(roughest, 1e-5) << "there are kernels that are further off";
  }
}

// cuDNN's own choice may be further off: there is nothing else to run.
TEST_F(ErrorsTest, WhereNothingIsAccurateEnoughCudnnRunsItWithOneWarning) {
  const TemporaryDirectory directory;
  const std::string log = directory.file("log");
  const EnvironmentGuard environment(
      {{"UCUDNN_LOG_FILE", log}, {"UCUDNN_LOG_LEVEL", "warn"}, {"UCUDNN_MAX_ERROR", "1e-9"}});
  const Handles handles;
  Convolution convolution(caseOf("one", 11));
  const DeviceBuffer workspace(kLimit);
  const ucudnnStatistics_t before = statistics();
  for (int call = 0; call < 3; ++call) {
    convolution.output(UCUDNN_FORWARD).poison();
    ASSERT_CUDNN(convolution.run(
        handles.ours, UCUDNN_FORWARD, 1, Workspace{workspace.get(), workspace.bytes()}));
    EXPECT_LT(errorOf(convolution, UCUDNN_FORWARD), 1e-5);
  }
  EXPECT_EQ(before.bypassedCalls + 3, statistics().bypassedCalls);
  EXPECT_EQ(1U, linesWith(log, {"UCUDNN_MAX_ERROR", "left to cuDNN"}).size());
}

TEST_F(ErrorsTest, TheSetterTakesNoSuchNumbers) {
  const Handles handles;
  for (const double error : {-1e-5, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, handles.ours.setMaxError(error));
  EXPECT_CUDNN(handles.ours.setMaxError(0));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, ucudnnSetMaxError(nullptr, 1e-5));
}

// A handle's own: another one's plans are not bound by it.
TEST_F(ErrorsTest, AHandlesErrorIsItsOwn) {
  const Handles bound, free;
  ASSERT_CUDNN(bound.ours.setMaxError(1e-9));
  const Convolution convolution(caseOf("own", 13));
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  const auto ask = [&](const Handles& handles) {
    return convolution.plan(handles.ours, UCUDNN_FORWARD, kLimit, &plan, &entries);
  };
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, ask(bound));
  EXPECT_CUDNN(ask(free));
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, ask(bound));
  ASSERT_CUDNN(bound.ours.setMaxError(0));
  EXPECT_CUDNN(ask(bound));
}

TEST_F(ErrorsTest, BoundsPlansInOwnedWorkspaceToo) {
  for (const double largest : {1e-5, 1e-2}) {
    const EnvironmentGuard environment(
        {{"UCUDNN_TOTAL_WORKSPACE_SIZE", "64MiB"}, {"UCUDNN_MAX_ERROR", std::to_string(largest)}});
    const Handles handles;
    for (const ConvolutionCase& parameters : cases(8)) {
      Convolution convolution(parameters);
      for (const ucudnnOperation_t operation : kOperations)
        for (int call = 0; call < 2; ++call) {
          convolution.fill();
          ASSERT_CUDNN(convolution.run(handles.ours, operation, 0, {}));
          EXPECT_LE(errorOf(convolution, operation), largest) << parameters.name;
        }
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
