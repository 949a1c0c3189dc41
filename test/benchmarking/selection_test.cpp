// Which kernels are timed: plain rules over numbers.
#include "benchmark/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace ucudnn {
namespace {

constexpr Kernel kA{0, 0}, kB{1, 0}, kC{2, 0};

Measurement measured(Kernel kernel, double timeMs, std::size_t bytes, bool deterministic = true) {
  return {kernel, timeMs, bytes, deterministic};
}

SizeMeasurements size(std::vector<Measurement> kernels) {
  return {0, std::move(kernels)};
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
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isDominated(expected.kernel, {expected.kernel, expected.other}, expected.factor),
              expected.dominated)
        << expected.why;
}

TEST(IsDominatedTest, MathTypesAreDifferentKernels) {
  const Kernel sameAlgorithm{kA.algorithm, 1};
  EXPECT_TRUE(isDominated(measured(kA, 2, 0), {measured(sameAlgorithm, 1, 0)}, 1));
}

TEST(ExpectedMsTest, ScalesFromTheLargestSmallerSize) {
  const Measurements sizes = {{1, size({measured(kA, 5, 0), measured(kB, 3, 0)})},
                              {4, size({measured(kA, 8, 0)})},
                              {16, size({measured(kA, 20, 0), measured(kB, 30, 0)})}};
  const struct {
    Kernel kernel;
    int batch;
    double expectedMs;
  } kCases[] = {
      {kA, 8, 16},   // from 4
      {kA, 16, 32},  // the size itself is not below it
      {kA, 32, 40},  // from 16
      {kB, 8, 24},   // from 1: 4 has none
      {kA, 1, 0},    // nothing below
      {kC, 32, 0},   // never measured
  };
  for (const auto& expected : kCases)
    EXPECT_DOUBLE_EQ(expectedMs(sizes, expected.kernel, expected.batch), expected.expectedMs)
        << expected.kernel.algorithm << " at " << expected.batch;
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
      {"never measured", {kC, 1 << 20, true}, 8, true},
      {"two of B take 8 ms in 100 bytes", {kA, 100, true}, 8, false},
      {"three of B take 12 ms", {kA, 100, true}, 12, true},
      {"B does not fit into 99 bytes", {kA, 99, true}, 8, true},
      {"A is slower than B itself", {kB, 1 << 20, true}, 8, true},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(isWorthTrying(sizes, expected.offer, expected.batch), expected.worth) << expected.why;
}

TEST(IsWorthTryingTest, ADeterministicKernelIsNotReplacedByAnother) {
  const Measurements sizes = {{4, size({measured(kA, 10, 0), measured(kB, 1, 0, false)})}};
  EXPECT_TRUE(isWorthTrying(sizes, {kA, 0, true}, 8));
  EXPECT_FALSE(isWorthTrying(
      {{4, size({measured(kA, 10, 0, false), measured(kB, 1, 0, false)})}}, {kA, 0, false}, 8));
}

TEST(PromisingKernelsTest, ThoseNearTheFastestAtEitherNeighbour) {
  const Measurements sizes = {{4, size({measured(kA, 1, 0), measured(kB, 1.2, 1 << 20)})},
                              {8, size({measured(kB, 3, 0), measured(kC, 2, 0)})},
                              {16, size({measured(kA, 1, 0)})}};
  const auto promising = [&](int batch) {
    std::vector<int> algorithms;
    for (const Kernel kernel : promisingKernels(sizes, batch))
      algorithms.push_back(kernel.algorithm);
    std::sort(algorithms.begin(), algorithms.end());
    return algorithms;
  };
  EXPECT_EQ(promising(6), (std::vector<int>{0, 1, 2})) << "A and B below, C above";
  EXPECT_EQ(promising(12), (std::vector<int>{0, 2})) << "B took half as long again as C";
  EXPECT_EQ(promising(2), (std::vector<int>{0, 1})) << "nothing below";
  EXPECT_EQ(promising(20), (std::vector<int>{0})) << "nothing above";
  EXPECT_TRUE(promisingKernels({}, 4).empty());
}

TEST(PromisingKernelsTest, TheFastestDeterministicOneIsAmongThem) {
  const Measurements sizes = {
      {4, size({measured(kA, 1, 0, false), measured(kB, 5, 0), measured(kC, 9, 0)})}};
  EXPECT_EQ(promisingKernels(sizes, 6), (std::vector<Kernel>{kA, kB}));
}

}  // namespace
}  // namespace ucudnn
