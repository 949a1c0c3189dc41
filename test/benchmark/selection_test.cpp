// Which kernels are timed: plain rules over numbers.
#include "benchmark/selection.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "benchmark/offers.hpp"
#include "support/measured.hpp"

namespace ucudnn {
namespace {

using test::kA, test::kB, test::kC, test::measured, test::offered, test::size, test::withError;

Measurement inaccurate(Kernel kernel, double timeMs, std::size_t bytes) {
  return measured(kernel, timeMs, bytes, true, false);
}

/// The same, enqueued and replayed.
KernelTiming both(double timeMs) {
  return {timeMs, timeMs};
}

double hopedMs(const Measurements& measured, Kernel kernel, int batch) {
  return hopedFor(measured, kernel, batch).timeMs;
}

TEST(IsDominatedTest, ByAKernelThatIsFasterEnoughInNoMoreWorkspace) {
  const struct {
    const char* why;
    Measurement kernel, other;
    double factor;
    bool dominated;
  } kCases[] = {
      {"itself", measured(kA, 1, 0), measured(kA, 0.1, 0), 1, false},
      {"faster, smaller", measured(kA, 2, 100), measured(kB, 1, 50), 1, true},
      {"faster, as large", measured(kA, 2, 100), measured(kB, 1, 100), 1, true},
      {"as fast, as large", measured(kA, 1, 100), measured(kB, 1, 100), 1, true},
      {"faster, larger", measured(kA, 2, 100), measured(kB, 1, 101), 1, false},
      {"slower, smaller", measured(kA, 1, 100), measured(kB, 2, 0), 1, false},
      {"not by the factor", measured(kA, 1.2, 0), measured(kB, 1, 0), 1.25, false},
      {"by the factor", measured(kA, 1.25, 0), measured(kB, 1, 0), 1.25, true},
      {"not deterministic as it is", measured(kA, 9, 0), measured(kB, 1, 0, false), 1, false},
      {"neither is deterministic", measured(kA, 9, 0, false), measured(kB, 1, 0, false), 1, true},
      {"deterministic besides", measured(kA, 9, 0, false), measured(kB, 1, 0), 1, true},
      {"not accurate as it is", measured(kA, 9, 0), inaccurate(kB, 1, 0), 1, false},
      {"accurate besides", inaccurate(kA, 9, 0), measured(kB, 1, 0), 1, true},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isDominated(expected.kernel, {expected.kernel, expected.other}, expected.factor),
              expected.dominated)
        << expected.why;
}

// Errors repeat within a quarter; one that is not known may be any.
TEST(IsDominatedTest, ByAKernelThatIsNoLessAccurateWhereErrorsAreKnown) {
  const struct {
    const char* why;
    double error, other;
    bool dominated;
  } kCases[] = {
      {"more accurate", 3e-4, 1e-7, true},
      {"as accurate", 1e-7, 1e-7, true},
      {"within what repeats", 1e-7, 1.2e-7, true},
      {"less accurate", 1e-7, 1.3e-7, false},
      {"known", kUnknownError, 1e-3, true},
      {"not known", 1e-3, kUnknownError, false},
      {"neither is known", kUnknownError, kUnknownError, true},
  };
  for (const auto& expected : kCases) {
    const Measurement kernel = withError(measured(kA, 9, 0), expected.error);
    const Measurement other = withError(measured(kB, 1, 0), expected.other);
    EXPECT_EQ(expected.dominated, isDominated(kernel, {kernel, other}, 1)) << expected.why;
    EXPECT_EQ(expected.dominated, isOffFront({{4, size({other})}}, 4, both(9), kernel, 1))
        << expected.why;
  }
}

TEST(KernelErrorsTest, AreTheLargestOfAnySizeWhereOneHasNone) {
  const Measurements measurements = {
      {1, size({withError(measured(kA, 1, 0), 1e-7), measured(kB, 1, 0)})},
      {2, size({withError(measured(kA, 1, 0), 2e-7), measured(kC, 1, 0)})},
      {4, size({withError(measured(kC, 1, 0), 3e-4)})}};
  const KernelErrors largest = largestErrors(measurements);
  EXPECT_EQ(2u, largest.size());
  const auto error = [&](int batch, std::size_t kernel, Operation operation) {
    return errorOf(measurements.at(batch).kernels[kernel], operation, batch, largest);
  };
  EXPECT_EQ(1e-7, error(1, 0, Operation::kForward)) << "its own";
  EXPECT_EQ(kUnknownError, error(1, 1, Operation::kForward));
  EXPECT_EQ(3e-4, error(2, 1, Operation::kForward));
  EXPECT_EQ(3e-4, error(2, 1, Operation::kBackwardFilter)) << "measured at 4";
  // An error measured at 4 is no promise for more summands.
  const Measurement larger = measured(kC, 1, 0);
  EXPECT_EQ(3e-4, errorOf(larger, Operation::kBackwardData, 8, largest));
  EXPECT_EQ(kUnknownError, errorOf(larger, Operation::kBackwardFilter, 8, largest));
}

TEST(IsDominatedTest, MathTypesAreDifferentKernels) {
  const Kernel sameAlgorithm{kA.id, 1};
  EXPECT_TRUE(isDominated(measured(kA, 2, 0), {measured(sameAlgorithm, 1, 0)}, 1));
}

TEST(ExpectedMsTest, ScalesFromTheLargestSmallerSize) {
  const Measurements sizes = {{1, size({measured(kA, 5, 0), measured(kB, 3, 0)})},
                              {4, size({measured(kA, 8, 0)})},
                              {16, size({measured(kA, 20, 0), measured(kB, 30, 0)})},
                              {32, size({measured({3, 0}, 1.6, 0)})}};
  const struct {
    Kernel kernel;
    int batch;
    double expectedMs;
  } kCases[] = {
      {kA, 8, 16},       // from 4
      {kA, 16, 32},      // the size itself is not below it
      {kA, 32, 40},      // from 16
      {kB, 8, 24},       // from 1: 4 has none
      {kA, 1, 0},        // nothing below, and long at 4
      {kC, 32, 0},       // never measured
      {{3, 0}, 8, 0.4},  // from 32: short
      {{3, 0}, 16, 0},   // 0.8: long
  };
  for (const auto& expected : kCases)
    EXPECT_DOUBLE_EQ(expectedMs(sizes, expected.kernel, expected.batch), expected.expectedMs)
        << expected.kernel.id << " at " << expected.batch;
}

TEST(MostExpectedMsTest, FewerSamplesTakeNoLongerAndMoreInProportion) {
  const Measurements sizes = {{2, size({measured(kA, 1, 0)})}, {8, size({measured(kA, 2, 0)})}};
  EXPECT_EQ(mostExpectedMs(sizes, kA, 1), 1);
  EXPECT_EQ(mostExpectedMs(sizes, kA, 2), 2) << "its own time says nothing";
  EXPECT_EQ(mostExpectedMs(sizes, kA, 3), 1.5);
  EXPECT_EQ(mostExpectedMs(sizes, kA, 6), 2);
  EXPECT_EQ(mostExpectedMs(sizes, kA, 16), 4);
  EXPECT_TRUE(std::isinf(mostExpectedMs(sizes, kB, 4)));
}

TEST(IsWorthTryingTest, UnlessRepeatingAnotherAtASmallerSizeIsBetter) {
  // At 4 samples A took 10 ms, B 4 ms in 100 bytes.
  const Measurements sizes = {{4, size({measured(kA, 10, 0), measured(kB, 4, 100)})}};
  const struct {
    const char* why;
    KernelOffer offer;
    int batch;
    bool worth;
  } kCases[] = {
      {"never measured", offered(kC, 1 << 20, true), 8, true},
      {"two of B take 8 ms in 100 bytes", offered(kA, 100, true), 8, false},
      {"three of B take 12 ms", offered(kA, 100, true), 12, true},
      {"B does not fit into 99 bytes", offered(kA, 99, true), 8, true},
      {"A is slower than B itself", offered(kB, 1 << 20, true), 8, true},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isWorthTrying(sizes, expected.offer, expected.batch), expected.worth) << expected.why;
}

TEST(IsWorthTryingTest, ADeterministicKernelIsNotReplacedByAnother) {
  const Measurements sizes = {{4, size({measured(kA, 10, 0), measured(kB, 1, 0, false)})}};
  EXPECT_TRUE(isWorthTrying(sizes, offered(kA, 0, true), 8));
  EXPECT_FALSE(isWorthTrying({{4, size({measured(kA, 10, 0, false), measured(kB, 1, 0, false)})}},
                             offered(kA, 0, false),
                             8));
}

TEST(IsWorthTryingTest, AnAccurateKernelIsNotReplacedByAnother) {
  EXPECT_TRUE(isWorthTrying(
      {{4, size({measured(kA, 10, 0), inaccurate(kB, 1, 0)})}}, offered(kA, 0, true, true), 8));
  EXPECT_FALSE(isWorthTrying(
      {{4, size({inaccurate(kA, 10, 0), inaccurate(kB, 1, 0)})}}, offered(kA, 0, true, false), 8));
}

TEST(IsOffFrontTest, WhenAKernelAtAnySizeIsFasterForEachSampleInNoMoreWorkspace) {
  // At 8 samples A takes 8 ms in 100 bytes: 1 ms for each.
  const Measurements sizes = {{8, size({measured(kA, 8, 100)})}};
  const struct {
    const char* why;
    KernelOffer offer;
    int batch;
    double timeMs;
    bool off;
  } kCases[] = {
      {"1.5 ms for each", offered(kB, 100, true), 4, 6, true},
      {"1.25 ms for each", offered(kB, 100, true), 4, 5, false},
      {"in less workspace", offered(kB, 99, true), 4, 60, false},
      {"at a larger size", offered(kB, 200, true), 16, 24, true},
      {"not deterministic itself", offered(kB, 100, false), 4, 6, true},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isOffFront(sizes, expected.batch, both(expected.timeMs), expected.offer, 1.5),
              expected.off)
        << expected.why;
  const Measurements nondeterministic = {{8, size({measured(kA, 8, 100, false)})}};
  EXPECT_FALSE(isOffFront(nondeterministic, 4, both(60), offered(kB, 100, true), 1.5));
  const Measurements rough = {{8, size({inaccurate(kA, 8, 100)})}};
  EXPECT_FALSE(isOffFront(rough, 4, both(60), offered(kB, 100, true, true), 1.5));
  EXPECT_TRUE(isOffFront(rough, 4, both(60), offered(kB, 100, true, false), 1.5));
}

TEST(IsOffFrontTest, WhenAKernelAtAnySizeIsFasterForEachSample) {
  // A takes 1 ms for each sample without workspace, B 0.5 ms in 100 bytes.
  const Measurements sizes = {{2, size({measured(kA, 2, 0)})},
                              {8, size({measured(kB, 4, 100, false)})}};
  const struct {
    const char* why;
    KernelOffer offer;
    double timeMs;  // of 4 samples
    double factor;
    bool off;
  } kCases[] = {
      {"slower than A", offered(kC, 0, true), 4.4, 1.05, true},
      {"slower than A, not by the factor", offered(kC, 0, true), 4.4, 1.2, false},
      {"faster than A, B does not fit", offered(kC, 99, false), 3, 1, false},
      {"faster than A, slower than B", offered(kC, 100, false), 3, 1, true},
      {"faster than A, B is not deterministic", offered(kC, 100, true), 3, 1, false},
      {"faster than either", offered(kC, 100, false), 1.9, 1, false},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isOffFront(sizes, 4, both(expected.timeMs), expected.offer, expected.factor),
              expected.off)
        << expected.why;
  EXPECT_FALSE(isOffFront({}, 4, both(1e9), offered(kC, 0, true), 1)) << "nothing is known";
}

TEST(HopedForTest, TheBetterTimePerSampleOfTheNeighbours) {
  const Measurements sizes = {{1, size({measured(kC, 1, 0)})},
                              {4, size({measured(kA, 8, 0), measured(kB, 4, 0)})},
                              {8, size({measured(kA, 8, 0)})}};
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kA, 6), 6) << "1 ms for each above, 2 ms below";
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kB, 6), 6) << "below only";
  EXPECT_TRUE(std::isinf(hopedMs(sizes, kC, 6))) << "not at a neighbour";
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kA, 10), 8) << "nothing above: the line of 8 ms at 4 and 8";
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kB, 7), 7) << "no line through 1, where it was not measured";
}

