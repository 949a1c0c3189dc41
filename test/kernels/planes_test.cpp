// Algorithms that run on planes of the pixels of a step, against one that steps: on the simulator,
// and on a GPU.
#include "kernels/planes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_kernels.hpp"
#include "kernels/algorithms.hpp"
#include "support/operations.hpp"
#include "support/skips.hpp"

namespace ucudnn {
namespace {

using namespace test;

Problem stepping(Line down, Line across, int channels = 3, int filters = 4) {
  return ofLines(down, across, channels, filters, CUDNN_FMA_MATH);
}

Problem stepping(Line line, int channels = 3, int filters = 4) {
  return stepping(line, line, channels, filters);
}

constexpr Line kSpeech{20, 5, 1, 2};

/// In how many tiles, and bands, a kernel runs.
std::pair<int, int> cutOf(Operation operation, Kernel kernel) {
  const std::string text = toText(operation, kernel);
  const auto numberBehind = [&](const std::string& mark) {
    const std::size_t place = text.find(mark);
    return place == std::string::npos ? 1 : std::stoi(text.substr(place + mark.size()));
  };
  return {numberBehind("_tiles="), numberBehind("_bands=")};
}
using Cuts = std::set<std::pair<int, int>>;

class PlanesTest : public DeviceKernelsTest {
 protected:
  std::vector<KernelOffer> planes(const Problem& problem) {
    std::vector<KernelOffer> found;
    int failures = 0;
    for (const KernelOffer& offer : offeredKernels(
             handle_.get(), problem, ProblemDescriptors(problem).get(), false, &failures))
      if (offer.kernel.source == kPlanes) found.push_back(offer);
    EXPECT_EQ(failures, 0);
    return found;
  }

  KernelOffer plain(const Problem& problem) {
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), false))
      if (offer.kernel.source == kAlgorithms && !transforms(problem.operation, offer.kernel.id))
        return offer;
    ADD_FAILURE() << "cuDNN has no algorithm that steps";
    return {};
  }
};

struct PlaneCase {
  std::string name;
  Problem problem;  ///< of the forward operation
};

std::ostream& operator<<(std::ostream& stream, const PlaneCase& tested) {
  return stream << tested.name;
}

std::vector<PlaneCase> planeCases() {
  std::vector<PlaneCase> cases{{"Speech", stepping(kSpeech)},
                               {"AlexNet", stepping({24, 11, 2, 4})},
                               {"ResNet", stepping({24, 7, 3, 2})},
                               {"ManyChannels", stepping(kSpeech, 40, 33)},
                               {"ManyTiles", stepping(kSpeech, 64, 7)},
                               {"TilesWithoutSteps", stepping({20, 5, 2, 1}, 64, 7)},
                               {"OddSizes", stepping({23, 5, 1, 2}, {37, 6, 3, 2})},
                               {"WhatNoTapReads", stepping({25, 4, 0, 4})},
                               {"PaddedBeyondTheFilter", stepping({9, 5, 7, 2})},
                               {"OtherStepsDownThanAcross", stepping({24, 5, 2, 3}, {17, 8, 1, 1})},
                               {"LongLines", stepping({8, 5, 1, 2}, {300, 5, 2, 2})},
                               {"OverlappingBands", stepping({9, 5, 0, 2}, {12, 5, 1, 2})},
                               {"BandsInThePadding", stepping({5, 5, 6, 2}, {9, 5, 0, 2})}};
  Problem last = stepping(kSpeech);
  setSizes(last, 3, 4, true);
  cases.push_back({"ChannelsLast", last});
  Problem gaps = stepping(kSpeech);
  setSizes(gaps, 3, 4, false, 20);
  cases.push_back({"GapsBetweenSamples", gaps});
  Problem tiles = stepping(kSpeech, 32, 5);
  setSizes(tiles, 32, 5, true);
  cases.push_back({"TilesChannelsLast", tiles});
  return cases;
}

class PlaneNumericsTest : public PlanesTest, public ::testing::WithParamInterface<PlaneCase> {};

TEST_P(PlaneNumericsTest, TheyAreTheResultOfSteps) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  int compared = 0;
  for (const Operation operation : kOperations) {
    Problem problem = GetParam().problem;
    problem.operation = operation;
    for (const KernelOffer& offer : planes(problem)) {
      SCOPED_TRACE(toText(operation, offer.kernel));
      ++compared;
      EXPECT_FALSE(offer.anyCall);
      for (const bool adds : {false, true})
        // For small integers only the transforms are inexact.
        EXPECT_LE(distance(run(problem, offer, adds),
                           run(problem, plain(problem), adds),
                           problem.outputType()),
                  1e-3)
            << (adds ? "adds" : "overwrites");
    }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         PlaneNumericsTest,
                         ::testing::ValuesIn(planeCases()),
                         [](const auto& test) { return test.param.name; });

