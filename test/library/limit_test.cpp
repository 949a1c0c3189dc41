// UCUDNN_WORKSPACE_LIMIT: a cap, whatever the client allows; and UCUDNN_DISABLE.
#include <algorithm>
#include <thread>

#include "../support/simulator.hpp"
#include "child.hpp"
#include "fused.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;

int algorithmCount(ucudnnOperation_t operation) {
  switch (operation) {
    case UCUDNN_BACKWARD_DATA:
      return CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    case UCUDNN_BACKWARD_FILTER:
      return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    default:
      return CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  }
}

class LimitTest : public LibraryTest {
 protected:
  /// Every query's answers are within the cap, and a call with them gives the right result.
  static void expectWithin(std::size_t cap, UcudnnHandle_t handle, Convolution& convolution) {
    for (const ucudnnOperation_t operation : kOperations)
      for (const Query how : kQueries) {
        SCOPED_TRACE(std::string(toText(operation)) + ", query " +
                     std::to_string(static_cast<int>(how)) + ", cap " + std::to_string(cap));
        const DeviceBuffer workspace(kWorkspace);
        std::vector<Performance> results;
        setArithmetic(Arithmetic::kOff);  // only times are wanted of the benchmark
        ASSERT_CUDNN(convolution.query(
            handle, operation, how, 8, &results, {workspace.get(), workspace.bytes()}));
        ASSERT_FALSE(results.empty());
        for (const Performance& entry : results)
          if (entry.status == CUDNN_STATUS_SUCCESS) {
            EXPECT_LE(entry.memory, cap) << entry.algorithm;
          }
        convolution.fill();
        const std::vector<char> expected = convolution.computedOnHost(operation);
        for (int algorithm = 0; algorithm < algorithmCount(operation); ++algorithm) {
          std::size_t bytes = 0;
          if (convolution.workspaceSize(handle, operation, algorithm, &bytes) !=
              CUDNN_STATUS_SUCCESS)
            continue;
          EXPECT_LE(bytes, cap) << algorithm;
          setArithmetic(Arithmetic::kFull);
          convolution.output(operation).poison();
          ASSERT_CUDNN(convolution.run(handle, operation, algorithm, {workspace.get(), bytes}));
          EXPECT_LE(
              distance(
                  convolution.geometry(operation), convolution.output(operation).read(), expected),
              toleranceBetweenAlgorithms());
        }
      }
  }
};

/// The cap is below what the fastest algorithm needs undivided, on the simulator.
constexpr std::size_t kCap = 100000;

TEST_F(LimitTest, BoundsEveryAnswer) {
  const Handles handles;
  ConvolutionCase parameters = fftCase(56);
  for (const int batch : {4, 1}) {  // a batch of one is not planned
    parameters.batch = batch;
    Convolution convolution(parameters);
    std::vector<Performance> results;
    ASSERT_CUDNN(convolution.query(handles.native, UCUDNN_FORWARD, Query::kGet, 8, &results));
    if (onSimulator()) {
      EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const Performance& entry) {
        return entry.status == CUDNN_STATUS_SUCCESS && entry.memory > kCap;
      }));
    }
    ASSERT_CUDNN(handles.ours.setWorkspaceLimit(kCap));
    expectWithin(kCap, handles.ours, convolution);
  }
}

TEST_F(LimitTest, HoldsForPlansThatWereAskedForBefore) {
  const ConvolutionCase parameters = fftCase(388);  // FFT even in micro-batches
  const ForcedSplits forced({parameters});
  const Handles handles;
  Convolution convolution(parameters);
  for (const ucudnnOperation_t operation : kOperations) {
    std::vector<Performance> results;
    const DeviceBuffer workspace(kWorkspace);
    const auto ask = [&] {
      ASSERT_CUDNN(convolution.query(handles.ours,
                                     operation,
                                     Query::kFindEx,
                                     1,
                                     &results,
                                     {workspace.get(), workspace.bytes()}));
    };
    ask();
    const std::size_t without = results.at(0).memory;
    const std::size_t cap = without / 2;
    ASSERT_GT(cap, 1024U);
    ASSERT_CUDNN(handles.ours.setWorkspaceLimit(cap));
    std::size_t bytes = 0;
    ASSERT_CUDNN(
        convolution.workspaceSize(handles.ours, operation, results.at(0).algorithm, &bytes));
    EXPECT_LE(bytes, cap);
    ask();
    EXPECT_LE(results.at(0).memory, cap);
    ASSERT_CUDNN(handles.ours.setWorkspaceLimit(SIZE_MAX));
    ask();
    EXPECT_EQ(without, results.at(0).memory);
  }
}

