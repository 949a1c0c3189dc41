// Convolutions whose tensors are copied channels last, in bands: which there are, what is offered,
// and what they compute against engines on the caller's tensors. On the simulator, and on a GPU.
#include "kernels/channels_last.hpp"

#include "kernels/offered_parts.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "blocks_fixture.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

class ChannelsLastTest : public BlocksTest {
 protected:
  std::optional<KernelOffer> banded(const Problem& problem,
                                    EngineConfiguration value,
                                    int bands,
                                    int folds = 1) {
    value.blocks = 1;
    value.folds = folds;
    value.bands = bands;
    return offerOf(problem, value);
  }
};

Problem changed(void (*change)(Problem&)) {
  Problem problem = stem({14, 3, 1, 1}, 8, 12);
  change(problem);
  return problem;
}

TEST_F(ChannelsLastTest, WhatCannotBeCopiedIsRefused) {
  using P = Problem&;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  ASSERT_EQ(ChannelsLast::exists(changed([](P) {}), 1), kHasBlockCopies);
  const std::vector<Problem> others{
      changed([](P p) { p.wType = CUDNN_DATA_HALF; }),
      changed([](P p) { p.xType = p.wType = p.yType = CUDNN_DATA_DOUBLE; }),
      changed([](P p) { p.groups = 4, setSizes(p, 8, 12, false); }),
      changed([](P p) { p.mode = CUDNN_CONVOLUTION; }),
      changed([](P p) { p.operation = Operation::kBiasActivationForward, p.addsZ = 1; }),
      changed(
          [](P p) { p.operation = Operation::kBiasActivationForward, setSizes(p, 8, 10, false); }),
      changed([](P p) { p.xStrides[3] = 1 << 28; }),
      changed([](P p) { p.yStrides[3] = 1 << 28; }),
      changed([](P p) { p.xSizes[0] = p.ySizes[0] = 65536; }),
      changed([](P p) { setSizes(p, 65536, 12, false); }),
      changed([](P p) { setSizes(p, 8, 65536, false); }),
      changed([](P p) { p.xSizes[2] = p.ySizes[2] = kMost; }),
      changed([](P p) { p.dimensions = 3; })};
  for (std::size_t i = 0; i < others.size(); ++i)
    for (const int bands : {1, 2}) EXPECT_FALSE(ChannelsLast::exists(others[i], bands)) << i;
  for (const int bands : {-1, 0, kMostBands + 1, kMost})
    EXPECT_FALSE(ChannelsLast::exists(changed([](P) {}), bands)) << bands;
}

/// Fourteen rows are two bands of seven, or five of three. With sixteen bands, there are no more
/// than half.
TEST_F(ChannelsLastTest, ThereAreAsManyBandsAsRowsAllow) {
  const Problem problem = changed([](Problem&) {});
  const auto countOf = [&](int most) {
    const auto bands = Bands::of(problem, most);
    return bands ? bands->count : 0;
  };
  EXPECT_EQ(countOf(1), 1);
  EXPECT_EQ(countOf(2), 2);
  EXPECT_EQ(countOf(5), 5);
  EXPECT_EQ(countOf(8), 7);
  EXPECT_EQ(countOf(16), 14);
  EXPECT_EQ(countOf(28), 0);
}

/// Of five and six bands each has three rows, of seven and eight two.
TEST_F(ChannelsLastTest, OtherNumbersOfBandsAreVariants) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = changed([](Problem&) {});
  const auto proposed = engines(ChannelsLast(problem, 5).problem());
  ASSERT_FALSE(proposed.empty());
  EngineConfiguration value = proposed.front();
  value.blocks = 1;
  const auto inBands = [&](int bands) {
    value.bands = bands;
    return Kernel{idOf(value), problem.mathType, kEngines};
  };
  const auto choices = variantsOf(handle_.get(), problem, inBands(5));
  ASSERT_FALSE(choices.empty());
  std::vector<int> others;
  for (const Kernel& variant : choices.back()) {
    EXPECT_TRUE(kindOf(variant) == kindOf(inBands(5)));
    others.push_back(engineConfigurationOf(variant.id).bands);
  }
  EXPECT_EQ(others, (std::vector{4, 7, 3}));
  EXPECT_FALSE(kindOf(inBands(1)) == kindOf(inBands(5)));
  for (const auto& choice : variantsOf(handle_.get(), problem, inBands(1)))
    for (const Kernel& variant : choice) EXPECT_EQ(engineConfigurationOf(variant.id).bands, 1);
}

