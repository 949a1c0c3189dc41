// What runs on our copies until a problem is measured, if the call's own kernel lacks workspace:
// that kernel, blocks of pixels, sums.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "kernels/engines.hpp"
#include "planner/planner.hpp"
#include "planner_engines_fixture.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

class PlannerCopiesTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    arithmetic_ = Arithmetic::kFull;  // there are copies with it only
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
    settings_.benchmarkShare = 0;
  }

  /// A filter gradient of DeepLab's, whose filter is dilated.
  static Problem dilated(cudnnDataType_t type) {
    Problem problem = problemOf(Operation::kBackwardFilter);
    problem.xType = problem.wType = problem.yType = type;
    problem.xSizes = {8, 2048, 65, 65, 0};
    problem.xStrides = {2048 * 4225, 4225, 65, 1, 0};
    problem.wSizes = {256, 2048, 3, 3, 0};
    problem.ySizes = {8, 256, 65, 65, 0};
    problem.yStrides = {256 * 4225, 4225, 65, 1, 0};
    problem.pads = problem.dilations = {12, 12, 1};
    return problem;
  }

  /// The engine as a client has it. Empty: it is not offered.
  std::optional<OwnKernel> offeredEngine(const Problem& problem, std::int64_t engine) const {
    const ProblemDescriptors descriptors(problem);
    for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true))
      if (isClients(offer.kernel) && engineConfigurationOf(offer.kernel.id).engine == engine)
        return OwnKernel{offer.kernel, offer.workspaceBytes};
    return std::nullopt;
  }

  /// Of those that a client may have, the one that needs most workspace. Empty: none needs 1 MiB.
  std::optional<OwnKernel> mostWorkspaceOf(const Problem& problem) const {
    std::optional<OwnKernel> most;
    const ProblemDescriptors descriptors(problem);
    for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true))
      if (isClients(offer.kernel) && offer.workspaceBytes >= kMebibyte &&
          (!most || offer.workspaceBytes > most->workspaceBytes))
        most = OwnKernel{offer.kernel, offer.workspaceBytes};
    return most;
  }
};

/// An engine that copies its tensors channels last takes longer for that than we do.
TEST_F(PlannerCopiesTest, TensorsAreCopiedForThatKernel) {
  ASSERT_EQ(hasBlockCopies(), kHasBlockCopies);
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT}) {
    Problem problem = problemOf(Operation::kForward);
    problem.xType = problem.wType = problem.yType = type;
    Planner planner;
    PlanRequest wanted = request(planner, 0, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = copyingOf(problem);
    ASSERT_GE(wanted.own->workspaceBytes, problem.xBytes() + problem.yBytes());
    wanted.limitBytes = wanted.own->workspaceBytes / 4 * 3;
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan);
    EXPECT_FALSE(found.plan->measured);
    EXPECT_LE(found.plan->workspaceBytes, wanted.limitBytes);
    EngineConfiguration copied = engineConfigurationOf(wanted.own->kernel.id);
    copied.blocks = kHasBlockCopies ? 1 : 0;
    for (const Plan::Step& step : found.plan->steps) EXPECT_EQ(step.kernel.id, idOf(copied));
  }
}

/// A filter of one tap with a step.
Problem steppedTap(Problem problem, int filters) {
  problem.xSizes = {32, 64, 28, 28, 0};
  problem.ySizes = {32, filters, 14, 14, 0};
  problem.wSizes = {filters, 64, 1, 1, 0};
  problem.pads = {0, 0, 0};
  problem.strides = {2, 2, 1};
  problem.xStrides = {64 * 784, 784, 28, 1, 0};
  problem.yStrides = {filters * 196, 196, 14, 1, 0};
  return problem;
}

/// It reads every second pixel, and only those are copied: the batch need not be divided. Forward
/// by the client's own engine: to ask for the first one would load tables.
TEST_F(PlannerCopiesTest, ATapWithAStepRunsWhole) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Operation operation :
       {Operation::kForward, Operation::kBiasActivationForward, Operation::kBackwardFilter}) {
    SCOPED_TRACE(toText(operation));
    Problem problem = steppedTap(problemOf(operation), 64);
    problem.addsZ = 0;
    Planner planner;
    PlanRequest wanted = request(planner, 0, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = copyingOf(problem);
    wanted.limitBytes = (problem.xBytes() / 4 + problem.yBytes()) / 4 * 5;
    ASSERT_LT(wanted.limitBytes, wanted.own->workspaceBytes);
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan);
    ASSERT_EQ(found.plan->steps.size(), 1U);
    EXPECT_EQ(found.plan->steps.front().batch, 32);
    EXPECT_LE(found.plan->workspaceBytes, wanted.limitBytes);
    const EngineConfiguration value = engineConfigurationOf(found.plan->steps.front().kernel.id);
    EXPECT_EQ(value.blocks, 1);
    if (operation == Operation::kBackwardFilter) continue;
    const EngineConfiguration own = engineConfigurationOf(wanted.own->kernel.id);
    EXPECT_EQ(value.engine, own.engine);
    EXPECT_EQ(value.knobs, own.knobs);
  }
}

