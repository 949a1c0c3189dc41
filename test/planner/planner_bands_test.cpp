// Plans of one sample: nothing but bands of it can be divided.
#include "planner/planner.hpp"

#include <algorithm>

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

  /// An image's, whose engines copy 64 MiB channels last.
  static Problem image(Operation operation) {
    Problem problem = sampleProblem(operation, 1, 64, CUDNN_DATA_HALF);
    problem.mathType = CUDNN_DEFAULT_MATH;
    problem.xSizes = problem.ySizes = {1, 64, 512, 512, 0};
    problem.xStrides = problem.yStrides = {64 << 18, 1 << 18, 512, 1, 0};
    return problem;
  }

  /// A call that overwrites its output, of a client whose engine copies.
  PlanRequest call(Planner& planner, Operation operation, std::size_t limitBytes) const {
    const Problem problem = image(operation);
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
};

/// Until it is measured another engine than the client's runs.
TEST_F(PlannerBandsTest, AnUnmeasuredSampleRunsInTheLargestBandsThatFit) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.benchmarkShare = 0;
  for (const Operation operation : kOperations) {
    Planner planner;
    for (const std::size_t limitBytes : {24 * kMebibyte, 48 * kMebibyte}) {
      const PlanRequest wanted = call(planner, operation, limitBytes);
      ASSERT_TRUE(wanted.own) << toText(operation);
      const PlanAnswer found = planner.answer(wanted, Measuring::kWhenItPays);
      ASSERT_TRUE(found.plan) << toText(operation);
      EXPECT_FALSE(found.plan->measured);
      EXPECT_LE(found.plan->workspaceBytes, limitBytes);
      EXPECT_EQ(bandsOf(*found.plan), limitBytes == 24 * kMebibyte ? 4 : 2) << toText(operation);
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