TEST_F(ChannelsLastTest, BandsHaveOneProblemWithoutPadding) {
  const Problem forward = ChannelsLast(changed([](Problem&) {}), 2).problem();
  EXPECT_EQ(forward.xSizes, (Problem::Sizes{3, 8, 9, 14}));
  EXPECT_EQ(forward.ySizes, (Problem::Sizes{3, 12, 7, 14}));
  EXPECT_EQ(forward.pads, (Problem::Spatial{0, 1}));
  const Problem backward =
      ChannelsLast(changed([](Problem& p) { p.operation = Operation::kBackwardData; }), 2)
          .problem();
  EXPECT_EQ(backward.pads, (Problem::Spatial{2, 1}));
  EXPECT_EQ(backward.ySizes[2], backward.xSizes[2] + 2);
}

/// Rows of a video are many, its images few.
TEST_F(ChannelsLastTest, BandsAreWhereTheyHaveLeastInCommon) {
  Problem video = ofLines({4, 3, 1, 1}, {40, 3, 1, 1}, 8, 8, CUDNN_DEFAULT_MATH);
  video.dimensions = 5;
  video.dilations[2] = 1;
  setLine(video, 2, {40, 3, 1, 1});
  setSizes(video, 8, 8, false);
  EXPECT_EQ(Bands::of(video, 4)->spatial, 1U);
  setLine(video, 0, {64, 3, 1, 1});
  setSizes(video, 8, 8, false);
  EXPECT_EQ(Bands::of(video, 4)->spatial, 0U);
  const Problem line = ofLines({1, 1, 0, 1}, {64, 3, 1, 1}, 8, 8, CUDNN_DEFAULT_MATH);
  EXPECT_EQ(Bands::of(line, 4)->spatial, 1U);
}

TEST_F(ChannelsLastTest, ZerosFillTheChannelsThatEnginesReadAtOnce) {
  const Problem few = ChannelsLast(inHalf(stem({14, 3, 1, 1}, 3, 12)), 1).problem();
  EXPECT_EQ(few.xSizes[1], 8);
  EXPECT_EQ(few.wSizes[1], 8);
  EXPECT_EQ(few.ySizes[1], 16);
  EXPECT_EQ(few.wSizes[0], 16);
}

/// Four columns of y need six of x, with a step of two nine.
TEST_F(ChannelsLastTest, ColumnsBecomeChannels) {
  const Problem folded = ChannelsLast(stem({12, 3, 1, 1}, 8, 12), 1, 4).problem();
  EXPECT_EQ(folded.xSizes, (Problem::Sizes{3, 32, 12, 4}));
  EXPECT_EQ(folded.wSizes, (Problem::Sizes{48, 32, 3, 2}));
  EXPECT_EQ(folded.ySizes, (Problem::Sizes{3, 48, 12, 3}));
  EXPECT_EQ(folded.pads, (Problem::Spatial{1, 0}));
  const Problem step = ChannelsLast(stem({24, 3, 1, 2}, 8, 12), 1, 4).problem();
  EXPECT_EQ(step.xSizes, (Problem::Sizes{3, 64, 24, 4}));
  EXPECT_EQ(step.strides, (Problem::Spatial{2, 1}));
}

