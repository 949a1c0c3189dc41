// Questions one after another: what is known is not timed again, what was left out is judged anew.
#include <limits>

#include "benchmark/device_timer.hpp"
#include "benchmark/question.hpp"
#include "benchmark_fixture.hpp"
#include "kernels/engines.hpp"
#include "support/measured.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

class IncrementalBenchmarkTest : public BenchmarkTest {};

TEST_F(IncrementalBenchmarkTest, TheUndividedKernelsAreAllMeasured) {
  const BenchmarkResult result = run(question(32, 8 * kMebibyte));
  EXPECT_TRUE(result.undividedMeasured);
  EXPECT_EQ(Untried::kNone, result.untried);
  EXPECT_EQ(0, result.failures);
  EXPECT_TRUE(includes(kernelsOf(result.measurements), offered(32, 8 * kMebibyte)));
  EXPECT_FALSE(result.everyOfferFits);
  EXPECT_EQ(result.kernelsMeasured, static_cast<long long>(kernelsOf(result.measurements).size()));
}

TEST_F(IncrementalBenchmarkTest, AskedAgainTheDeviceIsNotTouched) {
  for (const auto& sizes : {powersUpTo(32), allUpTo(32)}) {
    BenchmarkRequest request = question(32, kUnlimited);
    request.sizes = sizes;
    const BenchmarkResult first = run(request);
    EXPECT_TRUE(first.everyOfferFits);
    request.known = &first.measurements;
    const BenchmarkResult again = runUntouched(request);
    EXPECT_TRUE(again.undividedMeasured);
    EXPECT_TRUE(again.everyOfferFits);
  }
}

TEST_F(IncrementalBenchmarkTest, ALimitBeyondEveryOfferIsKnownToAddNothing) {
  const BenchmarkResult first = run(question(32, 1024 * kMebibyte));
  ASSERT_TRUE(first.everyOfferFits);
  BenchmarkRequest larger = question(32, 2048 * kMebibyte);
  larger.known = &first.measurements;
  runUntouched(larger);
}

TEST_F(IncrementalBenchmarkTest, ALargerLimitAddsTheKernelsThatFitNow) {
  BenchmarkRequest request = question(32, 1 * kMebibyte);
  const BenchmarkResult small = run(request);
  request.room.limitBytes = 64 * kMebibyte;
  const BenchmarkResult cold = run(request);
  request.known = &small.measurements;
  const BenchmarkResult more = run(request);
  Measurements known = small.measurements;
  addTo(known, more.measurements);
  EXPECT_TRUE(more.undividedMeasured);
  EXPECT_EQ(more.kernelsMeasured + small.kernelsMeasured,
            static_cast<long long>(kernelsOf(known).size()))
      << "none is timed twice";
  EXPECT_TRUE(includes(kernelsOf(known), kernelsOf(cold.measurements)));
}

/// Among 32 samples' parts kernels are ruled out at 24. For 24 samples undivided that says nothing.
TEST_F(IncrementalBenchmarkTest, WhatWasRuledOutAtOneMiniBatchIsMeasuredAsAnother) {
  BenchmarkRequest before = question(32, 64 * kMebibyte);
  before.sizes = allUpTo(32);
  Measurements known = run(before).measurements;
  ASSERT_FALSE(includes(kernelsOf(known), offered(24, 64 * kMebibyte))) << "nothing was ruled out";
  BenchmarkRequest request = question(24, 64 * kMebibyte);
  request.known = &known;
  const BenchmarkResult result = run(request);
  EXPECT_TRUE(result.undividedMeasured);
  EXPECT_LT(0, result.kernelsMeasured);
  addTo(known, result.measurements);
  EXPECT_TRUE(includes(kernelsOf(known), offered(24, 64 * kMebibyte)));
}

/// An epoch's last batch: whichever was asked first, all that a plan may need is there.
TEST_F(IncrementalBenchmarkTest, AnotherMiniBatchFindsAllThatItFindsByItself) {
  for (const auto& [first, then] : {std::pair(32, 24), std::pair(24, 32), std::pair(32, 31)}) {
    BenchmarkRequest request = question(then, 32 * kMebibyte);
    request.sizes = allUpTo(then);
    const BenchmarkResult cold = run(request);
    BenchmarkRequest before = question(first, 32 * kMebibyte);
    before.sizes = allUpTo(first);
    Measurements known = run(before).measurements;
    request.known = &known;
    const BenchmarkResult warm = run(request);
    EXPECT_LT(warm.kernelsMeasured, cold.kernelsMeasured);
    addTo(known, warm.measurements);
    for (const auto& [batch, size] : cold.measurements) {
      const Measurement* const fastest = fastestOf(size.kernels);
      if (fastest == nullptr) continue;
      // A size between may be ruled out by a better one that only the other question has measured.
      const Measurement* const known_ = fastestOf(known[batch].kernels);
      if (known_ == nullptr) continue;
      EXPECT_LE(known_->timeMs, 1.001 * fastest->timeMs) << first << ", " << then << ": " << batch;
    }
    EXPECT_TRUE(includes(kernelsOf(known), offered(then, 32 * kMebibyte)));
  }
}

