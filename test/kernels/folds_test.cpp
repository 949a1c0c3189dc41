// Filter gradients whose engines read several columns as one, against the same engines without and
// against sums in double: on the simulator, and on a GPU.
#include "kernels/folds.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "device_kernels.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

using namespace test;

/// A step of x along a row, and the filter there.
struct Step {
  int width, taps, pad, step;
};

void setStep(Problem& p, Step s) {
  p.xSizes[3] = s.width;
  p.wSizes[3] = s.taps;
  p.pads[1] = s.pad;
  p.strides[1] = s.step;
  p.ySizes[3] = (s.width + 2 * s.pad - s.taps) / s.step + 1;
}

Problem gradient(Step step, int channels = 3, cudnnDataType_t type = CUDNN_DATA_BFLOAT16) {
  Problem p = sampleProblem(Operation::kBackwardFilter, 3, 8, type);
  p.mathType = CUDNN_TENSOR_OP_MATH;
  setStep(p, step);
  setSizes(p, channels, 8, true);
  return p;
}

constexpr Step kStem{24, 7, 3, 2};  // ResNet's

struct FoldCase {
  std::string name;
  Problem problem;
};

std::ostream& operator<<(std::ostream& stream, const FoldCase& tested) {
  return stream << tested.name;
}

std::vector<FoldCase> foldCases() {
  std::vector<FoldCase> cases;
  const auto add = [&](const char* name, const Problem& problem) {
    cases.push_back({name, problem});
  };
  add("ResNet", gradient(kStem));
  add("ResNetHalf", gradient(kStem, 3, CUDNN_DATA_HALF));
  add("AlexNet", gradient({24, 11, 2, 4}));
  add("StepOfThree", gradient({24, 5, 2, 3}, 2));
  add("ThreeTaps", gradient({8, 3, 1, 2}, 4));
  add("WithoutPadding", gradient({10, 4, 0, 2}));
  add("OneTap", gradient({8, 1, 0, 2}, 1));
  add("PaddedBeyondTheFilter", gradient({8, 3, 4, 2}));
  add("TwelveChannels", gradient({8, 3, 1, 2}, 12));
  Problem gaps = gradient(kStem);
  setSizes(gaps, 3, 8, true, 24);
  add("GapsBetweenSamples", gaps);
  Problem rows = gradient(kStem);
  rows.strides[0] = 2;
  rows.wSizes[2] = 5;
  rows.pads[0] = 2;
  rows.ySizes[2] = 5;
  setSizes(rows, 3, 8, true);
  add("OtherRows", rows);
  Problem volume = gradient(kStem);
  volume.dimensions = 5;
  volume.xSizes = {3, 0, 4, 5, 8};
  volume.ySizes = {3, 0, 4, 5, 4};
  volume.wSizes = {0, 0, 3, 3, 3};
  volume.pads = volume.dilations = {1, 1, 1};
  volume.strides = {1, 1, 2};
  setSizes(volume, 3, 8, true);
  add("Volume", volume);
  return cases;
}

class FoldsTest : public DeviceKernelsTest {
 protected:
  std::optional<KernelOffer> offer(const Problem& problem, EngineConfiguration value, int folds) {
    value.folds = folds;
    return offerOf(problem, value);
  }
};

class FoldNumericsTest : public FoldsTest, public ::testing::WithParamInterface<FoldCase> {};