TEST_F(ChannelsLastTest, ColumnsAreFoldedWhereChannelsAreFew) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const auto foldsOf = [](int channels, int filters, Line across = {64, 3, 1, 1}) {
    return ChannelsLast::foldsOf(stem({64, 3, 1, 1}, across, channels, filters));
  };
  EXPECT_EQ(foldsOf(16, 16), 4);
  EXPECT_EQ(foldsOf(32, 64), 2);
  EXPECT_EQ(foldsOf(128, 5), 8);
  Problem video = ofLines({124, 1, 0, 1}, {1500, 3, 0, 1}, 16, 16, CUDNN_DEFAULT_MATH).withBatch(1);
  video.dimensions = 5;
  video.dilations[2] = 1;
  setLine(video, 2, {722, 3, 0, 1});
  setSizes(video, 16, 16, false);
  EXPECT_EQ(ChannelsLast::foldsOf(video), 4);
  EXPECT_FALSE(ChannelsLast::exists(video, 1, 4)) << "its copy has 2^31 numbers";
  EXPECT_TRUE(ChannelsLast::exists(video, 31, 4));
  EXPECT_EQ(foldsOf(33, 64), 1) << "they are enough";
  EXPECT_EQ(foldsOf(3, 16), 1) << "blocks serve better";
  EXPECT_EQ(foldsOf(16, 16, {64, 1, 0, 1}), 1) << "each column needs its own only";
  EXPECT_EQ(foldsOf(16, 16, {5, 3, 1, 1}), 1) << "the copy of y would be larger by a fifth";
  Problem gradient = inHalf(stem({64, 3, 1, 1}, 3, 16));
  EXPECT_EQ(ChannelsLast::foldsOf(gradient), 1) << "blocks serve better";
  gradient.operation = Operation::kBackwardFilter;
  EXPECT_EQ(ChannelsLast::foldsOf(gradient), 8) << "blocks would round twice";
  gradient = inHalf(stem({64, 4, 1, 2}, 3, 16));
  gradient.operation = Operation::kBackwardFilter;
  EXPECT_EQ(ChannelsLast::foldsOf(gradient), 1) << "blocks of the step don't";
  Problem fma = stem({64, 3, 1, 1}, 16, 16);
  fma.mathType = CUDNN_FMA_MATH;
  EXPECT_EQ(ChannelsLast::foldsOf(fma), 1);
  Problem last = stem({64, 3, 1, 1}, 16, 16);
  setSizes(last, 16, 16, true);
  EXPECT_EQ(ChannelsLast::foldsOf(last), 1);
}

/// Any number of samples has one band; few have bands, and no others that are not folded.
/// H shares less, but only one volume's may be cut there.
TEST_F(ChannelsLastTest, SeveralFoldedVolumesAreCutByDepth) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  Problem volume = ofLines({40, 3, 1, 1}, {192, 3, 1, 1}, 16, 16, CUDNN_DEFAULT_MATH);
  volume.dimensions = 5;
  volume.dilations[2] = 1;
  setLine(volume, 2, {224, 3, 1, 1});
  for (const int samples : {1, 2}) {
    volume = volume.withBatch(samples);
    setSizes(volume, 16, 16, false);
    EXPECT_EQ(Bands::of(volume, 2)->spatial, 1U);
    EXPECT_EQ(Bands::of(volume, 2, true)->spatial, samples == 1 ? 1U : 0U);
    EXPECT_TRUE(ChannelsLast::exists(volume, 2, 4)) << samples;
  }
}

/// One to three bands are too large for copies.
TEST_F(ChannelsLastTest, BandsAreOfferedWhereFewerAreTooLarge) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  Problem volume = ofLines({512, 2, 0, 2}, {2048, 2, 0, 2}, 1, 1, CUDNN_DEFAULT_MATH).withBatch(1);
  volume.dimensions = 5;
  volume.dilations[2] = 1;
  setLine(volume, 2, {2000, 2, 0, 2});
  volume.xType = volume.wType = volume.yType = CUDNN_DATA_HALF;
  setSizes(volume, 1, 1, false);
  ASSERT_FALSE(volume.isLarge());
  ASSERT_FALSE(ChannelsLast::exists(volume, 3, 8));
  const auto kinds = foldedParts(volume);
  ASSERT_FALSE(kinds.empty());
  EXPECT_LT(3, kinds.front().bands);
}

TEST_F(ChannelsLastTest, FoldedColumnsAreOffered) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const int samples : {1, 16}) {
    const Problem problem = inHalf(stem({512, 3, 1, 1}, 16, 32).withBatch(samples));
    bool hasOne = false, hasBands = false;
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true)) {
      if (offer.kernel.source != kEngines) continue;
      const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      EXPECT_EQ(value.folds, value.blocks == 1 ? 4 : 1) << toText(value);
      hasOne = hasOne || (value.folds == 4 && value.bands == 1);
      hasBands = hasBands || value.bands > 1;
    }
    EXPECT_TRUE(hasOne);
    EXPECT_EQ(hasBands, samples == 1);
  }
}

TEST_F(ChannelsLastTest, OnlyPixelsThatOneTapReadsAreCopied) {
  for (const Operation operation : kOperations) {
    Problem problem = stem({13, 1, 0, 2}, {10, 1, 0, 3}, 8, 12);
    problem.operation = operation;
    const Problem once = ChannelsLast(problem, 1).problem();
    EXPECT_EQ(once.xSizes, (Problem::Sizes{3, 8, 7, 4}));
    EXPECT_EQ(once.strides, (Problem::Spatial{1, 1}));
  }
  const Problem taps = ChannelsLast(stem({13, 3, 1, 2}, 8, 12), 1).problem();
  EXPECT_EQ(taps.xSizes, (Problem::Sizes{3, 8, 13, 13}));
  EXPECT_EQ(taps.strides[0], 2);
}