/// Where the client's own engine would be compiled for the copies, or needs more beside them.
TEST_F(PlannerCopiesTest, ATapWithAStepElseRunsByTheFirstEngine) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const auto& [type, engine, hundredths] :
       {std::tuple{CUDNN_DATA_FLOAT, 71, 60}, std::tuple{CUDNN_DATA_HALF, 67, 50}}) {
    SCOPED_TRACE(testing::Message() << engine);
    Problem problem = steppedTap(problemOf(Operation::kForward), 128);
    problem.xType = problem.wType = problem.yType = type;
    EngineConfiguration value;
    value.engine = engine;
    const Kernel own{idOf(value), problem.mathType, kEngines};
    const auto offer =
        offeredKernel(handle_.get(), problem, nullptr, own, nullptr, Calls::kOverwriting);
    ASSERT_TRUE(offer);
    EXPECT_EQ(offer->compiled, engine == 71);
    Planner planner;
    PlanRequest wanted = request(planner, 0, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.calls = CallKind::kOverwriting;
    wanted.own = OwnKernel{own, offer->workspaceBytes};
    wanted.limitBytes = offer->workspaceBytes / 100 * static_cast<std::size_t>(hundredths);
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan);
    ASSERT_EQ(found.plan->steps.size(), 1U) << toText(*found.plan);
    const Plan::Step& step = found.plan->steps.front();
    EXPECT_EQ(step.batch, 32);
    EXPECT_FALSE(step.compiled);
    EXPECT_NE(engineConfigurationOf(step.kernel.id).engine, engine);
  }
}

/// An engine that rounds floats as it copies them would copy ours again.
TEST_F(PlannerCopiesTest, AnEngineThatWouldCopyAgainGivesWay) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = problemOf(Operation::kBackwardFilter);
  ASSERT_EQ(problem.xType, CUDNN_DATA_FLOAT);
  const auto own = offeredEngine(problem, 34);
  ASSERT_TRUE(own);
  Planner planner;
  PlanRequest wanted = request(planner, 0, problem);
  wanted.calls = CallKind::kOverwriting;
  wanted.suitsEngines = wanted.lacksWorkspace = true;
  wanted.own = own;
  wanted.limitBytes = own->workspaceBytes / 4 * 3;
  const PlanAnswer found = call(planner, wanted);
  ASSERT_TRUE(found.plan);
  for (const Plan::Step& step : found.plan->steps) {
    const EngineConfiguration value = engineConfigurationOf(step.kernel.id);
    EXPECT_NE(value.engine, 34);
    EXPECT_EQ(value.blocks, 1);
  }
}