TEST_P(FoldNumericsTest, TheyAreTheUndividedResult) {
  const Problem problem = GetParam().problem;
  ASSERT_TRUE(Folding::exists(problem, Folding::columnsOf(problem)));
  int compared = 0;
  for (const EngineConfiguration& value : engines(problem)) {
    const auto plain = offer(problem, value, 1);
    const auto folded = offer(problem, value, Folding::columnsOf(problem));
    ASSERT_TRUE(plain);
    if (!folded) continue;
    SCOPED_TRACE(toText(problem.operation, folded->kernel));
    ++compared;
    EXPECT_FALSE(folded->anyCall);
    EXPECT_EQ(folded->deterministic, plain->deterministic);
    for (const bool adds : {false, true})
      // The sums are exact, and rounded once; a GPU's engine may round parts of them.
      EXPECT_LE(distance(run(problem, *folded, adds), run(problem, *plain, adds), problem.wType),
                onSimulator() ? 0 : 4e-3)
          << (adds ? "adds" : "overwrites");
    if (problem.dimensions != 4) continue;
    const auto result = run(problem, *folded, false);
    const auto expected = gradientOf(problem, Values(problem));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(numberAt(result, i, problem.wType), expected[i], std::abs(expected[i]) / 256)
          << i;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         FoldNumericsTest,
                         ::testing::ValuesIn(foldCases()),
                         [](const auto& test) { return test.param.name; });

TEST_F(FoldsTest, WhatCannotBeFoldedIsRefused) {
  const auto changed = [](auto change) {
    Problem problem = gradient(kStem, 4);
    change(problem);
    return problem;
  };
  using P = Problem&;
  ASSERT_TRUE(Folding::exists(changed([](P) {}), 2));
  const std::vector<Problem> others{
      changed([](P p) { p.operation = Operation::kForward; }),
      changed([](P p) { p.operation = Operation::kBackwardData; }),
      changed([](P p) { p.xType = p.wType = p.yType = CUDNN_DATA_FLOAT; }),
      changed([](P p) { setSizes(p, 4, 8, false); }),
      changed([](P p) { p.wFormat = CUDNN_TENSOR_NCHW; }),
      changed([](P p) { p.groups = 2, setSizes(p, 4, 8, true); }),
      changed([](P p) { p.mode = CUDNN_CONVOLUTION; }),
      changed([](P p) { p.dilations[1] = 2, p.pads[1] = 6; }),
      changed([](P p) {
        setStep(p, {25, 7, 3, 2}), setSizes(p, 4, 8, true);
      }),
      changed([](P p) { p.xStrides[2] += 4, p.xStrides[0] *= 2; }),
      changed([](P p) {
        setStep(p, {24, 7, 3, 1}), setSizes(p, 4, 8, true);
      }),
      changed([](P p) { p.ySizes[3] -= 1; })};
  for (const Problem& problem : others)
    for (const int columns : {1, 2, 3, 4}) EXPECT_FALSE(Folding::exists(problem, columns));
  for (const int columns : {-2, 0, 1, 3, 4})
    EXPECT_FALSE(Folding::exists(changed([](P) {}), columns)) << columns;
  const Problem wider = changed([](P p) { setStep(p, {24, 11, 2, 4}), setSizes(p, 4, 8, true); });
  EngineConfiguration value = engines(wider).front();
  EXPECT_FALSE(offer(wider, value, 2));
  value.folds = 2;
  EXPECT_THROW(build(wider, {idOf(value), wider.mathType, kEngines}), Error);
}

/// The last column of padding, and what the engine reads before the first.
TEST_F(FoldsTest, WhatBelongsToNoTapIsNotWritten) {
  const Problem problem = gradient(kStem);
  const Folding folding(problem);
  // Taps begin 4 columns before, and end 6 after: 10 columns for 7, in five.
  EXPECT_EQ(folding.folded.wSizes[3], 5);
  EXPECT_EQ(folding.folded.wSizes[1], 6);
  EXPECT_EQ(folding.folded.pads[1], 2);
  EXPECT_EQ(folding.bytes, 8U * 3 * 10 * 3 * 2);
  EXPECT_EQ(folding.folded.xBytes(), problem.xBytes());
}

TEST_F(FoldsTest, CopiesAreSavedBelowEightChannels) {
  const auto saves = [](int channels, Step step = kStem) {
    return Folding::savesCopies(gradient(step, channels));
  };
  for (const int channels : {1, 2, 3, 4, 12}) EXPECT_TRUE(saves(channels)) << channels;
  for (const int channels : {5, 6, 7, 8, 16, 64}) EXPECT_FALSE(saves(channels)) << channels;
  EXPECT_TRUE(saves(3, {24, 11, 2, 4}));
}

TEST_F(FoldsTest, OtherFactorsAreRefusedAndChangeNothing) {
  const Problem problem = gradient(kStem);
  const auto folded = offer(problem, engines(problem).front(), 2);
  ASSERT_TRUE(folded);
  const auto kernel = build(problem, folded->kernel);
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
  const DeviceBuffer workspace(folded->workspaceBytes);
  UCUDNN_CHECK_CUDA(cudaMemset(w.get(), 0xFF, w.bytes()));
  const float one = 1, half = 0.5F;
  for (const bool isBeta : {false, true})
    EXPECT_EQ(kernel->enqueue(handle_.get(),
                              {isBeta ? &one : &half,
                               isBeta ? &half : &one,
                               x.get(),
                               w.get(),
                               y.get(),
                               workspace.get(),
                               workspace.bytes()},
                              nullptr),
              CUDNN_STATUS_NOT_SUPPORTED);
  std::vector<unsigned char> bytes(w.bytes());
  UCUDNN_CHECK_CUDA(cudaMemcpy(bytes.data(), w.get(), w.bytes(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(bytes, std::vector<unsigned char>(w.bytes(), 0xFF));
}

/// A failed call may be computed another way, and the client sees no error then.
TEST_F(FoldsTest, FailuresLeaveNoErrorInTheRuntime) {
  if (!onSimulator()) GTEST_SKIP() << "only the simulator makes calls fail";
  const Problem problem = gradient(kStem);
  const auto folded = offer(problem, engines(problem).front(), 2);
  ASSERT_TRUE(folded);
  const auto kernel = build(problem, folded->kernel);
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
  const DeviceBuffer workspace(folded->workspaceBytes);
  const float one = 1;
  int failures = 0;
  for (std::int64_t n = 0, calls = 0; n <= calls; ++n) {
    const std::int64_t before = callCount();
    failCall(n);
    const cudnnStatus_t status =
        kernel->enqueue(handle_.get(),
                        {&one, &one, x.get(), w.get(), y.get(), workspace.get(), workspace.bytes()},
                        nullptr);
    calls = std::max(calls, callCount() - before);
    failCall(0);
    failures += status != CUDNN_STATUS_SUCCESS ? 1 : 0;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << n;
  }
  EXPECT_GT(failures, 2);
}

}  // namespace
}  // namespace ucudnn