/// Only the question's own sizes can take part in its plan.
TEST_F(IncrementalBenchmarkTest, SizesOfAnotherQuestionRuleNothingOut) {
  BenchmarkRequest request = question(16, 64 * kMebibyte);
  const BenchmarkResult cold = run(request);
  Measurements known;  // at 24 samples each kernel seems to take no time at all
  for (const auto& [batch, algorithm] : offered(16, 64 * kMebibyte))
    known[24].kernels.push_back(
        measured({algorithm, request.problem.mathType}, 1e-6, 0, true, true, 1e-6));
  request.known = &known;
  EXPECT_EQ(kernelsOf(cold.measurements), kernelsOf(run(request).measurements));
}

TEST_F(IncrementalBenchmarkTest, ARefusedKernelIsNotTriedAgain) {
  BenchmarkRequest request = question(32, 64 * kMebibyte);
  const BenchmarkResult all = run(request);
  KernelsAtSizes refused;
  const int algorithm = all.measurements.at(32).kernels.front().kernel.id;
  refused[32] = {{algorithm, request.problem.mathType}};
  request.refused = &refused;
  const BenchmarkResult rest = run(request);
  EXPECT_EQ(0U, kernelsOf(rest.measurements).count({32, algorithm}));
  EXPECT_TRUE(rest.undividedMeasured);
}

TEST_F(IncrementalBenchmarkTest, WhatItCostIsAtLeastTheDevicesTime) {
  const BenchmarkResult result = run(question(32, 64 * kMebibyte));
  double sumMs = 0;
  for (const auto& [batch, size] : result.measurements)
    for (const Measurement& m : size.kernels) sumMs += m.deviceMs;
  EXPECT_LT(sumMs, result.spentMs);
}

/// Code is loaded at a kernel's first call. Where a smaller batch leads to expect a long time, that
/// is not taken for the time of the whole.
TEST_F(IncrementalBenchmarkTest, WhatFewSamplesLeadToExpectIsNoTimeOfAKernelThatIsLoaded) {
  const BenchmarkResult plain = run(question(32, 64 * kMebibyte));
  const Measurement truth = *fastestOf(plain.measurements.at(32).kernels);
  Measurements known = run(question(16, 64 * kMebibyte)).measurements;
  for (auto& [batch, size] : known)
    for (Measurement& m : size.kernels)
      if (m.kernel == truth.kernel) m.timeMs = m.deviceMs = 5;
  BenchmarkRequest request = question(32, 64 * kMebibyte);
  request.tuning = Tuning::kFast;
  request.known = &known;
  setMeasuringCost(true);
  const BenchmarkResult result = run(request);
  setMeasuringCost(false);
  const auto& kernels = result.measurements.at(32).kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const Measurement& m) {
    return m.kernel == truth.kernel;
  });
  ASSERT_NE(found, kernels.end());
  EXPECT_LT(found->deviceMs, 1.1 * truth.timeMs);
}

/// Find lists them: one call may take longer than many, and what Find finds must not be missed.
TEST_F(IncrementalBenchmarkTest, AlgorithmsForTheWholeAreTimedWellUpToTwiceTheFront) {
  BenchmarkRequest request = question(32, 64 * kMebibyte);
  request.tuning = Tuning::kFast;
  Question asked = questionOf(request);
  const auto& anchors = asked.anchors();
  const auto whole = std::find_if(
      anchors.begin(), anchors.end(), [](const auto& anchor) { return anchor.batch == 32; });
  ASSERT_TRUE(whole != anchors.end() && whole->offers.size() > 1);
  const auto taking = [&](int offer, double ms) {
    return Measurement{whole->offers[static_cast<std::size_t>(offer)], {ms, ms}, true, true};
  };
  asked.add(32, {taking(0, 0.1)});
  EXPECT_TRUE(asked.isWorthRefining(32, taking(1, 0.19)));
  EXPECT_FALSE(asked.isWorthRefining(32, taking(1, 0.3)));
  EXPECT_FALSE(asked.isWorthRefining(16, taking(1, 0.19))) << "a part";
  Measurement engine = taking(1, 0.19);
  engine.kernel.source = kEngines;
  EXPECT_FALSE(asked.isWorthRefining(32, engine)) << "no list has it";
}

/// cuDNN's tiled FFT takes DeepBench's first OCR layer 0.54 ms for 32 samples and 0.71 for 256:
/// what few samples lead to expect is far off, and the first call of so many loads other code.
TEST_F(IncrementalBenchmarkTest, WhatSeemsFarOffAtTheMiniBatchIsCalledAheadAllTheSame) {
  BenchmarkRequest request = question(32, 64 * kMebibyte);
  request.tuning = Tuning::kFast;
  const BenchmarkResult plain = run(request);
  const Measurement truth = *fastestOf(plain.measurements.at(32).kernels);
  const Question asked = questionOf(request);
  DeviceTimer timer(handle_.get(), request, nullptr, asked);
  timer.prepare();
  TimingTask task;
  task.call = {std::make_shared<const ProblemDescriptors>(request.problem), 32, truth};
  task.expectedMs = 4.3;
  setMeasuringCost(true);
  const TimingOutcome outcome = timer.run(task);
  setMeasuringCost(false);
  EXPECT_LT(outcome.timeMs, 1.1 * truth.timeMs);
}

}  // namespace
}  // namespace ucudnn::test