TEST_F(PlanesTest, AreOfAlgorithmsThatTransformAndTheirCopies) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Operation operation : kOperations) {
    Problem problem = stepping(kSpeech, 32, 16);
    problem.operation = operation;
    const auto found = planes(problem);
    Cuts cuts;
    for (const KernelOffer& offer : found) {
      const auto [tiles, bands] = cutOf(operation, offer.kernel);
      cuts.insert({tiles, bands});
      // 20 x 20 pixels with a pixel of padding before them are 9 steps, and 2 more because a filter
      // has 3, of 4 pixels each. A band has a share of the 9, rounded up.
      const int channels = 32 / tiles, rows = (9 + bands - 1) / bands + 2;
      EXPECT_GE(
          offer.workspaceBytes,
          sizeof(float) * 4 * static_cast<std::size_t>(channels * (3 * rows * 11 + 16 * 3 * 3)));
      const std::string text = toText(operation, offer.kernel);
      const auto parsed = parseKernel(problem, text);
      ASSERT_TRUE(parsed) << text;
      EXPECT_EQ(parsed->kernel, offer.kernel);
      EXPECT_EQ(parsed->accurate, offer.accurate);
      EXPECT_FALSE(parsed->anyCall);
      int failures = 0;
      const auto again = offeredKernel(handle_.get(),
                                       problem,
                                       std::make_shared<const ProblemDescriptors>(problem),
                                       offer.kernel,
                                       &failures);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->workspaceBytes, offer.workspaceBytes);
      EXPECT_EQ(failures, 0);
    }
    Cuts all{{1, 1}, {2, 1}};
    if (operation != Operation::kBackwardFilter) all.insert({{1, 2}, {1, 3}});
    EXPECT_EQ(cuts, all);
  }
}

/// A part's planes and filter are a share of the whole's, and so is what transforms them.
TEST_F(PlanesTest, PartsNeedLessWorkspace) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Operation operation : kOperations) {
    Problem problem = stepping({40, 5, 1, 2}, 64, 16);
    problem.operation = operation;
    std::map<std::string, std::map<std::pair<int, int>, std::size_t>> workspaces;
    for (const KernelOffer& offer : planes(problem)) {
      const std::string text = toText(operation, offer.kernel);
      workspaces[text.substr(0, text.find("_planes"))][cutOf(operation, offer.kernel)] =
          offer.workspaceBytes;
    }
    ASSERT_FALSE(workspaces.empty());
    for (auto& [algorithm, ofCut] : workspaces) {
      SCOPED_TRACE(algorithm);
      EXPECT_LT(ofCut.at({2, 1}), ofCut.at({1, 1}));
      EXPECT_LT(ofCut.at({4, 1}), ofCut.at({2, 1}));
      const bool hasBands =
          operation != Operation::kBackwardFilter && algorithm == "WINOGRAD_NONFUSED/fma";
      EXPECT_EQ(ofCut.size(), hasBands ? 5U : 3U);
      if (!hasBands) continue;
      EXPECT_LT(ofCut.at({1, 2}), ofCut.at({1, 1}));
      EXPECT_LT(ofCut.at({1, 3}), ofCut.at({1, 2}));
    }
  }
}

/// With 4 rows, 3 bands would have 2, 2 and none.
TEST_F(PlanesTest, NoBandIsWithoutRows) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const auto hasThreeBands = [&](int size) {
    const Problem problem = stepping({size, 5, 0, 2}, {40, 5, 0, 2}, 8);
    const auto offers = planes(problem);
    return std::any_of(offers.begin(), offers.end(), [&](const KernelOffer& offer) {
      return cutOf(problem.operation, offer.kernel) == std::pair<int, int>(1, 3);
    });
  };
  EXPECT_TRUE(hasThreeBands(9));    // 3 rows
  EXPECT_FALSE(hasThreeBands(11));  // 4 rows
  EXPECT_TRUE(hasThreeBands(13));   // 5 rows
}

/// Without a step planes are plain copies. Those are for tiles, of large filters without TF32.
TEST_F(PlanesTest, WithoutAStepThereAreOnlyTiles) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const auto cuts = [&](const Problem& problem) {
    Cuts found;
    for (const KernelOffer& offer : planes(problem))
      found.insert(cutOf(problem.operation, offer.kernel));
    return found;
  };
  const Problem problem = stepping({20, 5, 2, 1}, 64);
  EXPECT_EQ(cuts(problem), (Cuts{{2, 1}, {4, 1}}));
  EXPECT_EQ(cuts(stepping({20, 5, 2, 1}, 32)), (Cuts{{2, 1}}));
  EXPECT_EQ(cuts(stepping({20, 5, 2, 1}, 34)), (Cuts{{2, 1}}));
  EXPECT_TRUE(planes(stepping({20, 5, 2, 1}, 31)).empty());
  EXPECT_TRUE(planes(stepping({20, 3, 1, 1}, 64)).empty());
  Problem rounded = problem;
  rounded.mathType = CUDNN_DEFAULT_MATH;
  EXPECT_TRUE(planes(rounded).empty());
  EXPECT_FALSE(parseKernel(problem, "FFT_TILING/fma_planes"));
  EXPECT_TRUE(parseKernel(problem, "FFT_TILING/fma_planes_tiles=4"));
}

