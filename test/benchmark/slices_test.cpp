// A benchmark that pauses after each step.
#include "benchmark/benchmark_run.hpp"
#include "benchmark_fixture.hpp"

namespace ucudnn::test {
namespace {

class BenchmarkSlicesTest : public BenchmarkTest {
 protected:
  /// Each step on a handle of its own, if so.
  BenchmarkResult runInSteps(const BenchmarkRequest& request, int steps, bool otherHandles) {
    const CudnnHandle other = makeOwned<CudnnHandle>(cudnnCreate);
    BenchmarkRun run(handle_.get(), request);
    for (int step = 0; step < steps; ++step) {
      run.resume(otherHandles && step % 2 == 1 ? other.get() : handle_.get(), request.buffers);
      const bool isLeft = run.advance();
      run.pause();
      EXPECT_EQ(0U, liveBytes()) << "nothing is held";
      if (!isLeft) break;
    }
    return run.finish();
  }
};

TEST_F(BenchmarkSlicesTest, FindsWhatItFindsAtOnce) {
  for (const Tuning tuning : {Tuning::kExhaustive, Tuning::kFast})
    for (const Kernels kernels : {Kernels::kLegacy, Kernels::kAll})
      for (const bool otherHandles : {false, true}) {
        BenchmarkRequest request = question(32, kLimit);
        request.tuning = tuning;
        request.kernels = kernels;
        const BenchmarkResult atOnce = run(request);
        const BenchmarkResult inSteps = runInSteps(request, 100000, otherHandles);
        EXPECT_EQ(kernelsOf(atOnce.measurements), kernelsOf(inSteps.measurements));
        EXPECT_EQ(atOnce.kernelsMeasured, inSteps.kernelsMeasured);
        EXPECT_EQ(atOnce.everyOfferFits, inSteps.everyOfferFits);
        EXPECT_EQ(Untried::kNone, inSteps.untried);
        EXPECT_TRUE(inSteps.undividedMeasured);
      }
}

TEST_F(BenchmarkSlicesTest, EndedEarlyItHasNoAnswer) {
  for (const int steps : {0, 1, 5, 20}) {
    const BenchmarkResult result = runInSteps(question(32, kLimit), steps, false);
    EXPECT_EQ(Untried::kTime, result.untried) << steps;
    EXPECT_FALSE(result.undividedMeasured) << steps;
    EXPECT_FALSE(result.everyOfferFits) << steps;
  }
}

TEST_F(BenchmarkSlicesTest, WhatTakesLongIsLeftOut) {
  BenchmarkRequest request = question(32, kLimit);
  const BenchmarkResult all = run(request);
  double leastMs = 1e9, mostMs = 0;
  for (const Measurement& m : all.measurements.at(32).kernels) {
    leastMs = std::min(leastMs, m.timeMs);
    mostMs = std::max(mostMs, m.timeMs);
  }
  ASSERT_LT(4 * leastMs, mostMs);
  request.longestMs = 2 * leastMs;
  const BenchmarkResult most = run(request);
  EXPECT_LT(most.measurements.at(32).kernels.size(), all.measurements.at(32).kernels.size());
  double fastestMs = 1e9;
  for (const Measurement& m : most.measurements.at(32).kernels) {
    EXPECT_LT(m.timeMs, mostMs);
    fastestMs = std::min(fastestMs, m.timeMs);
  }
  EXPECT_EQ(leastMs, fastestMs);
}

}  // namespace
}  // namespace ucudnn::test
