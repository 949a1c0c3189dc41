// UCUDNN_SIMULATOR_RANDOM_TIMES.
#include <algorithm>
#include <map>

#include "convolution_fixture.hpp"
#include "simulator/runtime.hpp"

namespace ucudnn::simulator::test {
namespace {

using Times = std::map<int, float>;  // by algorithm

class RandomTimesTest : public testing::Test {
 protected:
  ~RandomTimesTest() override { ucudnnSimulatorSetRandomTimes(0); }
};

ConvolutionCase layer(int batch) {
  ConvolutionCase convolution;
  convolution.batch = batch;
  convolution.channels = 16;
  convolution.input = {14, 14};
  return convolution;
}

std::vector<cudnnConvolutionFwdAlgoPerf_t> query(const ConvolutionCase& parameters, bool measure) {
  const Convolution convolution(parameters);
  std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  int returned = 0;
  const auto ask =
      measure ? cudnnFindConvolutionForwardAlgorithm : cudnnGetConvolutionForwardAlgorithm_v7;
  EXPECT_CUDNN(ask(convolution.handle(),
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

Times times(const ConvolutionCase& parameters, std::uint64_t seed) {
  ucudnnSimulatorSetRandomTimes(seed);
  Times result;
  for (const auto& perf : query(parameters, true)) {
    if (perf.status == CUDNN_STATUS_SUCCESS) result[perf.algo] = perf.time;
  }
  return result;
}

std::vector<int> heuristicOrder(std::uint64_t seed) {
  ucudnnSimulatorSetRandomTimes(seed);
  std::vector<int> order;
  for (const auto& perf : query(layer(8), false)) order.push_back(perf.algo);
  return order;
}

TEST_F(RandomTimesTest, AreTheSameForTheSameSeedAndDifferForOthers) {
  const Times first = times(layer(8), 1);
  const Times second = times(layer(8), 2);
  ASSERT_GT(first.size(), 4U);
  EXPECT_EQ(first, times(layer(8), 1));
  for (const auto& [algorithm, time] : first) EXPECT_NE(time, second.at(algorithm));
}

TEST_F(RandomTimesTest, ReachFromAnEighthToEightTimesTheModels) {
  float least = 1;
  float most = 1;
  for (int batch = 1; batch <= 64; ++batch) {
    const Times model = times(layer(batch), 0);
    for (const auto& [algorithm, time] : times(layer(batch), 7)) {
      const float factor = time / model.at(algorithm);
      EXPECT_GE(factor, 0.1249F);
      EXPECT_LE(factor, 8.01F);
      least = std::min(least, factor);
      most = std::max(most, factor);
    }
  }
  EXPECT_LT(least, 0.15F);
  EXPECT_GT(most, 6.5F);
}

TEST_F(RandomTimesTest, SeedZeroIsOff) {
  const Times before = times(layer(8), 0);
  EXPECT_NE(before, times(layer(8), 3));
  EXPECT_EQ(before, times(layer(8), 0));
}

// The factors of neighbouring sizes, of problems and of math types have nothing to do with each
// other.
TEST_F(RandomTimesTest, DifferForEveryBatchSizeProblemAndMathType) {
  const auto factor = [](const ConvolutionCase& parameters) {
    return times(parameters, 5).at(0) / times(parameters, 0).at(0);
  };
  ConvolutionCase wider = layer(8);
  wider.input[1] = 15;
  ConvolutionCase strided = layer(8);
  strided.stride = {2, 2};
  ConvolutionCase tensorCores = layer(8);
  tensorCores.math = CUDNN_DEFAULT_MATH;
  const float plain = factor(layer(8));
  for (const ConvolutionCase& other : {layer(7), layer(9), wider, strided, tensorCores}) {
    EXPECT_GT(std::abs(factor(other) / plain - 1), 0.01F) << other;
  }
}

// A micro-batch of a larger tensor is the same kernel, whatever lies between its samples.
TEST_F(RandomTimesTest, DoNotDependOnTheBatchStride) {
  ConvolutionCase gapped = layer(8);
  gapped.layout = Layout::kGapped;
  const Convolution strided(gapped);
  int dims[4];
  int strides[4];
  int rank = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const auto time = [&] {
    std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
    int returned = 0;
    EXPECT_CUDNN(cudnnFindConvolutionForwardAlgorithm(strided.handle(),
                                                      strided.xDesc(),
                                                      strided.wDesc(),
                                                      strided.convDesc(),
                                                      strided.yDesc(),
                                                      CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                                      &returned,
                                                      perfs.data()));
    return perfs[0].time;
  };
  ucudnnSimulatorSetRandomTimes(11);
  const float before = time();
  EXPECT_CUDNN(cudnnGetTensorNdDescriptor(strided.xDesc(), 4, &type, &rank, dims, strides));
  strides[0] += 40;
  EXPECT_CUDNN(cudnnSetTensorNdDescriptor(strided.xDesc(), type, 4, dims, strides));
  EXPECT_EQ(before, time());
  strides[1] += 1;
  EXPECT_CUDNN(cudnnSetTensorNdDescriptor(strided.xDesc(), type, 4, dims, strides));
  EXPECT_NE(before, time());
}

// Heuristics know the model; that they are wrong now and then is what makes them heuristics.
TEST_F(RandomTimesTest, HeuristicsDoNotKnowThem) {
  EXPECT_EQ(heuristicOrder(0), heuristicOrder(4));
}

// A call takes the time that was measured.
TEST_F(RandomTimesTest, CallsTakeWhatWasMeasured) {
  const Times measured = times(layer(8), 9);
  Convolution convolution(layer(8));
  ASSERT_CUDNN(convolution.run(Operation::kForward, 0));  // fills its tensors, which takes time
  for (const auto& [algorithm, time] : measured) {
    ASSERT_CUDA(cudaDeviceSynchronize());
    const double before = ucudnnSimulatorClock(nullptr);
    ASSERT_CUDNN(convolution.run(Operation::kForward, algorithm));
    EXPECT_NEAR(ucudnnSimulatorClock(nullptr) - before, static_cast<double>(time), 1e-6);
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