TEST(HopedForTest, AFixedCostIsSharedByMoreSamples) {
  // 6 ms and 1 ms for each sample.
  const Measurements sizes = {{4, size({measured(kA, 10, 0)})}, {8, size({measured(kA, 14, 0)})}};
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kA, 12), 18);
  EXPECT_DOUBLE_EQ(hopedMs(sizes, kA, 6), 10.5) << "only one size below: as at 8";
}

TEST(HopedForTest, EachTimeIsJudgedByItself) {
  // The host needs 8 ms for a call of any size, the device 1 ms for each sample.
  const Measurements sizes = {{4, size({measured(kA, 8, 0, true, true, 4)})},
                              {8, size({measured(kA, 8, 0, true, true, 8)})}};
  const KernelTiming hoped = hopedFor(sizes, kA, 16);
  EXPECT_DOUBLE_EQ(hoped.timeMs, 8);
  EXPECT_DOUBLE_EQ(hoped.deviceMs, 16);
}

TEST(SelectionTest, AKernelIsLeftOutOnlyWhereItLosesAtBothPaces) {
  // A is slow to enqueue and quick to run, B the other way round.
  const Measurement slowToEnqueue = measured(kA, 4, 0, true, true, 1);
  const Measurement slowToRun = measured(kB, 2, 0, true, true, 2);
  EXPECT_FALSE(isDominated(slowToEnqueue, {slowToRun}, 1));
  EXPECT_FALSE(isDominated(slowToRun, {slowToEnqueue}, 1));
  EXPECT_TRUE(isDominated(measured(kC, 4, 0, true, true, 2), {slowToRun}, 1));
  const Measurements sizes = {{4, size({slowToEnqueue})}};
  EXPECT_FALSE(isOffFront(sizes, 4, {2, 2}, offered(kB, 0, true), 1));
  EXPECT_TRUE(isOffFront(sizes, 4, {4, 2}, offered(kB, 0, true), 1));
}

