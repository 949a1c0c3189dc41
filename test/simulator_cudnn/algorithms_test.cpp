// The algorithms' workspaces, and how algorithms are found.
#include <algorithm>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

std::vector<cudnnConvolutionFwdAlgoPerf_t> get(const Convolution& convolution, int requested) {
  std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(static_cast<std::size_t>(requested));
  int returned = 0;
  EXPECT_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(convolution.handle(),
                                                      convolution.xDesc(),
                                                      convolution.wDesc(),
                                                      convolution.convDesc(),
                                                      convolution.yDesc(),
                                                      requested,
                                                      &returned,
                                                      perfs.data()));
  perfs.resize(static_cast<std::size_t>(returned));
  return perfs;
}

std::vector<cudnnConvolutionFwdAlgoPerf_t> find(const Convolution& convolution) {
  std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  int returned = 0;
  EXPECT_CUDNN(cudnnFindConvolutionForwardAlgorithm(convolution.handle(),
                                                    convolution.xDesc(),
                                                    convolution.wDesc(),
                                                    convolution.convDesc(),
                                                    convolution.yDesc(),
                                                    CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                                    &returned,
                                                    perfs.data()));
  perfs.resize(static_cast<std::size_t>(returned));
  return perfs;
}

std::vector<cudnnConvolutionFwdAlgoPerf_t> findEx(Convolution& convolution,
                                                  std::size_t workspaceBytes,
                                                  cudnnStatus_t* status,
                                                  double* elapsedMs) {
  const DeviceBuffer workspace(workspaceBytes);
  std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  int returned = 0;
  const double before = ucudnnSimulatorClock(nullptr);
  *status = cudnnFindConvolutionForwardAlgorithmEx(convolution.handle(),
                                                   convolution.xDesc(),
                                                   convolution.x().get(),
                                                   convolution.wDesc(),
                                                   convolution.w().get(),
                                                   convolution.convDesc(),
                                                   convolution.yDesc(),
                                                   convolution.y().get(),
                                                   CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                                   &returned,
                                                   perfs.data(),
                                                   workspace.get(),
                                                   workspaceBytes);
  *elapsedMs = ucudnnSimulatorClock(nullptr) - before;
  perfs.resize(static_cast<std::size_t>(returned));
  return perfs;
}

TEST(AlgorithmWorkspaceTest, IsWhatAnH200Asked) {
  const struct {
    int batch;
    int algorithm;
    std::size_t bytes;  // misc/profiles/h200_legacy_algorithms.csv
  } cases[] = {{256, 5, 338690048},
               {64, 5, 124780544},
               {256, 7, 407027712},
               {1, 7, 33226752},
               {256, 2, 1194393600},
               {256, 1, 1024},
               {256, 0, 0}};
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.algorithm);
    const Convolution convolution(alexnetConv2(expected.batch));
    std::size_t bytes = 1;
    EXPECT_CUDNN(convolution.workspaceSize(Operation::kForward, expected.algorithm, &bytes));
    EXPECT_EQ(expected.bytes, bytes);
  }
}

TEST(AlgorithmTimeTest, HasTheCliff) {
  const auto perfs = find(Convolution(alexnetConv2(256)));
  ASSERT_FALSE(perfs.empty());
  float frugal = 0;
  for (const auto& perf : perfs) {
    if (perf.status != CUDNN_STATUS_SUCCESS || perf.memory != 0) continue;
    frugal = perf.time;
    break;
  }
  // On an H200 it is 9.8 times.
  EXPECT_GT(frugal, 4 * perfs.front().time);
  EXPECT_GT(perfs.front().memory, std::size_t{64} << 20);
}

TEST(AlgorithmTimeTest, GrowsWithTheBatchAndFavoursLargeOnes) {
  double previous = 0;
  for (const int batch : {1, 2, 4, 8, 16, 32, 64}) {
    const auto perfs = find(Convolution(alexnetConv2(batch)));
    ASSERT_FALSE(perfs.empty());
    EXPECT_GT(perfs.front().time, previous);
    if (previous > 0) {
      EXPECT_LT(perfs.front().time, 2 * previous);
    }
    previous = static_cast<double>(perfs.front().time);
  }
}

TEST(GetAlgorithmTest, OrdersByTimeWithoutTellingIt) {
  const Convolution convolution(alexnetConv2(16));
  const auto found = find(convolution);
  const auto got = get(convolution, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  ASSERT_EQ(found.size(), got.size());
  bool frugal = false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(found[i].status, got[i].status);
    EXPECT_EQ(-1.0F, got[i].time);
    if (got[i].status != CUDNN_STATUS_SUCCESS) continue;
    EXPECT_EQ(found[i].algo, got[i].algo);
    std::size_t bytes = 0;
    EXPECT_CUDNN(convolution.workspaceSize(Operation::kForward, got[i].algo, &bytes));
    EXPECT_EQ(bytes, got[i].memory);
    EXPECT_EQ(CUDNN_FMA_MATH, got[i].mathType);
    EXPECT_EQ(CUDNN_DETERMINISTIC, got[i].determinism);
    frugal = frugal || bytes == 0;
  }
  EXPECT_TRUE(frugal);
}