/// Winograd's of 5 x 5 is off by 1e-3: with a step cuDNN itself runs nothing like it.
TEST_F(PlanesTest, AreAsAccurateAsSteps) {
  for (const Operation operation : kOperations) {
    Problem problem = stepping({24, 9, 4, 2}, 8, 16);
    problem.operation = operation;
    for (const KernelOffer& offer : planes(problem))
      EXPECT_TRUE(offer.accurate) << toText(operation, offer.kernel);
    EXPECT_FALSE(parseKernel(problem, "WINOGRAD_NONFUSED/fma_planes"));
  }
}

/// Engines of blocks are, with tensor cores.
TEST_F(PlanesTest, AreNotOfferedWhereBlocksAreFaster) {
  const auto areOffered = [&](int channels, int mathType, bool withEngines) {
    Problem problem = stepping(kSpeech, channels);
    problem.mathType = mathType;
    const auto offers =
        offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), withEngines);
    return std::any_of(offers.begin(), offers.end(), [](const KernelOffer& offer) {
      return offer.kernel.source == kPlanes;
    });
  };
  EXPECT_FALSE(areOffered(4, CUDNN_DEFAULT_MATH, true));
  EXPECT_EQ(areOffered(4, CUDNN_DEFAULT_MATH, false), kHasBlockCopies);
  EXPECT_EQ(areOffered(4, CUDNN_FMA_MATH, true), kHasBlockCopies);
  EXPECT_EQ(areOffered(5, CUDNN_DEFAULT_MATH, true), kHasBlockCopies);
}

// cuDNN 9.19 has no descriptor of a tensor of 2^31 elements. At fewer samples there are planes, and
// a database says so of the problem at any batch size.
TEST_F(PlanesTest, NoneHaveMoreElementsThanCudnnsTensors) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  Problem large = stepping({252, 9, 4, 2}, 31);
  large = large.withBatch(1025);
  ASSERT_LT(large.xBytes() / sizeof(float), std::size_t{1} << 31);
  EXPECT_TRUE(planes(large).empty());
  ASSERT_FALSE(planes(large.withBatch(64)).empty());
  for (const KernelOffer& offer : planes(large.withBatch(64))) {
    const std::string text = toText(large.operation, offer.kernel);
    EXPECT_TRUE(parseKernel(large, text)) << text;
    int failures = 0;
    EXPECT_FALSE(offeredKernel(handle_.get(),
                               large,
                               std::make_shared<const ProblemDescriptors>(large),
                               offer.kernel,
                               &failures));
    EXPECT_EQ(failures, 0);
  }
}

TEST_F(PlanesTest, WhatHasNoPlanesIsRefused) {
  const auto changed = [](auto change) {
    Problem problem = stepping(kSpeech, 4);
    change(problem);
    return problem;
  };
  using P = Problem&;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::string text = "FFT_TILING/fma_planes";
  ASSERT_TRUE(parseKernel(changed([](P) {}), text));
  const std::vector<Problem> others{
      stepping({20, 3, 1, 2}),
      stepping({20, 5, 1, 1}),
      stepping({24, 5, 0, 6}),
      changed([](P p) { p.xType = p.wType = p.yType = CUDNN_DATA_HALF; }),
      changed([](P p) { p.operation = Operation::kBiasActivationForward; }),
      changed([](P p) { p.groups = 2, setSizes(p, 4, 8, false); }),
      changed([](P p) { p.mode = CUDNN_CONVOLUTION; }),
      changed([](P p) { p.dilations[1] = 2; }),
      changed([](P p) { p.xSizes[1] = p.wSizes[1] = kMost; }),
      changed([](P p) { p.xSizes[2] = p.ySizes[2] = kMost; }),
      changed([](P p) { p.xStrides[3] = 1 << 28; }),
      changed([](P p) {
        p.strides = {1 << 30, 1 << 30};
      })};
  for (const Problem& problem : others) {
    EXPECT_FALSE(parseKernel(problem, text)) << problem.text();
    const Kernel kernel{CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, CUDNN_FMA_MATH, kPlanes};
    EXPECT_THROW(build(problem, kernel), Error) << problem.text();
  }
  for (const char* const other : {"_planes",
                                  "FFT_TILING_planes",
                                  "IMPLICIT_GEMM/fma_planes",
                                  "FFT_TILING/default_planes",
                                  "FFT_TILING/fma_planes_tiles=2",
                                  "FFT_TILING/fma_planes_tiles=1",
                                  "FFT_TILING/fma_planes_tiles=",
                                  "FFT_TILING/fma_planes_bands=2",
                                  "WINOGRAD_NONFUSED/fma_planes_bands=4",
                                  "FFT_TILING/fma_planes_planes"})
    EXPECT_FALSE(parseKernel(changed([](P) {}), other)) << other;
}

}  // namespace
}  // namespace ucudnn
