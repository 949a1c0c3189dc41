// Filter gradients whose engines compute parts of the batch, in float or in the caller's type,
// against the undivided ones and against sums in double: on the simulator, and on a GPU.
#include "kernels/sums.hpp"

#include <string>
#include <vector>

#include "device_kernels.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

Problem gradient(cudnnDataType_t type, bool isNhwc, int batch = 8) {
  Problem p = sampleProblem(Operation::kBackwardFilter, batch, 8, type);
  p.mathType = CUDNN_TENSOR_OP_MATH;
  setSizes(p, 8, 16, isNhwc);
  return p;
}

struct SumCase {
  std::string name;
  Problem problem;
};

std::ostream& operator<<(std::ostream& stream, const SumCase& tested) {
  return stream << tested.name;
}

std::vector<SumCase> sumCases() {
  std::vector<SumCase> cases;
  const auto add = [&](const char* name, const Problem& problem) {
    cases.push_back({name, problem});
  };
  add("Half", gradient(CUDNN_DATA_HALF, false));
  add("Bfloat16", gradient(CUDNN_DATA_BFLOAT16, false));
  add("HalfNhwc", gradient(CUDNN_DATA_HALF, true));
  add("Bfloat16Nhwc", gradient(CUDNN_DATA_BFLOAT16, true));
  Problem odd = gradient(CUDNN_DATA_BFLOAT16, true);
  setSizes(odd, 3, 5, true);
  add("OddChannels", odd);
  Problem fma = gradient(CUDNN_DATA_HALF, false);
  fma.mathType = CUDNN_FMA_MATH;
  add("Fma", fma);
  Problem stepped = gradient(CUDNN_DATA_HALF, false);
  stepped.strides = {2, 2};
  stepped.ySizes = {8, 0, 5, 4};
  setSizes(stepped, 8, 16, false);
  add("StrideTwo", stepped);
  Problem grouped = gradient(CUDNN_DATA_HALF, false);
  grouped.groups = 4;
  setSizes(grouped, 16, 16, false);
  add("Groups", grouped);
  Problem volume = gradient(CUDNN_DATA_BFLOAT16, false);
  volume.dimensions = 5;
  volume.xSizes = volume.ySizes = {8, 0, 4, 5, 4};
  volume.wSizes = {0, 0, 3, 3, 3};
  volume.pads = volume.strides = volume.dilations = {1, 1, 1};
  setSizes(volume, 4, 8, false);
  add("Volume", volume);
  return cases;
}

class SumsTest : public DeviceKernelsTest {
 protected:
  /// Those that the problem's parts have.
  std::vector<KernelOffer> offers(const Problem& problem, int parts) {
    std::vector<KernelOffer> found;
    for (EngineConfiguration value : engines(inFloat(problem.withBatch(problem.batch() / parts)))) {
      value.sums = parts;
      if (const auto offer = offerOf(problem, value)) found.push_back(*offer);
    }
    return found;
  }
  std::vector<KernelOffer> splitOffers(const Problem& problem, int parts) {
    std::vector<KernelOffer> found;
    for (EngineConfiguration value : engines(problem.withBatch(problem.batch() / parts))) {
      value.splits = parts;
      if (const auto offer = offerOf(problem, value)) found.push_back(*offer);
    }
    return found;
  }

  /// All of one number.
  static std::vector<char> filled(std::size_t bytes, std::int32_t type, float number) {
    std::vector<char> values(bytes);
    for (std::size_t i = 0; i < bytes / 2; ++i) setNumber(values, i, type, number);
    return values;
  }
};

class SumNumericsTest : public SumsTest, public ::testing::WithParamInterface<SumCase> {};

