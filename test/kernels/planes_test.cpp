// Algorithms that run on planes of the pixels of a step, against one that steps: on the simulator,
// and on a GPU.
#include "kernels/planes.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device_kernels.hpp"
#include "kernels/algorithms.hpp"

namespace ucudnn {
namespace {

using namespace test;

constexpr Operation kOperations[] = {
    Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter};

Problem stepping(Line down, Line across, int channels = 3, int filters = 4) {
  return ofLines(down, across, channels, filters, CUDNN_FMA_MATH);
}

Problem stepping(Line line, int channels = 3, int filters = 4) {
  return stepping(line, line, channels, filters);
}

constexpr Line kSpeech{20, 5, 1, 2};

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
                               {"OddSizes", stepping({23, 5, 1, 2}, {37, 6, 3, 2})},
                               {"WhatNoTapReads", stepping({25, 4, 0, 4})},
                               {"PaddedBeyondTheFilter", stepping({9, 5, 7, 2})},
                               {"OtherStepsDownThanAcross", stepping({24, 5, 2, 3}, {17, 8, 1, 1})},
                               {"LongLines", stepping({8, 5, 1, 2}, {300, 5, 2, 2})}};
  Problem last = stepping(kSpeech);
  setSizes(last, 3, 4, true);
  cases.push_back({"ChannelsLast", last});
  Problem gaps = stepping(kSpeech);
  setSizes(gaps, 3, 4, false, 20);
  cases.push_back({"GapsBetweenSamples", gaps});
  return cases;
}

class PlaneNumericsTest : public PlanesTest, public ::testing::WithParamInterface<PlaneCase> {};

TEST_P(PlaneNumericsTest, TheyAreTheResultOfSteps) {
  int compared = 0;
  for (const Operation operation : kOperations) {
    Problem problem = GetParam().problem;
    problem.operation = operation;
    for (const KernelOffer& offer : planes(problem)) {
      SCOPED_TRACE(toText(operation, offer.kernel));
      ++compared;
      EXPECT_FALSE(offer.anyCall);
      for (const bool adds : {false, true})
        // Of small integers the transforms alone are not exact.
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
  for (const Operation operation : kOperations) {
    Problem problem = stepping(kSpeech, 8, 16);
    problem.operation = operation;
    const auto found = planes(problem);
    ASSERT_FALSE(found.empty());
    for (const KernelOffer& offer : found) {
      EXPECT_TRUE(transforms(operation, offer.kernel.id));
      // Of 20 x 20 pixels, a pixel of padding before them: 9 steps and 2 more of the 3 that a
      // filter has, of 4 pixels each.
      EXPECT_GE(offer.workspaceBytes, sizeof(float) * (3 * 4 * 8 * 11 * 11 + 16 * 4 * 8 * 3 * 3));
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
  }
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
  EXPECT_TRUE(areOffered(4, CUDNN_DEFAULT_MATH, false));
  EXPECT_TRUE(areOffered(4, CUDNN_FMA_MATH, true));
  EXPECT_TRUE(areOffered(5, CUDNN_DEFAULT_MATH, true));
}

// cuDNN 9.19 has no descriptor of a tensor of 2^31 elements. At fewer samples there are planes, and
// a database says so of the problem at any batch size.
TEST_F(PlanesTest, NoneHaveMoreElementsThanCudnnsTensors) {
  Problem large = stepping({252, 9, 4, 2}, 64);
  large = large.withBatch(512);
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
                                  "FFT_TILING/fma_planes_planes"})
    EXPECT_FALSE(parseKernel(changed([](P) {}), other)) << other;
}

}  // namespace
}  // namespace ucudnn