TEST(NeighbouringKernelsTest, OfTheNextSizesBelowAndAbove) {
  const Measurements sizes = {{2, size({measured(kC, 1, 0)})},
                              {4, size({measured(kA, 1, 0)})},
                              {8, size({measured(kB, 1, 0), measured(kA, 1, 0)})}};
  EXPECT_EQ(neighbouringKernels(sizes, 6), (std::vector<Kernel>{kB, kA}));
  EXPECT_EQ(neighbouringKernels(sizes, 3), (std::vector<Kernel>{kA, kC}));
  EXPECT_EQ(neighbouringKernels(sizes, 1), (std::vector<Kernel>{kC})) << "nothing below";
  EXPECT_EQ(neighbouringKernels(sizes, 9), (std::vector<Kernel>{kB, kA})) << "nothing above";
  EXPECT_TRUE(neighbouringKernels({}, 4).empty());
}

TEST(NeedsNoSplitTest, WhenTheWholeBatchNeedsNoMoreWorkspaceThanAPart) {
  const Measurements sizes = {{8, size({measured(kA, 1, 100)})}};
  EXPECT_TRUE(needsNoSplit(sizes, offered(kA, 100, true), 8));
  EXPECT_FALSE(needsNoSplit(sizes, offered(kA, 99, true), 8)) << "a part needs less";
  EXPECT_FALSE(needsNoSplit(sizes, offered(kB, 100, true), 8))
      << "it did not fit the limit as a whole";
  EXPECT_FALSE(needsNoSplit(sizes, offered(kA, 100, true), 16)) << "nothing is known of the whole";
}

}  // namespace
}  // namespace ucudnn