TEST_P(SumNumericsTest, TheyAreTheUndividedResult) {
  const Problem problem = GetParam().problem;
  const auto plain = offerOf(problem, engines(problem).front());
  ASSERT_TRUE(plain);
  for (const int parts : {2, 4, 8}) {
    const auto summed = offers(problem, parts);
    EXPECT_FALSE(summed.empty());
    for (const KernelOffer& offer : summed) {
      SCOPED_TRACE(toText(problem.operation, offer.kernel));
      EXPECT_FALSE(offer.anyCall);
      EXPECT_GE(offer.workspaceBytes, 2 * (problem.xBytes() + problem.yBytes()) / 8);
      for (const bool adds : {false, true})
        // The sums are exact, but for transforms; each is rounded once.
        EXPECT_LE(distance(run(problem, offer, adds), run(problem, *plain, adds), problem.wType),
                  1e-3)
            << (adds ? "adds" : "overwrites");
      if (problem.dimensions != 4 || problem.groups != 1) continue;
      const auto result = run(problem, offer, false);
      const auto expected = gradientOf(problem, Values(problem));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(
            numberAt(result, i, problem.wType), expected[i], std::abs(expected[i]) / 256 + 1e-3)
            << i;
    }
  }
}

/// Each part is rounded once: by 2^-9 of itself in bfloat16. Parts may be larger than their sum.
TEST_P(SumNumericsTest, SplitsAreTheUndividedResultButForOneRounding) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = GetParam().problem;
  const auto plain = offerOf(problem, engines(problem).front());
  ASSERT_TRUE(plain);
  for (const int parts : {2, 4, 8}) {
    const auto split = splitOffers(problem, parts);
    EXPECT_FALSE(split.empty());
    for (const KernelOffer& offer : split) {
      SCOPED_TRACE(toText(problem.operation, offer.kernel));
      EXPECT_FALSE(offer.anyCall);
      EXPECT_GE(offer.workspaceBytes, 3 * problem.wBytes());
      EXPECT_EQ(offer.workspaceBytes % 32, 0U) << "sums are written by eights";
      for (const bool adds : {false, true})
        EXPECT_LE(distance(run(problem, offer, adds), run(problem, *plain, adds), problem.wType),
                  problem.wType == CUDNN_DATA_BFLOAT16 ? 8e-3 : 1e-3)
            << (adds ? "adds" : "overwrites");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         SumNumericsTest,
                         ::testing::ValuesIn(sumCases()),
                         [](const auto& test) { return test.param.name; });

/// Ones in bfloat16: beyond 256 a sum that is rounded after each part loses what is added.
TEST_F(SumsTest, ManySamplesAreRoundedOnce) {
  const Problem problem = gradient(CUDNN_DATA_BFLOAT16, false, 64);
  Values ones(problem);
  ones.x = filled(problem.xBytes(), problem.xType, 1);
  ones.y = filled(problem.yBytes(), problem.yType, 1);
  const auto exact = gradientOf(problem, ones);
  std::vector<char> expected(problem.wBytes());
  for (std::size_t i = 0; i < exact.size(); ++i)
    setNumber(expected, i, problem.wType, static_cast<float>(exact[i]));
  for (const int parts : {4, 32})
    EXPECT_EQ(
        distance(
            run(problem, offers(problem, parts).front(), false, ones), expected, problem.wType),
        0)
        << parts;
}

/// A part of ones is exact, and so is their sum in float.
TEST_F(SumsTest, SplitsAreAddedUpInFloat) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = gradient(CUDNN_DATA_BFLOAT16, false, 64);
  Values ones(problem);
  ones.x = filled(problem.xBytes(), problem.xType, 1);
  ones.y = filled(problem.yBytes(), problem.yType, 0);
  // The pixel in the middle of each sample meets all taps. Two samples are 9, and bfloat16 holds no
  // odd numbers beyond 256.
  const std::size_t pixels = problem.yBytes() / 2 / 64 / 16, middle = pixels / 2 + 4;
  for (std::size_t plane = 0; plane < 64 * 16; ++plane)
    setNumber(ones.y, plane * pixels + middle, problem.yType, 4.5F);
  const auto exact = gradientOf(problem, ones);
  std::vector<char> expected(problem.wBytes());
  for (std::size_t i = 0; i < exact.size(); ++i)
    setNumber(expected, i, problem.wType, static_cast<float>(exact[i]));
  for (const int parts : {4, 32})
    EXPECT_EQ(distance(run(problem, splitOffers(problem, parts).front(), false, ones),
                       expected,
                       problem.wType),
              0)
        << parts;
}