/// The client's own engine adds up in 16 bits, and so may its parts.
TEST_F(PlannerCopiesTest, AnEngineOfReducedSumsRunsInParts) {
  Problem problem = problemOf(Operation::kBackwardData);
  problem.xType = problem.wType = problem.yType = CUDNN_DATA_HALF;
  problem.reducedSums = 1;
  const auto own = offeredEngine(problem, 25);
  ASSERT_TRUE(own);
  for (const bool isDeterministic : {false, true}) {
    Planner planner;
    PlanRequest wanted = request(planner, 0, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = own;
    wanted.limitBytes = kMebibyte;
    wanted.deterministic = isDeterministic;
    const PlanAnswer found = call(planner, wanted);
    EXPECT_TRUE(found.plan || isDeterministic);
    if (!found.plan) continue;
    for (const Plan::Step& step : found.plan->steps)
      EXPECT_EQ(engineConfigurationOf(step.kernel.id).engine == 25, !isDeterministic);
  }
}

/// The first layer of a network for images, in a layout.
Problem firstLayer(const Problem& other, int batch, cudnnDataType_t type, bool isLast) {
  Problem problem = other;
  problem.xType = problem.wType = problem.yType = type;
  problem.xSizes = {batch, 3, 112, 112, 0};
  problem.ySizes = {batch, 64, 56, 56, 0};
  problem.wSizes = {64, 3, 7, 7, 0};
  problem.pads = {3, 3, 0};
  problem.strides = {2, 2, 1};
  const auto packed = [&](const Problem::Sizes& sizes) {
    const std::int64_t channels = sizes[1], side = sizes[2];
    return isLast ? Problem::Strides{channels * side * side, 1, channels * side, channels, 0}
                  : Problem::Strides{channels * side * side, side * side, side, 1, 0};
  };
  problem.xStrides = packed(problem.xSizes);
  problem.yStrides = packed(problem.ySizes);
  problem.wFormat = isLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  return problem;
}

/// Forward and filter gradients with channels first, and gradients in 16 bits: the others lose by
/// blocks.
TEST_F(PlannerCopiesTest, FewChannelsRunInBlocks) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;  // in full arithmetic they take the CPU seconds
  int inBlocks = 0, others = 0;
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT})
    for (const bool isLast : {false, true})
      for (const bool isFma : {false, true})
        for (const Operation operation :
             {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
          constexpr int kBatch = 96;
          Problem problem = firstLayer(problemOf(operation), kBatch, type, isLast);
          if (isFma) problem.mathType = CUDNN_FMA_MATH;
          Planner planner;
          PlanRequest wanted = request(planner, 0, problem);
          wanted.calls = CallKind::kOverwriting;
          wanted.suitsEngines = wanted.lacksWorkspace = true;
          const auto own = mostWorkspaceOf(problem);
          if (!own) continue;
          wanted.own = *own;
          wanted.limitBytes = own->workspaceBytes / 4 * 3;
          const PlanAnswer found = call(planner, wanted);
          if (!found.plan) continue;
          EXPECT_LE(found.plan->workspaceBytes, wanted.limitBytes);
          const bool isGradient = operation != Operation::kForward;
          const bool gains = !isFma && ((isGradient && type == CUDNN_DATA_HALF) ||
                                        (operation != Operation::kBackwardData && !isLast));
          int samples = 0;
          for (const Plan::Step& step : found.plan->steps) {
            const EngineConfiguration value = engineConfigurationOf(step.kernel.id);
            samples += step.batch * step.count;
            // A filter gradient of 16 bits is not divided by the batch. Blocks that don't fit give
            // way to splits.
            EXPECT_EQ(value.blocks > 1, gains && value.bands == 1 && value.splits == 1)
                << problem.text() << ": " << toText(*found.plan);
            EXPECT_GE(step.batch, kBatch / 4) << "few parts";
            ++(value.blocks > 1 ? inBlocks : others);
          }
          EXPECT_EQ(samples, kBatch);
        }
  EXPECT_LE(4, inBlocks);
  EXPECT_LE(2, others);
}

/// Small blocks forward in 16 bits, and large ones for a filter's gradient in float: with y copied.
TEST_F(PlannerCopiesTest, BlocksCopyYWhereEnginesWould) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;  // in full arithmetic they take the CPU seconds
  const auto expectBlocks = [&](const Problem& problem, int pixels, int last) {
    Planner planner;
    PlanRequest wanted = request(planner, 0, problem);
    wanted.calls = CallKind::kOverwriting;
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = mostWorkspaceOf(problem);
    ASSERT_TRUE(wanted.own);
    wanted.limitBytes = wanted.own->workspaceBytes / 4 * 3;
    const PlanAnswer found = call(planner, wanted);
    ASSERT_TRUE(found.plan) << problem.text();
    for (const Plan::Step& step : found.plan->steps) {
      const EngineConfiguration value = engineConfigurationOf(step.kernel.id);
      EXPECT_EQ(value.blocks, pixels) << toText(*found.plan);
      EXPECT_EQ(value.last, last) << toText(*found.plan);
    }
  };
  expectBlocks(firstLayer(problemOf(Operation::kForward), 64, CUDNN_DATA_HALF, false), 4, 1);
  Problem gradient = firstLayer(problemOf(Operation::kBackwardFilter), 64, CUDNN_DATA_FLOAT, false);
  expectBlocks(gradient, 16, 0);  // y's pixels are blocks, too
  gradient.wSizes = {64, 3, 11, 11, 0};
  gradient.ySizes = {64, 64, 27, 27, 0};
  gradient.yStrides = {64 * 27 * 27, 27 * 27, 27, 1, 0};
  gradient.pads = {2, 2, 0};
  gradient.strides = {4, 4, 1};
  expectBlocks(gradient, 16, 1);
  gradient.operation = Operation::kForward;
  expectBlocks(gradient, 16, 0);
  gradient.operation = Operation::kBackwardFilter;
  gradient.ySizes[1] = gradient.wSizes[0] = 66;
  gradient.yStrides[0] = 66 * 27 * 27;
  expectBlocks(gradient, 0, 0);  // we can't copy that y
}