TEST_F(LimitTest, CallsUseNoMoreOfALargerWorkspace) {
  const ConvolutionCase parameters = fftCase(64);
  const ForcedSplits forced({parameters});
  const EnvironmentGuard cap("UCUDNN_WORKSPACE_LIMIT", std::to_string(kCap));
  const Handles handles;
  Convolution convolution(parameters);
  for (const ucudnnOperation_t operation : kOperations) {
    DeviceBuffer workspace(kWorkspace);
    const std::vector<char> pattern(kWorkspace, 0x55);
    const long long splitBefore = statistics().splitCalls;
    for (int i = 0; i < 2; ++i) {
      workspace.write(pattern);
      ASSERT_CUDNN(
          convolution.run(handles.ours, operation, 0, {workspace.get(), workspace.bytes()}));
      const std::vector<char> after = workspace.read();
      EXPECT_TRUE(std::equal(after.begin() + kCap, after.end(), pattern.begin() + kCap));
    }
    EXPECT_EQ(splitBefore + 2, statistics().splitCalls);
  }
}

TEST_F(LimitTest, AFusedCallWithoutActivationRunsAllTheSame) {
  constexpr int kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  for (const std::size_t cap : {std::size_t{0}, std::size_t{1024}, kCap}) {
    SCOPED_TRACE(cap);
    const Handles handles;
    ASSERT_CUDNN(handles.ours.setWorkspaceLimit(cap));
    Convolution convolution(fftCase(68));
    Fused fused(convolution, CUDNN_ACTIVATION_IDENTITY);
    std::size_t bytes = 0;
    ASSERT_CUDNN(convolution.workspaceSize(handles.ours, UCUDNN_FORWARD, kAlgorithm, &bytes));
    const DeviceBuffer workspace(bytes);
    convolution.y().poison();
    EXPECT_CUDNN(fused.run(handles.ours, kAlgorithm, {workspace.get(), bytes}, 1, 0, false));
    const std::vector<char> ours = convolution.y().read();
    std::size_t nativeBytes = 0;
    ASSERT_CUDNN(
        convolution.workspaceSize(handles.native, UCUDNN_FORWARD, kAlgorithm, &nativeBytes));
    const DeviceBuffer enough(nativeBytes);
    ASSERT_CUDNN(fused.run(handles.native, kAlgorithm, {enough.get(), nativeBytes}, 1, 0, false));
    EXPECT_LE(distance(convolution.geometry(UCUDNN_FORWARD), ours, convolution.y().read()),
              toleranceBetweenAlgorithms());
  }
}

TEST_F(LimitTest, DisabledEverythingIsCudnns) {
  const ConvolutionCase parameters = fftCase(72);
  const ForcedSplits forced({parameters});
  const EnvironmentGuard disabled("UCUDNN_DISABLE", "1");
  const EnvironmentGuard cap("UCUDNN_WORKSPACE_LIMIT", "0");
  const Handles handles;
  Convolution convolution(parameters);
  const ucudnnStatistics_t before = statistics();
  for (const ucudnnOperation_t operation : kOperations)
    for (const Query how : {Query::kGet, Query::kFind}) {
      std::vector<Performance> ours, native;
      ASSERT_CUDNN(convolution.query(handles.ours, operation, how, 8, &ours));
      ASSERT_CUDNN(convolution.query(handles.native, operation, how, 8, &native));
      ASSERT_EQ(native.size(), ours.size());
      for (std::size_t i = 0; i < native.size(); ++i)
        if (how == Query::kGet) {  // on a GPU measurements differ
          EXPECT_EQ(native[i].algorithm, ours[i].algorithm);
          EXPECT_EQ(native[i].memory, ours[i].memory);
        }
      std::size_t bytes = 0;
      ASSERT_CUDNN(
          convolution.workspaceSize(handles.ours, operation, ours.at(0).algorithm, &bytes));
      const DeviceBuffer workspace(bytes);
      ASSERT_CUDNN(
          convolution.run(handles.ours, operation, ours.at(0).algorithm, {workspace.get(), bytes}));
    }
  const ucudnnStatistics_t after = statistics();
  EXPECT_EQ(before.splitCalls, after.splitCalls);
  EXPECT_EQ(before.undividedCalls, after.undividedCalls);
  EXPECT_EQ(before.bypassedCalls, after.bypassedCalls);
}