/// In float on tensor cores, channels first. They need as much workspace as before.
TEST_F(ChannelsLastTest, EnginesThatCopyXAndYGetCopiesOfOurs) {
  const auto isAsMuch = [](std::size_t bytes, std::size_t before) {
    return bytes <= before + before / 64 + 4096;
  };
  int count = 0;
  const auto countIn = [&](const Problem& problem) {
    count = 0;
    for (const KernelOffer& found :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true)) {
      if (found.kernel.source != kEngines) continue;
      const EngineConfiguration value = engineConfigurationOf(found.kernel.id);
      count += value.blocks;
      const bool mayCopy = found.workspaceBytes >= problem.xBytes() + problem.yBytes();
      if (value.blocks == 1) {
        const auto own = offer(problem, value, 0);
        ASSERT_TRUE(own) << toText(value);
        EXPECT_TRUE(isAsMuch(found.workspaceBytes, own->workspaceBytes)) << toText(value);
      } else if (problem.xStrides[1] != 1 && mayCopy && value.tiles == 1) {
        const auto last = offer(problem, value, 1);  // of those there are none: they don't copy
        EXPECT_FALSE(last && isAsMuch(last->workspaceBytes, found.workspaceBytes)) << toText(value);
      }
    }
  };
  for (const Operation operation : kOperations) {
    SCOPED_TRACE(toText(operation));
    Problem many = stem({14, 3, 1, 1}, 64, 64).withBatch(32);
    many.operation = operation;
    ASSERT_NO_FATAL_FAILURE(countIn(many));
    EXPECT_EQ(count > 0, kHasBlockCopies);
    Problem last = many;
    setSizes(last, 64, 64, true);
    ASSERT_NO_FATAL_FAILURE(countIn(last));
    EXPECT_EQ(count, 0);
    Problem largeFilter = stem({4, 1, 0, 1}, 512, 1024).withBatch(2);
    largeFilter.operation = operation;
    ASSERT_NO_FATAL_FAILURE(countIn(largeFilter));
  }
}

TEST_F(ChannelsLastTest, OtherEnginesThatCopyAreLeftAlone) {
  for (const Operation operation : kOperations) {
    const auto offersBlocks = [&](Problem problem) {
      problem.operation = operation;
      const auto found =
          offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true);
      return std::any_of(found.begin(), found.end(), [](const KernelOffer& offer) {
        return offer.kernel.source == kEngines && engineConfigurationOf(offer.kernel.id).blocks > 0;
      });
    };
    const Problem many = stem({14, 3, 1, 1}, 64, 64).withBatch(32);
    Problem fma = many;
    fma.mathType = CUDNN_FMA_MATH;
    EXPECT_FALSE(offersBlocks(fma)) << toText(operation);
    EXPECT_FALSE(offersBlocks(inHalf(many))) << toText(operation);
  }
}

/// The fewest within each power of two, down to bands that a launch takes as long as. Engines need
/// 8 MiB for parts of a gradient.
TEST_F(ChannelsLastTest, BandsAreOfferedForOneLargeSample) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Operation operation : kOperations) {
    Problem large = inHalf(stem({512, 3, 1, 1}, 64, 64).withBatch(1));
    large.operation = operation;
    std::vector<int> bands;
    std::vector<std::size_t> bytes;
    int inTwo = 0;
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), large, ProblemDescriptors(large).get(), true)) {
      if (offer.kernel.source != kEngines) continue;
      const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
      if (value.bands == 2) ++inTwo;
      if (value.blocks == 0 || (!bands.empty() && bands.back() == value.bands)) continue;
      bands.push_back(value.bands);
      bytes.push_back(offer.workspaceBytes);
    }
    if (onSimulator()) {
      EXPECT_LT(3, inTwo) << "cuDNN's first three are often of one engine";
    }
    const bool isGradient = operation == Operation::kBackwardFilter;
    EXPECT_EQ(bands, isGradient ? (std::vector{1, 2, 3}) : (std::vector{1, 2, 3, 5}))
        << toText(operation);
    for (std::size_t i = 1; i < bytes.size(); ++i)
      EXPECT_LE(bytes[i], (std::size_t{128} << 20) >> i);
    EXPECT_LT(bytes.front(), large.xBytes() + large.yBytes() + (std::size_t{4} << 20));
  }
}