/// Their parts are not copied to float, where our copies can run.
TEST_F(PlannerCopiesTest, FilterGradientsWhoseBlocksDoNotFitAreSplit) {
  const Problem problem =
      firstLayer(problemOf(Operation::kBackwardFilter), 512, CUDNN_DATA_HALF, true);
  Planner planner;
  PlanRequest wanted = request(planner, 40 * kMebibyte, problem);
  wanted.calls = CallKind::kOverwriting;
  wanted.suitsEngines = wanted.lacksWorkspace = true;
  wanted.own = mostWorkspaceOf(problem);
  ASSERT_TRUE(wanted.own && wanted.own->workspaceBytes > wanted.limitBytes);
  const PlanAnswer found = call(planner, wanted);
  ASSERT_TRUE(found.plan);
  ASSERT_EQ(found.plan->steps.size(), 1U);
  const EngineConfiguration value = engineConfigurationOf(found.plan->steps.front().kernel.id);
  EXPECT_LT(1, kHasBlockCopies ? value.splits : value.sums);
  EXPECT_LE(found.plan->workspaceBytes, wanted.limitBytes);
}

/// Bands copy x with its channels filled, and multiply those too. Where the filter is dilated, most
/// rows of a band belong to the next one, too.
TEST_F(PlannerCopiesTest, FilterGradientsRunInBandsButThoseOfLargePatchesAndDilated) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;
  const auto configurationOf = [&](const Problem& problem) {
    Planner planner;
    PlanRequest wanted = request(planner, 64 * kMebibyte, problem);
    wanted.calls = CallKind::kOverwriting;
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = mostWorkspaceOf(problem);
    const PlanAnswer found = call(planner, wanted);
    EXPECT_TRUE(found.plan);
    return found.plan ? engineConfigurationOf(found.plan->steps.front().kernel.id)
                      : EngineConfiguration();
  };
  Problem problem =
      firstLayer(problemOf(Operation::kBackwardFilter), 512, CUDNN_DATA_BFLOAT16, false);
  EngineConfiguration value = configurationOf(problem);
  EXPECT_LT(1, value.bands) << toText(value);
  EXPECT_EQ(1, value.splits) << toText(value);
  // A ViT's patches of 16x16 pixels.
  problem.wSizes = {768, 3, 16, 16, 0};
  problem.ySizes = {512, 768, 7, 7, 0};
  problem.yStrides = {768 * 49, 49, 7, 1, 0};
  problem.pads = {0, 0, 0};
  problem.strides = {16, 16, 1};
  value = configurationOf(problem);
  EXPECT_EQ(1, value.bands) << toText(value);
  EXPECT_LT(1, value.splits) << toText(value);
  value = configurationOf(dilated(CUDNN_DATA_BFLOAT16));
  EXPECT_EQ(1, value.bands) << toText(value);
  EXPECT_LT(1, value.splits) << toText(value);
}

/// Of several samples only the first: fewer samples may have it within the limit. Of one, where
/// asked, the next that fits.
TEST_F(PlannerCopiesTest, TheFirstEngineIsOfferedWithinTheLimit) {
  const Problem problem = dilated(CUDNN_DATA_FLOAT).withBatch(1);
  const auto offered = [&](std::size_t limitBytes, bool orNext, const Problem& of) {
    return offeredFirst(handle_.get(), of, {limitBytes, false, Calls::kOverwriting}, orNext);
  };
  const auto first = offered(SIZE_MAX, false, problem);
  ASSERT_TRUE(first && isClients(first->kernel));
  ASSERT_LT(problem.xBytes(), first->workspaceBytes);
  const auto next = offered(problem.xBytes() / 2, true, problem);
  ASSERT_TRUE(next);
  EXPECT_LE(next->workspaceBytes, problem.xBytes() / 2);
  const Problem several = problem.withBatch(4);
  const auto ofSeveral = offered(SIZE_MAX, false, several);
  ASSERT_TRUE(ofSeveral);
  EXPECT_FALSE(offered(ofSeveral->workspaceBytes - 1, false, several)) << "smaller parts have it";
}

