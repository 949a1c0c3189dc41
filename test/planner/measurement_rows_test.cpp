// Which of a database's rows are used, and which are not.
#include "planner/measurement_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/measured.hpp"
#include "support/problems.hpp"

namespace ucudnn {
namespace {

using test::measured;
using test::sampleProblem;

constexpr Kernel kStoredGemm{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_FMA_MATH};
constexpr Kernel kStoredFft{CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH};

// The database does not say: it follows from the problem.
TEST(MeasurementRowsTest, AStoredKernelIsAsAccurateAsTheProblemMakesIt) {
  const StoredMeasurements stored = {
      {2, {100, {{"WINOGRAD_NONFUSED/fma", 1, 10, true, 1}, {"FFT/fma", 1, 10, true, 1}}}}};
  Problem problem = sampleProblem(Operation::kForward, 8);
  EXPECT_TRUE(fromStored(problem, stored).at(2).kernels[0].accurate) << "3x3";
  problem.wSizes[2] = problem.wSizes[3] = 5;
  EXPECT_FALSE(fromStored(problem, stored).at(2).kernels[0].accurate);
  EXPECT_TRUE(fromStored(problem, stored).at(2).kernels[1].accurate);
}

TEST(MeasurementRowsTest, StoredMeasurementsComeBackUnconfirmed) {
  const Measurements measurements = {
      {2,
       {{measured(kStoredGemm, 1.5, 10, true, true, 0.5),
         measured(kStoredFft, 0.1, std::size_t{1} << 40, true, true, 0.1)}}},
      {8, {{}}}};
  const StoredMeasurements stored = toStored(sampleProblem(Operation::kForward, 8), measurements);
  EXPECT_EQ(stored.at(2).kernels[0].kernel, "GEMM/fma");
  int refused = 0;
  const Measurements back = fromStored(sampleProblem(Operation::kForward, 8), stored, &refused);
  EXPECT_EQ(refused, 0);
  ASSERT_EQ(back.size(), 2u);
  ASSERT_EQ(back.at(2).kernels.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Measurement& expected = measurements.at(2).kernels[i];
    const Measurement& found = back.at(2).kernels[i];
    EXPECT_EQ(found.kernel, expected.kernel);
    EXPECT_EQ(found.timeMs, expected.timeMs);
    EXPECT_EQ(found.deviceMs, expected.deviceMs);
    EXPECT_EQ(found.workspaceBytes, expected.workspaceBytes);
    EXPECT_FALSE(found.confirmed);
  }
}

TEST(MeasurementRowsTest, DeterminismIsTheAlgorithmsWhateverTheRowSays) {
  const StoredMeasurements stored = {
      {2, {100, {{"ALGO_0/fma", 1, 0, true, 1}, {"ALGO_1/fma", 1, 0, false, 1}}}}};
  const Measurements found = fromStored(sampleProblem(Operation::kBackwardFilter, 8), stored);
  EXPECT_FALSE(found.at(2).kernels[0].deterministic);
  EXPECT_TRUE(found.at(2).kernels[1].deterministic);
}

TEST(MeasurementRowsTest, RowsThatNameNoKernelOfTheProblemAreLeftOut) {
  StoredMeasurements stored = {{2, {100, {{"GEMM/fma", 1, 10, true, 1}}}}};
  // Another version of μ-cuDNN, another math type, another operation's, none.
  const char* const kOthers[] = {"engine 47 {k2=3}",
                                 "GEMM/default",
                                 "FFT/tensor",
                                 "ALGO_3/fma",
                                 "",
                                 "/",
                                 "GEMM/",
                                 "/fma",
                                 "GEMM/fma/fma",
                                 "gemm/fma",
                                 "GEMM/fma "};
  for (const char* other : kOthers) stored[2].kernels.push_back({other, 0.5, 10, true, 0.5});
  int refused = 0;
  const Measurements found = fromStored(sampleProblem(Operation::kForward, 8), stored, &refused);
  ASSERT_EQ(found.at(2).kernels.size(), 1u);
  EXPECT_EQ(found.at(2).kernels[0].kernel, kStoredGemm);
  EXPECT_EQ(refused, static_cast<int>(std::size(kOthers)));
}

TEST(MeasurementRowsTest, ATimeOfReplayIsNotKnownWhereNoneIsStored) {
  const Problem problem = sampleProblem(Operation::kForward, 8);
  const auto found =
      fromStored(problem, {{2, {9, {{"GEMM/fma", 1, 0, true, 0}, {"FFT/fma", 1, 0, true, 0.5}}}}});
  ASSERT_EQ(found.at(2).kernels.size(), 2u);
  EXPECT_FALSE(found.at(2).kernels[0].isReplayTimed);
  EXPECT_EQ(found.at(2).kernels[0].deviceMs, 1);
  EXPECT_TRUE(found.at(2).kernels[1].isReplayTimed);
}

TEST(MeasurementRowsTest, ErrorsThatNoKernelCouldHaveAreLeftOut) {
  const Problem problem = sampleProblem(Operation::kForward, 8);
  const auto found = [&](const Problem& of, double error) {
    return fromStored(of, {{2, {9, {{"GEMM/fma", 1, 0, true, 1, error}}}}}).at(2).kernels;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, 1e-300, 1e-9, 3.0, 1e300, infinity, std::nan("")})
    EXPECT_TRUE(found(problem, bad).empty()) << bad;
  for (const double good : {2e-8, 1e-7, 3e-4, 1.0}) {
    ASSERT_EQ(1U, found(problem, good).size());
    EXPECT_EQ(good, found(problem, good)[0].error);
  }
  EXPECT_EQ(kUnknownError, found(problem, 0).at(0).error) << "not known";
  const Problem half = sampleProblem(Operation::kForward, 8, 4, CUDNN_DATA_HALF);
  EXPECT_TRUE(found(half, 1e-7).empty()) << "half rounds";
  EXPECT_EQ(1U, found(half, 3e-4).size());
}

// An error that could not be read again is not stored.
TEST(MeasurementRowsTest, OnlyPossibleErrorsAreStored) {
  const Problem problem = sampleProblem(Operation::kForward, 8);
  Measurement known = measured(kStoredGemm, 1, 10), broken = measured(kStoredFft, 1, 10);
  known.error = 1e-7;
  broken.error = 1e30;
  const auto stored = toStored(problem, {{2, {{known, broken, measured(kStoredFft, 2, 0)}}}});
  EXPECT_EQ(1e-7, stored.at(2).kernels[0].error);
  EXPECT_EQ(0, stored.at(2).kernels[1].error);
  EXPECT_EQ(0, stored.at(2).kernels[2].error);
}

bool isTimeKept(const Problem& problem, double timeMs, double deviceMs = 0) {
  const int batch = problem.batch();
  return !fromStored(problem, {{batch, {9, {{"GEMM/fma", timeMs, 0, true, deviceMs}}}}})
              .at(batch)
              .kernels.empty();
}

TEST(MeasurementRowsTest, TimesThatNoHardwareCouldHaveAreLeftOut) {
  const Problem problem = sampleProblem(Operation::kForward, 8);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad :
       {0.0, -0.0, -1.0, 1e-30, 1e-5, 1e10, 1e300, infinity, -infinity, std::nan("")}) {
    EXPECT_FALSE(isTimeKept(problem, bad)) << bad;
    EXPECT_FALSE(isTimeKept(problem, bad, 1)) << bad;
    if (bad == 0) continue;  // of replay: not known
    EXPECT_FALSE(isTimeKept(problem, 1, bad)) << bad;
  }
  for (const double good : {1e-3, 1.0, 1e6}) EXPECT_TRUE(isTimeKept(problem, good)) << good;
}

// AlexNet's second convolution takes 0.3 ms on an H200, at a batch of 256.
TEST(MeasurementRowsTest, TheShortestTimeGrowsWithTheWork) {
  Problem problem = sampleProblem(Operation::kForward, 256);
  problem.xSizes = {256, 64, 27, 27, 0};
  problem.wSizes = {192, 64, 5, 5, 0};
  problem.ySizes = {256, 192, 27, 27, 0};
  EXPECT_TRUE(isTimeKept(problem, 0.03)) << "ten times as fast";
  EXPECT_FALSE(isTimeKept(problem, 0.0003)) << "a thousand times as fast";
  EXPECT_TRUE(isTimeKept(problem.withBatch(1), 0.0003));
  EXPECT_FALSE(isTimeKept(problem.withBatch(std::numeric_limits<int>::max()), 0.3));
}

}  // namespace
}  // namespace ucudnn