/// Any problem that there are bands of: its operation, type, steps, layout, groups.
class RandomBands {
 public:
  explicit RandomBands(unsigned seed) : random_(seed) {}

  Problem problem() {
    Problem p = sampleProblem(kOperations[at(0, 2)], at(1, 3), 8);
    p.mathType = CUDNN_DEFAULT_MATH;
    p.dimensions = at(4, 5);
    const int spatial = p.dimensions - 2;
    for (int i = 0; i < spatial; ++i) setAny(p, static_cast<std::size_t>(i));
    const std::array types{CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    p.xType = p.wType = p.yType = types[static_cast<std::size_t>(at(0, 2))];
    p.groups = at(0, 4) == 0 ? 2 : 1;
    const int whole = p.groups == 1 ? 1 : 8;
    setSizes(p,
             p.groups * whole * at(1, 11),
             p.groups * whole * at(1, 11),
             at(0, 2) == 0,
             at(0, 3) == 0 ? 8 * at(1, 3) : 0);
    if (at(0, 3) == 0) p.wFormat = CUDNN_TENSOR_NHWC;
    if (p.operation == Operation::kForward && at(0, 4) == 0) {
      p.operation = Operation::kBiasActivationForward;
      p.activation = CUDNN_ACTIVATION_RELU;
    }
    return p;
  }
  int bands() { return at(1, 6); }
  int folds() { return at(0, 2) == 0 ? at(2, kMostFolds) : 1; }

 private:
  int at(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }

  void setAny(Problem& p, std::size_t dimension) {
    const int taps = at(1, 4), dilation = at(0, 3) == 0 ? 2 : 1, step = at(1, 3);
    const int reach = (taps - 1) * dilation, pad = at(0, reach);
    const int size = std::max(at(1, 12), reach + 1 - 2 * pad);
    p.xSizes[2 + dimension] = size;
    p.wSizes[2 + dimension] = taps;
    p.pads[dimension] = pad;
    p.strides[dimension] = step;
    p.dilations[dimension] = dilation;
    p.ySizes[2 + dimension] = (size + 2 * pad - reach - 1) / step + 1;
  }

  std::mt19937 random_;
};

/// A band of y or dx equals the same engine's result of the whole to the bit: each number is one
/// sum, in one order. UCUDNN_TEST_PROBLEMS: the number of problems.
TEST_F(ChannelsLastTest, BandsAreTheResultOfTheWhole) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const char* const asked = std::getenv("UCUDNN_TEST_PROBLEMS");
  const int problems = asked != nullptr ? std::atoi(asked) : 400;
  RandomBands random(1);
  int compared = 0, folded = 0;
  for (int i = 0; i < problems; ++i) {
    const Problem problem = random.problem();
    const int bands = random.bands(), folds = random.folds();
    if (!ChannelsLast::exists(problem, bands, folds)) continue;
    const auto whole = engines(problem);
    if (whole.empty()) continue;
    const auto plain = offer(problem, whole.front(), 0);
    ASSERT_TRUE(plain);
    const auto others = engines(ChannelsLast(problem, bands, folds).problem());
    const bool isFused = problem.operation == Operation::kBiasActivationForward;
    for (std::size_t j = 0; j < std::min<std::size_t>(others.size(), 2); ++j) {
      const auto found = banded(problem, others[j], bands, folds);
      if (!found) continue;
      SCOPED_TRACE(problem.text() + " N=" + std::to_string(problem.batch()) + " " +
                   toText(problem.operation) + " " + toText(problem.operation, found->kernel));
      // For a gradient in 16 bits each band is rounded, and the sum; else small integers are exact.
      const bool isRoundedSum = (bands > 1 || folds > 1) && isRounded(problem.wType) &&
                                problem.operation == Operation::kBackwardFilter;
      const auto inOne = banded(problem, others[j], 1, folds);
      if (inOne && problem.operation != Operation::kBackwardFilter) {
        EXPECT_TRUE(run(problem, *found, false) == run(problem, *inOne, false)) << "other bits";
      }
      for (const bool adds : {false, true}) {
        if (isFused && adds) continue;
        ++compared;
        folded += folds > 1 ? 1 : 0;
        EXPECT_LE(
            distance(run(problem, *found, adds), run(problem, *plain, adds), problem.outputType()),
            isRoundedSum ? 4e-3 : 1e-3)
            << (adds ? "adds" : "overwrites");
      }
    }
  }
  EXPECT_GT(compared, problems);
  EXPECT_GT(folded, problems / 20);
}

}  // namespace
}  // namespace ucudnn