TEST(GetAlgorithmTest, ReturnsNoMoreThanAsked) {
  const Convolution convolution(alexnetConv2(16));
  EXPECT_EQ(1U, get(convolution, 1).size());
  EXPECT_EQ(get(convolution, 1)[0].algo, get(convolution, 3)[0].algo);
}

TEST(FindAlgorithmExTest, MeasuresWithinTheWorkspaceAndWritesTheOutputOnly) {
  Convolution convolution(ConvolutionCase{});
  const std::vector<char> x = convolution.x().read();
  const std::vector<char> w = convolution.w().read();
  const std::vector<char> expected = convolution.expected(Operation::kForward);
  constexpr std::size_t kWorkspaceBytes = 4096;
  cudnnStatus_t status;
  double elapsed = 0;
  const auto perfs = findEx(convolution, kWorkspaceBytes, &status, &elapsed);
  ASSERT_CUDNN(status);
  ASSERT_EQ(8U, perfs.size());
  double sum = 0;
  bool failed = false;
  for (std::size_t i = 0; i < perfs.size(); ++i) {
    SCOPED_TRACE(perfs[i].algo);
    if (perfs[i].status != CUDNN_STATUS_SUCCESS) {
      failed = true;
      EXPECT_EQ(-1.0F, perfs[i].time);
      const bool tooLarge = perfs[i].memory > kWorkspaceBytes;
      EXPECT_EQ(tooLarge ? CUDNN_STATUS_ALLOC_FAILED : CUDNN_STATUS_NOT_SUPPORTED, perfs[i].status);
      continue;
    }
    EXPECT_FALSE(failed);
    EXPECT_LE(perfs[i].memory, kWorkspaceBytes);
    if (i > 0) {
      EXPECT_GE(perfs[i].time, perfs[i - 1].time);
    }
    sum += static_cast<double>(perfs[i].time);
  }
  EXPECT_TRUE(failed);
  EXPECT_NEAR(sum, elapsed, 1e-3 * sum);
  EXPECT_EQ(x, convolution.x().read());
  EXPECT_EQ(w, convolution.w().read());
  EXPECT_EQ(expected, convolution.y().read());
}

TEST(FindAlgorithmTest, FailsWhereMemoryIsShort) {
  const Convolution convolution(alexnetConv2(8));
  const std::size_t held = ucudnnSimulatorLiveBytes(0);
  ucudnnSimulatorSetMemory(0, std::size_t{16} << 20);
  const auto perfs = find(convolution);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, perfs.front().status);
  EXPECT_TRUE(std::any_of(perfs.begin(), perfs.end(), [](const auto& perf) {
    return perf.status == CUDNN_STATUS_ALLOC_FAILED;
  }));
  ucudnnSimulatorSetMemory(0, 4096);
  int returned = 0;
  cudnnConvolutionFwdAlgoPerf_t perf;
  EXPECT_EQ(CUDNN_STATUS_ALLOC_FAILED,
            cudnnFindConvolutionForwardAlgorithm(convolution.handle(),
                                                 convolution.xDesc(),
                                                 convolution.wDesc(),
                                                 convolution.convDesc(),
                                                 convolution.yDesc(),
                                                 1,
                                                 &returned,
                                                 &perf));
  ucudnnSimulatorSetMemory(0, std::size_t{1} << 37);
  EXPECT_EQ(held, ucudnnSimulatorLiveBytes(0));
}

TEST(DeterminismTest, IsAsDocumented) {
  const Convolution convolution(ConvolutionCase{});
  cudnnConvolutionBwdDataAlgoPerf_t data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
  cudnnConvolutionBwdFilterAlgoPerf_t filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
  int returned = 0;
  ASSERT_CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(convolution.handle(),
                                                           convolution.wDesc(),
                                                           convolution.yDesc(),
                                                           convolution.convDesc(),
                                                           convolution.xDesc(),
                                                           CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                                                           &returned,
                                                           data));
  for (int i = 0; i < returned; ++i) {
    EXPECT_EQ(data[i].algo != CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
              data[i].determinism == CUDNN_DETERMINISTIC);
  }
  ASSERT_CUDNN(
      cudnnGetConvolutionBackwardFilterAlgorithm_v7(convolution.handle(),
                                                    convolution.xDesc(),
                                                    convolution.yDesc(),
                                                    convolution.convDesc(),
                                                    convolution.wDesc(),
                                                    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
                                                    &returned,
                                                    filter));
  for (int i = 0; i < returned; ++i) {
    const bool random = filter[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
                        filter[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
    if (filter[i].status == CUDNN_STATUS_SUCCESS) {
      EXPECT_EQ(random, filter[i].determinism == CUDNN_NON_DETERMINISTIC);
    }
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