/// The first half of the samples sums to more than half holds, the second takes it away.
TEST_F(SumsTest, PartsMayBeLargerThanTheTypeHolds) {
  const Problem problem = gradient(CUDNN_DATA_HALF, true, 16);
  Values values(problem);
  values.x = filled(problem.xBytes(), problem.xType, 16);
  values.y = filled(problem.yBytes(), problem.yType, 16);
  const std::size_t elements = problem.yBytes() / 2;
  for (std::size_t i = elements / 2; i < elements; ++i) setNumber(values.y, i, problem.yType, -16);
  EXPECT_EQ(distance(run(problem, offers(problem, 4).front(), false, values),
                     std::vector<char>(problem.wBytes()),
                     problem.wType),
            0);
}

TEST_F(SumsTest, InfinitiesAndNansStay) {
  const Problem problem = gradient(CUDNN_DATA_BFLOAT16, true);
  Values values(problem);
  values.x = filled(problem.xBytes(), problem.xType, 1);
  values.y = filled(problem.yBytes(), problem.yType, 1);
  setNumber(values.y, 0, problem.yType, HUGE_VALF);  // filter 0
  setNumber(values.y, 1, problem.yType, std::nanf(""));
  const auto result = run(problem, offers(problem, 4).front(), false, values);
  const std::size_t filter = problem.wBytes() / 2 / 16;
  // The tap in the middle meets all of y.
  const std::size_t middle = filter / 2;
  EXPECT_EQ(numberAt(result, middle, problem.wType), HUGE_VAL);
  EXPECT_TRUE(std::isnan(numberAt(result, filter + middle, problem.wType)));
  EXPECT_TRUE(std::isfinite(numberAt(result, 2 * filter + middle, problem.wType)));
}

TEST_F(SumsTest, WhatCannotBeSummedIsRefused) {
  const auto changed = [](auto change) {
    Problem problem = gradient(CUDNN_DATA_HALF, false);
    change(problem);
    return problem;
  };
  using P = Problem&;
  const Problem own = changed([](P) {});
  for (const int parts : {2, 4, 8})
    EXPECT_EQ(cutToSum(own, parts).size(), static_cast<std::size_t>(parts));
  EXPECT_EQ(cutToSplit(own, 4).size(), kHasBlockCopies ? 4U : 0U);
  for (const int parts : {-2, 0, 1, 3, 16, 64}) EXPECT_TRUE(cutToSum(own, parts).empty());
  const std::vector<Problem> others{
      changed([](P p) { p.operation = Operation::kForward; }),
      changed([](P p) { p.operation = Operation::kBackwardData; }),
      changed([](P p) { p.xType = p.wType = p.yType = CUDNN_DATA_FLOAT; }),
      changed([](P p) { p.computeType = CUDNN_DATA_HALF; }),
      changed([](P p) { setSizes(p, 8, 16, false, 8); }),
      // Samples side by side: no part is a piece of memory.
      changed([](P p) {
        p.xSizes[0] = p.ySizes[0] = 32;
        p.xStrides = {1, 9 * 8 * 32, 8 * 32, 32};
      }),
      changed([](P p) {
        p.xSizes[0] = p.ySizes[0] = 32;
        p.yStrides = {1, 9 * 8 * 32, 8 * 32, 32};
      }),
      // A sample of 63 elements, 126 bytes: four of them are no multiple of 16.
      changed([](P p) {
        p.xSizes[3] = p.ySizes[3] = 7;
        setSizes(p, 1, 16, false);
      })};
  for (const Problem& problem : others)
    for (const int parts : {2, 4}) {
      EXPECT_TRUE(cutToSum(problem, parts).empty());
      EXPECT_TRUE(cutToSplit(problem, parts).empty());
    }
  EngineConfiguration value = engines(own).front();
  value.sums = 16;
  EXPECT_FALSE(offerOf(own, value));
  EXPECT_THROW(build(own, {idOf(value), own.mathType, kEngines}), Error);
}

}  // namespace
}  // namespace ucudnn
