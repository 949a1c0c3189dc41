// Run with UCUDNN_SIMULATOR_PROFILE=misc/profiles/h200_legacy_algorithms.csv.
#include "convolution_fixture.hpp"

namespace ucudnn::simulator::test {
namespace {

std::vector<cudnnConvolutionFwdAlgoPerf_t> find(const ConvolutionCase& parameters) {
  const Convolution c(parameters);
  std::vector<cudnnConvolutionFwdAlgoPerf_t> perfs(8);
  int returned = 0;
  EXPECT_CUDNN(cudnnFindConvolutionForwardAlgorithm(
      c.handle(), c.xDesc(), c.wDesc(), c.convDesc(), c.yDesc(), 8, &returned, perfs.data()));
  perfs.resize(static_cast<std::size_t>(returned));
  return perfs;
}

TEST(ProfileTest, GivesTheRecordedAlgorithmsTimesAndWorkspaces) {
  const struct {
    cudnnConvolutionFwdAlgo_t algorithm;
    float time;
    std::size_t bytes;
  } recorded[] = {{CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, 0.51872F, 338690048},
                  {CUDNN_CONVOLUTION_FWD_ALGO_FFT, 0.61216F, 429047808},
                  {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 0.74349F, 407027712},
                  {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 2.81510F, 1024},
                  {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 4.97139F, 1194393600},
                  {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 5.08166F, 0}};
  const auto perfs = find(alexnetConv2(256));
  ASSERT_EQ(8U, perfs.size());
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(recorded[i].algorithm, perfs[i].algo);
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, perfs[i].status);
    EXPECT_FLOAT_EQ(recorded[i].time, perfs[i].time);
    EXPECT_EQ(recorded[i].bytes, perfs[i].memory);
  }
  // The model offers the fused Winograd for 3x3 only; DIRECT exists nowhere.
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, perfs[6].status);
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED, perfs[7].status);
}

TEST(ProfileTest, TellsTheMathTypesApart) {
  ConvolutionCase parameters = alexnetConv2(256);
  parameters.math = CUDNN_DEFAULT_MATH;
  const auto perfs = find(parameters);
  EXPECT_FLOAT_EQ(0.51210F, perfs[0].time);
  EXPECT_EQ(CUDNN_DEFAULT_MATH, perfs[0].mathType);
}

TEST(ProfileTest, InterpolatesBetweenRecordedBatchSizes) {
  const auto perfs = find(alexnetConv2(192));  // half-way between 128 and 256
  EXPECT_EQ(CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, perfs[0].algo);
  EXPECT_FLOAT_EQ((0.28848F + 0.51872F) / 2, perfs[0].time);
  EXPECT_EQ((338690048U + 196083712U) / 2, perfs[0].memory);
}

TEST(ProfileTest, GrowsInProportionAboveTheLargestRecordedBatchSize) {
  const auto perfs = find(alexnetConv2(512));
  EXPECT_FLOAT_EQ(2 * 0.51872F, perfs[0].time);
  EXPECT_EQ(2U * 338690048U, perfs[0].memory);
}

TEST(ProfileTest, LeavesTheUnrecordedToTheModel) {
  ConvolutionCase parameters = alexnetConv2(16);
  parameters.filters = 191;
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, find(parameters).front().status);
  parameters = alexnetConv2(16);
  parameters.groups = 2;
  EXPECT_NE(find(alexnetConv2(16)).front().time, find(parameters).front().time);
}

TEST(ProfileTest, WhatItReportsIsWhatACallNeeds) {
  ConvolutionCase parameters = alexnetConv2(3);  // between 2 and 4
  Convolution c(parameters);
  for (const Operation operation : kOperations) {
    for (const int algorithm : c.algorithms(operation)) {
      EXPECT_CUDNN(c.run(operation, algorithm)) << algorithm;
    }
  }
}

}  // namespace
}  // namespace ucudnn::simulator::test
