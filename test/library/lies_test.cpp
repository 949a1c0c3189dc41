// With a database in which every number is a lie, plans are slow at worst.
#include "../support/lies.hpp"

#include <cmath>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kLimits[] = {0, std::size_t{1} << 20, std::size_t{64} << 20};

struct Factors {
  double alpha, beta;
};
// An engine overwrites its output, adds to it, or can't run the call.
constexpr Factors kFactors[] = {{1, 0}, {1, 1}, {2, 1}};

/// A small network; channels of their own for each seed, since the process remembers problems.
std::vector<ConvolutionCase> network(int seed) {
  ConvolutionCase fma;
  fma.batch = 12;
  fma.channels = 9 + seed;
  ConvolutionCase tf32 = fma;
  tf32.math = CUDNN_DEFAULT_MATH;
  ConvolutionCase wide = fma;
  wide.filter = {5, 5};
  wide.pad = {2, 2};
  ConvolutionCase half = fma;
  half.type = CUDNN_DATA_HALF;
  half.math = CUDNN_TENSOR_OP_MATH;
  return {fma, tf32, wide, half};
}

const char* mathOf(const ConvolutionCase& convolution) {
  return convolution.math == CUDNN_FMA_MATH       ? "/fma"
         : convolution.math == CUDNN_DEFAULT_MATH ? "/default"
                                                  : "/tensor";
}

/// Whether cuDNN itself could run the call: it may have no deterministic algorithm that fits.
bool canRun(const Handles& handles,
            const Convolution& convolution,
            ucudnnOperation_t operation,
            std::size_t limit,
            bool deterministic) {
  constexpr int kMostAlgorithms = 8;
  for (int algorithm = 0; algorithm < kMostAlgorithms; ++algorithm) {
    const bool isNot = operation != UCUDNN_FORWARD &&
                       (algorithm == 0 || (operation == UCUDNN_BACKWARD_FILTER && algorithm == 3));
    if (deterministic && isNot) continue;
    std::size_t bytes = 0;
    if (convolution.workspaceSize(handles.native, operation, algorithm, &bytes) ==
            CUDNN_STATUS_SUCCESS &&
        bytes <= limit)
      return true;
  }
  return false;
}

class LiesTest : public LibraryTest, public ::testing::WithParamInterface<int> {
 protected:
  /// The network, measured by another process, and then lied about.
  void makeDatabase() {
    std::vector<std::string> arguments{"plan"};
    for (const ConvolutionCase& convolution : network(GetParam()))
      arguments.push_back(convolution.serialized());
    const ChildResult child = runClient(
        arguments, {{"UCUDNN_DATABASE", database_}, {"UCUDNN_SIMULATOR_ARITHMETIC", "off"}});
    ASSERT_EQ(0, child.status) << child.output;
    lieInEveryNumber(database_, static_cast<unsigned>(GetParam()));
  }

  void expectPlan(UcudnnHandle_t handle,
                  const Convolution& convolution,
                  ucudnnOperation_t operation,
                  std::size_t limit,
                  bool deterministic) {
    ucudnnPlan_t plan{};
    std::vector<ucudnnMicroBatches_t> entries;
    const cudnnStatus_t status = convolution.plan(handle, operation, limit, &plan, &entries);
    if (status == CUDNN_STATUS_NOT_SUPPORTED) return;  // left to cuDNN
    ASSERT_CUDNN(status);
    EXPECT_LE(plan.workspaceBytes, limit);
    for (const ucudnnMicroBatches_t& entry : entries) {
      const std::string kernel = entry.kernel;
      EXPECT_TRUE(entry.deterministic != 0 || !deterministic) << kernel;
      if (kernel.find("eng") == 0) continue;  // whose name says nothing: results will
      EXPECT_NE(std::string::npos, kernel.find(mathOf(convolution.parameters()))) << kernel;
      const bool isNot =
          operation != UCUDNN_FORWARD && (kernel.find("ALGO_0") == 0 || kernel.find("ALGO_3") == 0);
      EXPECT_EQ(isNot, entry.deterministic == 0) << kernel;
    }
    splits_ += microBatchCount(entries) > 1 ? 1 : 0;
  }

  /// The same bits twice, where only deterministic kernels may run; cuDNN's result everywhere.
  void expectResult(const Handles& handles,
                    Convolution& convolution,
                    ucudnnOperation_t operation,
                    std::size_t limit,
                    const Factors& factors,
                    bool deterministic) {
    convolution.fill();
    const std::vector<char> before = convolution.output(operation).read();
    const auto expected =
        convolution.undivided(handles.native, operation, 1, factors.alpha, factors.beta);
    ASSERT_TRUE(expected);
    const DeviceBuffer workspace(limit);
    std::vector<char> first;
    for (int call = 0; call < 2; ++call) {
      convolution.output(operation).write(before);
      ASSERT_CUDNN(convolution.run(
          handles.ours, operation, 1, {workspace.get(), limit}, factors.alpha, factors.beta));
      const auto result = convolution.output(operation).read();
      EXPECT_LE(distance(convolution.geometry(operation), result, *expected),
                std::max(toleranceBetweenAlgorithms(), tolerance(convolution.parameters())));
      EXPECT_TRUE(call == 0 || !deterministic || result == first) << "other bits";
      first = result;
    }
  }

