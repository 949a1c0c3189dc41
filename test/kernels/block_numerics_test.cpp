// Engines that read blocks of pixels as one compute the same as engines that read pixels: on the
// simulator, and on a GPU.
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "blocks_fixture.hpp"
#include "kernels/channels_last.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr Operation kFusedToo[] = {Operation::kForward,
                                   Operation::kBackwardData,
                                   Operation::kBackwardFilter,
                                   Operation::kBiasActivationForward};

struct BlockCase {
  std::string name;
  Problem problem;  ///< of the forward operation
  int pixels;
  bool copiesY = false;

  /// Larger blocks have no bias, z and activation, which are of y, nor sums of rounded numbers;
  /// blocks of a pixel have no z.
  bool exists(const Problem& of) const {
    if (copiesY) return of.addsZ == 0;
    if (pixels == 1) return of.operation != Operation::kBiasActivationForward;
    return pixels == Blocking::pixelsOf(of) || of.operation == Operation::kForward ||
           of.operation == Operation::kBackwardData ||
           (of.operation == Operation::kBackwardFilter && of.wType == CUDNN_DATA_FLOAT);
  }
};

std::ostream& operator<<(std::ostream& stream, const BlockCase& tested) {
  return stream << tested.name;
}

/// Blocks of one pixel.
void addPixelCases(std::vector<BlockCase>& cases) {
  const auto add = [&](const char* name, const Problem& problem) {
    cases.push_back({name, problem, 1});
  };
  constexpr Line kOneTap{13, 1, 0, 2};
  add("Pixels", stem({14, 3, 1, 1}, 8, 12));
  add("PixelsOfLongLines", stem({1, 1, 0, 1}, {700, 3, 1, 1}, 4, 4));
  add("PixelsOfManyChannels", stem({5, 3, 1, 1}, 132, 68));
  add("PixelsWithSteps", stem({23, 5, 2, 3}, {17, 3, 1, 2}, 8, 12));
  add("PixelsOfOneTap", stem({9, 1, 0, 1}, 8, 12));
  add("PixelsThatTheStepReads", stem(kOneTap, {10, 1, 0, 3}, 8, 12));
  add("PixelsThatTheStepReadsInPads", stem({9, 1, 1, 2}, 8, 12));
  add("PixelsOfOnePixel", stem({1, 1, 0, 1}, 8, 12));
  Problem dilated = stem({14, 5, 2, 1}, 8, 12);
  dilated.wSizes[2] = dilated.wSizes[3] = 3;
  dilated.dilations = {2, 2, 1};
  add("PixelsBetweenTaps", dilated);
  Problem gaps = stem({14, 3, 1, 1}, 8, 12);
  setSizes(gaps, 8, 12, false, 20);
  add("PixelsWithGapsBetweenSamples", gaps);
  Problem read = stem(kOneTap, 8, 12);
  setSizes(read, 8, 12, false, 20);
  add("PixelsThatTheStepReadsWithGaps", read);
  Problem filters = stem({14, 3, 1, 1}, 8, 12);
  filters.wFormat = CUDNN_TENSOR_NHWC;
  add("PixelsOfFiltersThatAreLast", filters);
  add("PixelsInHalf", inHalf(stem({14, 3, 1, 1}, 8, 16)));
  add("PixelsInHalfThatTheStepReads", inHalf(stem(kOneTap, 8, 16)));
}

