// Plans of one sample: nothing but bands of it, or its groups, can be divided.
#include "planner/planner.hpp"

#include <algorithm>
#include <map>

#include "bands_of.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "planner_fixture.hpp"
#include "support/operations.hpp"
#include "support/simulator.hpp"
#include "support/skips.hpp"

namespace ucudnn::test {
namespace {

class PlannerBandsTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    setArithmetic(Arithmetic::kFull);  // there are copies with it only
    settings_.kernels = Kernels::kAll;
    settings_.checkKernels = false;  // large images in full arithmetic take the CPU a second each
  }

  static constexpr std::size_t kWholeBytes = 64 * kMebibyte;
  /// An image's, whose engines copy so much channels last.
  static Problem image(Operation operation) {
    Problem problem = sampleProblem(operation, 1, 64, CUDNN_DATA_HALF);
    problem.mathType = CUDNN_DEFAULT_MATH;
    problem.xSizes = problem.ySizes = {1, 64, 512, 512, 0};
    problem.xStrides = problem.yStrides = {64 << 18, 1 << 18, 512, 1, 0};
    return problem;
  }

  static Problem imageOfGroups(Operation operation) {
    Problem problem = image(operation);
    problem.groups = 8;
    problem.wSizes[1] /= problem.groups;
    return problem;
  }

  /// A call that overwrites its output, of a client whose engine copies.
  PlanRequest call(Planner& planner, const Problem& problem, std::size_t limitBytes) const {
    PlanRequest wanted = request(planner, limitBytes, problem);
    wanted.calls = CallKind::kOverwriting;
    wanted.suitsEngines = true;
    const ProblemDescriptors descriptors(problem);
    for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true))
      if (offer.kernel.source == kEngines && engineConfigurationOf(offer.kernel.id).blocks == 0 &&
          offer.workspaceBytes > limitBytes)
        wanted.own = OwnKernel{offer.kernel, offer.workspaceBytes};
    wanted.lacksWorkspace = wanted.own.has_value();
    return wanted;
  }

  /// Nothing is measured. Within 64 MiB there are two parts, within 32 MiB so many.
  void expectLargestThatFit(Problem (*problemOf)(Operation),
                            int EngineConfiguration::*parts,
                            int within32) {
    settings_.benchmarkShare = 0;
    for (const Operation operation : kOperations) {
      Planner planner;
      for (const std::size_t limitBytes : {32 * kMebibyte, 64 * kMebibyte}) {
        const PlanRequest wanted = call(planner, problemOf(operation), limitBytes);
        ASSERT_TRUE(wanted.own) << toText(operation);
        const PlanAnswer found = planner.answer(wanted, Measuring::kWhenItPays);
        ASSERT_TRUE(found.plan) << toText(operation);
        EXPECT_FALSE(found.plan->measured);
        EXPECT_LE(found.plan->workspaceBytes, limitBytes);
        EXPECT_EQ(mostOf(*found.plan, parts), limitBytes == 32 * kMebibyte ? within32 : 2)
            << toText(operation);
      }
    }
  }
};

/// Until it is measured another engine than the client's runs.
TEST_F(PlannerBandsTest, AnUnmeasuredSampleRunsInTheLargestBandsThatFit) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  expectLargestThatFit(image, &EngineConfiguration::bands, 3);
}

/// Bands would launch kernels for each group of each band.
TEST_F(PlannerBandsTest, AnUnmeasuredSampleOfGroupsRunsInTheLargestTilesThatFit) {
  expectLargestThatFit(imageOfGroups, &EngineConfiguration::tiles, 4);
}

/// A tile takes its part of the workspace.
TEST_F(PlannerBandsTest, TilesOfGroupsAreOfferedWhereEnginesCopy) {
  for (const Operation operation : kOperations) {
    const auto tilesAndBytes = [&](const Problem& problem) {
      std::map<int, std::size_t> least;
      const ProblemDescriptors descriptors(problem);
      for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true)) {
        if (offer.kernel.source != kEngines) continue;
        const EngineConfiguration value = engineConfigurationOf(offer.kernel.id);
        if (value.blocks == 0) least.emplace(value.tiles, offer.workspaceBytes);
      }
      return least;
    };
    const auto ofGroups = tilesAndBytes(imageOfGroups(operation));
    for (const int tiles : {2, 4, 8}) {
      ASSERT_EQ(ofGroups.count(tiles), 1U) << toText(operation);
      EXPECT_LE(ofGroups.at(tiles), kWholeBytes / static_cast<std::size_t>(tiles) + kMebibyte);
    }
    Problem channelsLast = imageOfGroups(operation);
    channelsLast.xStrides = channelsLast.yStrides = {64 << 18, 1, 512 * 64, 64, 0};
    EXPECT_EQ(tilesAndBytes(channelsLast).size(), 1U);
    EXPECT_EQ(tilesAndBytes(image(operation)).size(), 1U);
    Problem depthwise = image(operation);
    depthwise.groups = depthwise.xSizes[1];
    depthwise.wSizes[1] = 1;
    EXPECT_LE(tilesAndBytes(depthwise).size(), 1U);
  }
}

}  // namespace
}  // namespace ucudnn::test