  const EnvironmentGuard kernels_{"UCUDNN_KERNELS", GetParam() % 2 == 0 ? "legacy" : "all"};
  TemporaryDirectory directory_;
  std::string database_ = directory_.file("measurements.db");
  int splits_ = 0;
};

TEST_P(LiesTest, ResultsAreCudnnsAndNoCallFails) {
  makeDatabase();
  if (HasFatalFailure()) return;
  const long long loaded = statistics().kernelsLoaded;
  for (const bool deterministic : {false, true}) {
    const EnvironmentGuard settings(
        {{"UCUDNN_DATABASE", database_}, {"UCUDNN_DETERMINISTIC", deterministic ? "1" : "0"}});
    const Handles handles;
    for (const ConvolutionCase& parameters : network(GetParam())) {
      Convolution convolution(parameters);
      for (const ucudnnOperation_t operation : kOperations)
        for (const std::size_t limit : kLimits) {
          SCOPED_TRACE(std::string(toText(operation)) + mathOf(parameters) + " within " +
                       std::to_string(limit) + (deterministic ? ", deterministic" : ""));
          expectPlan(handles.ours, convolution, operation, limit, deterministic);
          if (!canRun(handles, convolution, operation, limit, deterministic)) continue;
          for (const Factors& factors : kFactors)
            expectResult(handles, convolution, operation, limit, factors, deterministic);
        }
    }
  }
  EXPECT_LT(loaded, statistics().kernelsLoaded) << "no lie was heard";
  EXPECT_LT(0, splits_) << "none was split";
}

INSTANTIATE_TEST_SUITE_P(Seeds, LiesTest, ::testing::Range(0, 6));

/// The least workspace of a deterministic algorithm of backward data.
std::size_t leastBytes(const Handles& handles, ConvolutionCase parameters, int batch) {
  parameters.batch = batch;
  const Convolution part(parameters, Convolution::Contents::kAny);
  std::size_t least = SIZE_MAX;
  for (int algorithm = 1; algorithm < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT; ++algorithm) {
    std::size_t bytes = 0;
    if (part.workspaceSize(handles.native, UCUDNN_BACKWARD_DATA, algorithm, &bytes) ==
        CUDNN_STATUS_SUCCESS)
      least = std::min(least, bytes);
  }
  return least;
}

// No algorithm fits undivided, so the call runs split; of one of the sizes the database lies.
TEST(GeneralLiesTest, ACallThatSuitsNoEngineIsSplitAllTheSame) {
  if (!onSimulator()) GTEST_SKIP() << "workspaces are the simulator's";
  ConvolutionCase next = fftCase(72);
  next.batch = 16;
  next.math = CUDNN_DEFAULT_MATH;
  next.channels = 40;
  next.filters = 24;
  next.stride = {2, 2};
  next.input = {15, 15};
  next.filter = {4, 4};
  const TemporaryDirectory directory;
  const std::string database = directory.file("measurements.db");
  const EnvironmentGuard settings(
      {{"UCUDNN_DATABASE", database}, {"UCUDNN_KERNELS", "all"}, {"UCUDNN_DETERMINISTIC", "1"}});
  const ChildResult child =
      runClient({"plan", next.serialized()}, {{"UCUDNN_SIMULATOR_ARITHMETIC", "off"}});
  ASSERT_EQ(0, child.status) << child.output;
  const Handles handles;
  const std::size_t bytes = leastBytes(handles, next, 4);
  ASSERT_LT(bytes, leastBytes(handles, next, 8));
  executeSql(database,
             "UPDATE measurement SET workspace_bytes = " + std::to_string(bytes) +
                 " WHERE kernel NOT LIKE 'eng%' AND kernel NOT LIKE 'ALGO_0%' AND size_id IN "
                 "(SELECT id FROM size WHERE batch = 8)");
  Convolution convolution(next);
  const DeviceBuffer workspace(bytes);
  for (const double alpha : {1.0, 2.0}) {
    convolution.fill();
    const auto expected = convolution.undivided(handles.native, UCUDNN_BACKWARD_DATA, 1, alpha, 0);
    ASSERT_TRUE(expected);
    EXPECT_CUDNN(
        convolution.run(handles.ours, UCUDNN_BACKWARD_DATA, 1, {workspace.get(), bytes}, alpha, 0))
        << alpha;
    EXPECT_LE(distance(convolution.geometry(UCUDNN_BACKWARD_DATA),
                       convolution.output(UCUDNN_BACKWARD_DATA).read(),
                       *expected),
              toleranceBetweenAlgorithms());
  }
}

}  // namespace
}  // namespace ucudnn::test
