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

}  // namespace
}  // namespace ucudnn::test