std::vector<BlockCase> blockCases() {
  std::vector<BlockCase> cases;
  addPixelCases(cases);
  const auto add = [&](const char* name, const Problem& problem, int pixels) {
    cases.push_back({name, problem, pixels});
  };
  add("AlexNet", stem(kAlexNet), 16);
  add("AlexNetTwice", stem(kAlexNet), 64);
  add("ResNet", stem(kResNet), 4);
  add("ResNetTwice", stem(kResNet), 16);
  add("Vgg", stem(kVgg), 4);
  add("VggThrice", stem(kVgg), 9);
  add("OddSizes", stem({23, 7, 3, 2}), 4);
  add("OddSizesTwice", stem({23, 7, 3, 2}, {25, 7, 3, 2}), 16);
  add("WhatNoTapReads", stem({25, 4, 0, 4}), 16);
  add("WhatNoTapReadsTwice", stem({31, 4, 0, 3}), 36);
  add("PaddedBeyondTheFilter", stem({9, 3, 5, 2}), 4);
  add("OtherStepsDownThanAcross", stem({24, 5, 2, 3}, {17, 8, 1, 2}), 6);
  add("OtherStepsTwice", stem({24, 5, 2, 3}, {17, 8, 1, 2}), 24);
  add("OneLine", stem({1, 1, 0, 1}, {64, 8, 3, 4}), 4);
  add("ARowOfBlocksBelowTheImage", stem({8, 2, 0, 1}, {8, 3, 0, 1}), 4);
  add("WideSteps", stem({4, 3, 1, 1}, {70, 32, 0, 32}), 32);
  add("OneTap", stem({2, 2, 0, 2}), 4);
  add("OneChannel", stem(kResNet, 1), 4);
  add("ManyChannels", stem(kResNet, 60), 4);
  // More blocks in a row than one thread block holds at a time.
  add("LongLines", stem({4, 3, 1, 2}, {1200, 7, 3, 2}), 4);
  // A signal in time is one row, which several thread blocks copy.
  const Problem signal = stem({1, 1, 0, 1}, {9000, 10, 0, 5}, 1);
  add("ASignal", signal, 5);
  add("ManyFilters", stem({16, 7, 3, 2}, {70, 7, 3, 2}, 3, 64), 16);
  Problem fma = stem(kResNet);
  fma.mathType = CUDNN_FMA_MATH;
  add("Fma", fma, 4);
  Problem last = stem(kResNet);
  setSizes(last, 3, 8, true);
  add("ChannelsLast", last, 4);
  add("ChannelsLastTwice", last, 16);
  Problem gaps = stem(kResNet);
  setSizes(gaps, 3, 8, false, 20);
  add("GapsBetweenSamples", gaps, 4);
  add("GapsBetweenSamplesTwice", gaps, 16);
  for (const auto& [type, name] :
       {std::pair(CUDNN_DATA_HALF, "Half"), std::pair(CUDNN_DATA_BFLOAT16, "Bfloat16")}) {
    const auto addOf = [&, type = type, name = name](const char* kind, Problem of, int pixels) {
      of.xType = of.wType = of.yType = type;
      add((std::string(name) + kind).c_str(), of, pixels);
    };
    addOf("AlexNet", stem(kAlexNet), 16);
    addOf("ResNetLast", last, 4);
    addOf("ResNetLastTwice", last, 16);
    addOf("Vgg", stem(kVgg), 4);
    addOf("WhatNoTapReads", stem({25, 4, 0, 4}), 16);
    addOf("Gaps", gaps, 4);
    // Bfloat16 does not hold the sums of its filter gradient exactly.
    if (type == CUDNN_DATA_HALF) addOf("ASignal", signal, 5);
    addOf("AlexNetCopiesY", stem(kAlexNet), 16);
    cases.back().copiesY = true;
    addOf("ResNetCopiesY", stem(kResNet, 3, 16), 4);
    cases.back().copiesY = true;
    addOf("GapsCopiesY", gaps, 4);
    cases.back().copiesY = true;
  }
  const auto addCopyingY = [&](const char* name, const Problem& problem, int pixels) {
    cases.push_back({name, problem, pixels, true});
  };
  addCopyingY("AlexNetCopiesY", stem(kAlexNet), 16);
  addCopyingY("ResNetCopiesY", stem(kResNet), 4);
  addCopyingY("GapsCopiesY", gaps, 4);
  addCopyingY("OddSizesCopiesY", stem({23, 7, 3, 2}, {25, 7, 3, 2}, 3, 12), 4);
  addCopyingY("OneLineCopiesY", stem({1, 1, 0, 1}, {64, 8, 3, 4}), 4);
  return cases;
}

class BlockNumericsTest : public BlocksTest, public ::testing::WithParamInterface<BlockCase> {};

TEST_P(BlockNumericsTest, TheyAreTheResultOfPixels) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const auto& [name, sample, pixels, copiesY] = GetParam();
  for (const Operation operation : kFusedToo) {
    Problem problem = sample;
    problem.operation = operation;
    const bool isFused = operation == Operation::kBiasActivationForward;
    problem.activation = isFused ? CUDNN_ACTIVATION_RELU : 0;
    problem.addsZ = isFused && !copiesY ? 1 : 0;
    ASSERT_EQ(
        pixels == 1 ? ChannelsLast::exists(problem, 1) : Blocking::exists(problem, pixels, copiesY),
        GetParam().exists(problem));
    if (!GetParam().exists(problem)) continue;
    const auto plain = offer(problem, engines(problem).front(), 0);
    ASSERT_TRUE(plain);
    int compared = 0;
    for (const EngineConfiguration& value :
         engines(pixels == 1 ? ChannelsLast(problem, 1).problem()
                             : Blocking(problem, pixels, copiesY).problem())) {
      const auto blocked = offer(problem, value, pixels, copiesY);
      if (!blocked) continue;
      SCOPED_TRACE(std::string(toText(operation)) + " " + toText(operation, blocked->kernel));
      ++compared;
      EXPECT_FALSE(blocked->anyCall);
      for (const bool adds : isFused ? std::vector<bool>{false} : std::vector<bool>{false, true})
        // Sums of small integers are exact, but for transforms.
        EXPECT_LE(
            distance(
                run(problem, *blocked, adds), run(problem, *plain, adds), problem.outputType()),
            1e-3)
            << (adds ? "adds" : "overwrites");
      const std::size_t copy = outputCopyBytes(problem, blocked->kernel);
      EXPECT_EQ(run(problem, *blocked, false, Values(problem), copy),
                run(problem, *blocked, false));
    }
    EXPECT_GT(compared, 0) << toText(operation);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         BlockNumericsTest,
                         ::testing::ValuesIn(blockCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ucudnn