/// Channels that are last already have bands, too: engines copy them, if only to fill them. A
/// filter gradient of 16 bits has splits, which copy nothing.
TEST_F(PlannerCopiesTest, ChannelsLastRunInPartsToo) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16})
    for (const Operation operation :
         {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
      Problem problem = problemOf(operation);
      problem.xType = problem.wType = problem.yType = type;
      problem.xSizes = {2, 12, 512, 512, 0};
      problem.xStrides = {12 << 18, 1, 512 * 12, 12, 0};
      problem.wSizes = {24, 12, 5, 5, 0};
      problem.ySizes = {2, 24, 512, 512, 0};
      problem.yStrides = {24 << 18, 1, 512 * 24, 24, 0};
      const auto offer =
          offeredInBands(handle_.get(), problem, {32 * kMebibyte, false, Calls::kOverwriting});
      ASSERT_TRUE(offer) << problem.text();
      EXPECT_LE(offer->workspaceBytes, 32 * kMebibyte);
      const EngineConfiguration value = engineConfigurationOf(offer->kernel.id);
      const bool splits = operation == Operation::kBackwardFilter && isRounded(type);
      EXPECT_EQ(splits, value.splits > 1) << toText(value);
      EXPECT_EQ(splits, value.bands == 1) << toText(value);
      problem.mathType = CUDNN_FMA_MATH;  // its engines read any layout in place
      const auto fma =
          offeredInBands(handle_.get(), problem, {32 * kMebibyte, false, Calls::kOverwriting});
      EXPECT_TRUE(!fma || engineConfigurationOf(fma->kernel.id).bands == 1);
    }
}

/// A slower engine rather than none, if bits must repeat. In the sums in float of a large problem
/// the simulator's first engine is one that adds atomically.
TEST_F(PlannerCopiesTest, TheFirstEngineIsDeterministicWhereAsked) {
  int others = 0;
  for (const int filters : {16, 32, 64, 96, 128, 192}) {
    Problem problem =
        firstLayer(problemOf(Operation::kBackwardFilter), 65536, CUDNN_DATA_HALF, true);
    problem.mathType = CUDNN_FMA_MATH;
    problem.ySizes[1] = problem.wSizes[0] = filters;
    problem.yStrides = {56 * 56 * filters, 1, 56 * filters, filters, 0};
    ASSERT_TRUE(problem.isLarge());
    const OfferBounds any{SIZE_MAX, false, Calls::kOverwriting};
    const OfferBounds repeating{any.limitBytes, true, any.calls};
    const auto first = offeredInBands(handle_.get(), problem, any);
    const auto found = offeredInBands(handle_.get(), problem, repeating);
    ASSERT_TRUE(first && found);
    EXPECT_TRUE(found->deterministic);
    if (!first->deterministic) ++others;
  }
  EXPECT_LT(0, others);
}

TEST_F(PlannerCopiesTest, ALookTimesBlocks) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem =
      firstLayer(problemOf(Operation::kBackwardFilter), 8, CUDNN_DATA_FLOAT, false);
  const auto offers = firstOffers(handle_.get(), problem, 64 * kMebibyte, 2, Calls::kOverwriting);
  EXPECT_TRUE(std::any_of(offers.begin(), offers.end(), [](const KernelOffer& offer) {
    return engineConfigurationOf(offer.kernel.id).blocks > 1;
  }));
}

/// Looks at such parts of ResNet-18 made nothing faster.
TEST_F(PlannerCopiesTest, PartsOnOurCopiesAreLookedAtLater) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.benchmarkShare = 0.03;
  settings_.checkKernels = false;
  Problem problem = problemOf(Operation::kForward);  // small, for the CPU computes it
  problem.xSizes = problem.ySizes = {8, 64, 9, 9, 0};
  problem.xStrides = problem.yStrides = {64 * 81, 81, 9, 1, 0};
  problem.wSizes = {64, 64, 3, 3, 0};
  problem.pads = {1, 1, 0};
  const OwnKernel own = copyingOf(problem);
  const auto callsUntilALook = [&](cudnnConvolutionMode_t mode) {
    problem.mode = mode;
    Planner planner;
    PlanRequest wanted = request(planner, own.workspaceBytes / 4 * 3, problem);
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.callsSince = 100;
    wanted.own = own;
    int calls = 0;
    while (planner.statistics().slices == 0 && calls < 1000000) {
      const PlanAnswer found = call(planner, wanted);
      calls += static_cast<int>(wanted.callsSince);
      if (!found.plan) return 0;
      const EngineConfiguration value = engineConfigurationOf(found.plan->steps.front().kernel.id);
      if (value.blocks != (mode == CUDNN_CROSS_CORRELATION ? 1 : 0)) return 0;
    }
    return calls;
  };
  const int copied = callsUntilALook(CUDNN_CROSS_CORRELATION);
  const int others = callsUntilALook(CUDNN_CONVOLUTION);  // whose filter can't be copied
  EXPECT_LT(0, others);
  EXPECT_LT(2 * others, copied);
  EXPECT_GT(40 * others, copied);
}

}  // namespace
}  // namespace ucudnn::test