TEST_F(LimitTest, TheTraceTellsHowEachCallRan) {
  const ConvolutionCase parameters = fftCase(76);
  const ForcedSplits forced({parameters});
  const TemporaryDirectory directory;
  const EnvironmentGuard trace("UCUDNN_TRACE", directory.file("trace"));
  const Handles handles;
  Convolution convolution(parameters);
  ConvolutionCase single = parameters;
  single.batch = 1;
  Convolution one(single);
  const DeviceBuffer workspace(kWorkspace);
  const Workspace granted{workspace.get(), workspace.bytes()};
  for (int i = 0; i < 2; ++i)
    ASSERT_CUDNN(convolution.run(handles.ours, UCUDNN_FORWARD, 0, granted));
  ASSERT_CUDNN(one.run(handles.ours, UCUDNN_FORWARD, 0, granted));
  const float beta = 0;
  EXPECT_NE(CUDNN_STATUS_SUCCESS,
            cudnnConvolutionForward(handles.ours,
                                    nullptr,
                                    convolution.xDesc(),
                                    convolution.x().get(),
                                    convolution.wDesc(),
                                    convolution.w().get(),
                                    convolution.convDesc(),
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                    nullptr,
                                    0,
                                    &beta,
                                    convolution.yDesc(),
                                    convolution.y().get()));
  const auto lines = linesWith(directory.file("trace"), {"forward x=", "stream "});
  ASSERT_EQ(4U, lines.size());
  EXPECT_NE(std::string::npos, lines[0].find("N=4\tsplit\t")) << lines[0];
  EXPECT_NE(std::string::npos, lines[0].find(" of 67108864 bytes")) << lines[0];
  EXPECT_NE(std::string::npos, lines[1].find("N=4\tsplit, replayed\t")) << lines[1];
  EXPECT_NE(std::string::npos, lines[2].find("N=1\tundivided\t")) << lines[2];
  EXPECT_NE(std::string::npos, lines[3].find("\tCUDNN_STATUS_")) << lines[3];
}

// The last one: from here on the environment's limit holds for no handle of this process.
TEST_F(LimitTest, OneForTheProcessReachesEachHandleAtItsNextUse) {
  const ConvolutionCase parameters = fftCase(392);
  const ForcedSplits forced({parameters});
  Convolution convolution(parameters);
  const auto memory = [&](UcudnnHandle_t handle) {
    const DeviceBuffer workspace(kWorkspace);
    std::vector<Performance> results;
    EXPECT_CUDNN(convolution.query(
        handle, UCUDNN_FORWARD, Query::kFindEx, 1, &results, {workspace.get(), workspace.bytes()}));
    return results.at(0).memory;
  };
  const Handles before;
  const std::size_t unlimited = memory(before.ours);
  const std::size_t cap = unlimited / 2;
  std::thread([&] { EXPECT_CUDNN(ucudnnSetProcessWorkspaceLimit(cap)); }).join();
  const Handles after;
  for (int i = 0; i < 2; ++i) {
    EXPECT_LE(memory(before.ours), cap);
    EXPECT_LE(memory(after.ours), cap);
  }
  ASSERT_CUDNN(before.ours.setWorkspaceLimit(SIZE_MAX));
  EXPECT_EQ(unlimited, memory(before.ours));
  std::thread([&] { EXPECT_EQ(unlimited, memory(before.ours)); }).join();
  EXPECT_LE(memory(after.ours), cap);
  ASSERT_CUDNN(ucudnnSetProcessWorkspaceLimit(cap));
  EXPECT_LE(memory(before.ours), cap);
  ASSERT_CUDNN(ucudnnSetProcessWorkspaceLimit(SIZE_MAX));
  EXPECT_EQ(unlimited, memory(before.ours));
  EXPECT_EQ(unlimited, memory(after.ours));
}

}  // namespace
}  // namespace ucudnn::test
