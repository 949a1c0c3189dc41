// Parts whose kernel has the copy of its output in the output's samples that are written later, so
// that they are fewer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../kernels/device_kernels.hpp"
#include "executor/checked_plans.hpp"
#include "executor/executor.hpp"
#include "planner/configuration_times.hpp"
#include "planner_engines_fixture.hpp"
#include "support/skips.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn::test {
namespace {

class PlannerOutputCopiesTest : public PlannerEnginesTest {
 protected:
  void SetUp() override {
    arithmetic_ = Arithmetic::kFull;  // there are copies with it only
    PlannerEnginesTest::SetUp();
    settings_.databasePath.clear();
    settings_.benchmarkShare = 0;
  }

  static constexpr int kBatch = 64;

  /// Small, for the CPU computes it.
  static Problem smallProblem(Operation operation) {
    Problem problem = problemOf(operation);
    problem.xSizes = {kBatch, 64, 14, 14, 0};
    problem.xStrides = {64 * 196, 196, 14, 1, 0};
    problem.ySizes = {kBatch, 32, 14, 14, 0};
    problem.yStrides = {32 * 196, 196, 14, 1, 0};
    problem.wSizes = {32, 64, 3, 3, 0};
    problem.pads = {1, 1, 0};
    return problem;
  }

  /// A call within so many hundredths of the workspace that its own kernel needs.
  PlanRequest lacking(Planner& planner,
                      const Problem& problem,
                      std::size_t hundredths,
                      CallKind calls = CallKind::kOverwriting) const {
    PlanRequest wanted = request(planner, 0, problem);
    wanted.calls = calls;
    wanted.suitsEngines = wanted.lacksWorkspace = true;
    wanted.own = copyingOf(problem);
    wanted.limitBytes = wanted.own->workspaceBytes / 100 * hundredths;
    return wanted;
  }

  /// What runs so.
  std::shared_ptr<const Plan> planned(const Problem& problem,
                                      std::size_t hundredths,
                                      CallKind calls) {
    Planner planner;
    const PlanRequest wanted = lacking(planner, problem, hundredths, calls);
    auto plan = call(planner, wanted).plan;
    EXPECT_TRUE(!plan || plan->workspaceBytes <= wanted.limitBytes);
    return plan;
  }

  /// The output of the plan, or of the client's own kernel. Its alignment is an engine's.
  std::vector<char> outputOf(const Problem& problem, const Plan* plan) {
    const Values values(problem);
    const auto onDevice = [](const std::vector<char>& from) {
      DeviceBuffer buffer(from.size());
      UCUDNN_CHECK_CUDA(cudaMemcpy(buffer.get(), from.data(), from.size(), cudaMemcpyHostToDevice));
      return buffer;
    };
    const DeviceBuffer w = onDevice(values.w);
    const bool isForward = problem.operation == Operation::kForward;
    const DeviceBuffer input = onDevice(isForward ? values.x : values.y);
    const std::size_t outputBytes = isForward ? problem.yBytes() : problem.xBytes();
    const DeviceBuffer memory(outputBytes + kEngineAlignment);
    UCUDNN_CHECK_CUDA(cudaMemset(memory.get(), 0xFF, memory.bytes()));  // NaN
    void* const output = static_cast<char*>(memory.get()) + kEngineAlignment;
    const OwnKernel own = copyingOf(problem);
    const std::size_t bytes = plan != nullptr ? plan->workspaceBytes : own.workspaceBytes;
    const DeviceBuffer workspace(bytes);
    ConvolutionCall call;
    call.pointers = {Factor::one(problem).get(),
                     Factor::zero(problem).get(),
                     isForward ? input.get() : output,
                     w.get(),
                     isForward ? output : input.get(),
                     workspace.get(),
                     bytes};
    const auto status = plan != nullptr
                            ? runPlan(handle_.get(), *plan, call).status
                            : buildKernel(handle_.get(), problem, nullptr, own.kernel, Calls::kAll)
                                  ->enqueue(handle_.get(), call.pointers, nullptr);
    EXPECT_EQ(status, CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<char> result(outputBytes);
    UCUDNN_CHECK_CUDA(cudaMemcpy(result.data(), output, outputBytes, cudaMemcpyDeviceToHost));
    return result;
  }

  static void expectRoom(const Plan& plan) {
    const WorkspaceRoom room{0, plan.problem.overwrittenSampleBytes()};
    int behind = plan.problem.batch();
    for (const Plan::Step& step : plan.steps) {
      behind -= step.count * step.batch;
      EXPECT_LE(step.outputCopyBytes, room.forCopy(behind)) << toText(plan);
      EXPECT_LE(step.workspaceBytes - step.outputCopyBytes, plan.workspaceBytes);
    }
    EXPECT_EQ(behind, 0);
  }

  static bool isSameInMoreParts(const Plan& plan, const Plan& parts) {
    return plan.microBatches() >= parts.microBatches() &&
           std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Plan::Step& step) {
             return step.kernel == parts.steps.front().kernel;
           });
  }

  static bool hasCopiesBehind(const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Plan::Step& step) {
      return step.outputCopyBytes > 0;
    });
  }
};

/// All but the last have theirs in the samples behind them, and compute what the own kernel does.
TEST_F(PlannerOutputCopiesTest, PartsAreFewerThanWithoutAndCompute) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  int found = 0;
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    const Problem problem = smallProblem(operation);
    const std::vector<char> right = outputOf(problem, nullptr);
    for (const std::size_t hundredths : {40, 32, 30, 28}) {
      SCOPED_TRACE(testing::Message() << toText(operation) << " " << hundredths);
      settings_.borrowOutput = false;
      const auto plain = planned(problem, hundredths, CallKind::kOverwriting);
      settings_.borrowOutput = true;
      const auto plan = planned(problem, hundredths, CallKind::kOverwriting);
      ASSERT_TRUE(plain && plan);
      EXPECT_FALSE(hasCopiesBehind(*plain));
      EXPECT_EQ(distance(outputOf(problem, plan.get()), right, problem.outputType()), 0);
      if (!hasCopiesBehind(*plan)) continue;
      ++found;
      EXPECT_LT(plan->microBatches(), plain->microBatches()) << toText(*plan);
      EXPECT_EQ(plan->of(CallKind::kAdding), nullptr);
      expectRoom(*plan);
      CheckedPlans checked;
      EXPECT_TRUE(checked.accepts(handle_.get(), *plan, plan->workspaceBytes));
      EXPECT_FALSE(checked.accepts(handle_.get(), *plan, plan->workspaceBytes - 1));
    }
  }
  EXPECT_LE(4, found);
}

/// A copy of half the output takes all of the other half. All sizes are even, so that their kernel
/// is checked once.
TEST_F(PlannerOutputCopiesTest, PartsAreHalvesOfTheBatch) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = smallProblem(Operation::kBackwardData);
  Planner planner;
  const auto plan = call(planner, lacking(planner, problem, 32)).plan;
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps.size(), 3U) << toText(*plan);
  EXPECT_EQ(plan->steps[0].batch, kBatch / 2) << toText(*plan);
  EXPECT_EQ(plan->steps[1].batch, kBatch / 4) << toText(*plan);
  EXPECT_EQ(plan->steps[2].batch, kBatch / 4) << toText(*plan);
  EXPECT_EQ(plan->steps[0].outputCopyBytes, problem.overwrittenSampleBytes() * kBatch / 2);
  EXPECT_EQ(planner.statistics().kernelsChecked, 1);
  EXPECT_EQ(
      distance(outputOf(problem, plan.get()), outputOf(problem, nullptr), problem.outputType()), 0);
}

/// 25 and 19 samples are kin, 23 and 20 are not.
TEST_F(PlannerOutputCopiesTest, KinOfOnePlanAreCheckedOnce) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  const Problem problem = smallProblem(Operation::kForward).withBatch(kBatch - 1);
  for (const auto& [hundredths, areKin] : {std::pair{33, true}, std::pair{34, false}}) {
    Planner planner;
    const auto plan = call(planner, lacking(planner, problem, hundredths)).plan;
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->steps.size(), 3U) << toText(*plan);
    EXPECT_NE(plan->steps[0].batch, plan->steps[1].batch) << toText(*plan);
    EXPECT_EQ((plan->steps[0].batch - plan->steps[1].batch) % 2 == 0, areKin) << toText(*plan);
    EXPECT_EQ(planner.statistics().kernelsChecked, areKin ? 1 : 2) << toText(*plan);
  }
}

/// A new shape waits for each question. The first kernel is found on a power of two of samples, and
/// not asked for again; sizes whose copies alone are beyond the limit aren't asked about.
TEST_F(PlannerOutputCopiesTest, CudnnIsAskedAboutFewSizesThatDoNotRun) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;
  const auto finalized = [] { return callCount("cudnnBackendFinalize"); };
  const Problem problem = smallProblem(Operation::kForward);
  int powers = 0;
  for (const std::size_t hundredths : {28, 32, 36, 48, 52}) {
    Planner planner;
    const PlanRequest wanted = lacking(planner, problem, hundredths);
    auto before = finalized();
    const auto plan = call(planner, wanted).plan;
    ASSERT_TRUE(plan);
    const auto all = finalized() - before;

    PreparedKernels prepared(handle_.get(), problem);
    before = finalized();
    for (const Plan::Step& step : plan->steps)
      prepared.build(step.batch, step.kernel, Calls::kOverwriting);
    const auto ofSizes = finalized() - before;
    const bool isPower = kBatch % plan->steps.front().batch == 0;
    powers += isPower ? 1 : 0;
    EXPECT_LE(all, ofSizes * (isPower ? 1 : 2)) << toText(*plan);
  }
  EXPECT_EQ(powers, 2);
}

/// Sizes that aren't asked about tell less of the next one to try. More parts than the known ones
/// would be too short to run.
TEST_F(PlannerOutputCopiesTest, NoMorePartsThanAKnownSizeMakes) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  Problem problem = problemOf(Operation::kForward);
  problem.xType = problem.wType = problem.yType = CUDNN_DATA_HALF;
  problem.xSizes = {kBatch, 3, 112, 112, 0};
  problem.xStrides = {3 * 112 * 112, 112 * 112, 112, 1, 0};
  problem.wSizes = {43, 3, 11, 11, 0};
  problem.ySizes = {kBatch, 43, 28, 28, 0};
  problem.yStrides = {43 * 784, 784, 28, 1, 0};
  problem.pads = {5, 5, 0};
  problem.strides = {4, 4, 1};
  Planner planner;
  PlanRequest wanted = lacking(planner, problem, 100);
  wanted.limitBytes = 2714943;
  const auto plan = call(planner, wanted).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->microBatches(), 4) << toText(*plan);
}

/// After a look. Else a measured plan would be slower than what ran before it. Times are random,
/// for the simulator's engines without workspace are faster than all parts.
TEST_F(PlannerOutputCopiesTest, TheyStayUnlessAMeasuredPlanIsFaster) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  setArithmetic(Arithmetic::kTimed);
  settings_.checkKernels = false;
  settings_.benchmarkShare = 1e6;  // measuring that is due is done, however slow the machine is
  settings_.backgroundPlanning = false;
  int kept = 0, replaced = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const std::size_t hundredths : {32, 28}) {
      setRandomTimes(seed);
      Planner planner;
      PlanRequest wanted = lacking(planner, smallProblem(Operation::kBackwardData), hundredths);
      const auto parts = call(planner, wanted).plan;
      if (!parts || !hasCopiesBehind(*parts)) continue;
      SCOPED_TRACE(toText(*parts));
      PlanAnswer found;
      wanted.callsSince = 100;
      for (int i = 0; i < 100000 && (measured(planner) == 0 || found.isOngoing); ++i)
        found = call(planner, wanted);
      ASSERT_TRUE(found.plan);
      const double ms = partsMs(*parts, planner.measurements(wanted, Measuring::kNever));
      EXPECT_GT(ms, 0);
      if (found.plan == parts) {
        ++kept;
        continue;
      }
      ++replaced;
      EXPECT_TRUE(found.plan->measured);
      EXPECT_LT(found.plan->predictedMs, ms) << toText(*found.plan);
      EXPECT_FALSE(isSameInMoreParts(*found.plan, *parts)) << toText(*found.plan);
    }
  setRandomTimes(0);
  EXPECT_LT(0, kept);
  EXPECT_LT(0, replaced);
}

/// One after another.
TEST_F(PlannerOutputCopiesTest, PartsOfOneSizeHaveTheirsInOnePlace) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;  // the CPU would compute all that is planned
  Problem problem = smallProblem(Operation::kForward);
  problem.xSizes = {kBatch, 256, 28, 28, 0};
  problem.xStrides = {256 * 784, 784, 28, 1, 0};
  problem.ySizes = {kBatch, 32, 28, 28, 0};
  problem.yStrides = {32 * 784, 784, 28, 1, 0};
  problem.wSizes = {32, 256, 3, 3, 0};
  std::shared_ptr<const Plan> found;
  for (std::size_t hundredths = 22; hundredths > 5 && !found; --hundredths) {
    auto plan = planned(problem, hundredths, CallKind::kOverwriting);
    if (plan && std::any_of(plan->steps.begin(), plan->steps.end(), [](const Plan::Step& step) {
          return step.count > 1 && step.outputCopyBytes > 0;
        }))
      found = std::move(plan);
  }
  ASSERT_TRUE(found);
  expectRoom(*found);
  EXPECT_EQ(
      distance(outputOf(problem, found.get()), outputOf(problem, nullptr), problem.outputType()),
      0);
}

/// A copy is rounded up to whole alignments, and to whole groups of channels.
TEST_F(PlannerOutputCopiesTest, RoundedCopiesHaveRoomToo) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  settings_.checkKernels = false;
  int found = 0;
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData})
    for (const auto& [batch, channels, side] : {std::array{200, 42, 5}, std::array{64, 13, 13}})
      for (std::size_t hundredths = 45; hundredths > 25; --hundredths) {
        Problem problem = smallProblem(operation);
        problem.xSizes = problem.ySizes = {batch, channels, side, side, 0};
        const std::int64_t plane = std::int64_t{side} * side;
        problem.xStrides = problem.yStrides = {channels * plane, plane, side, 1, 0};
        problem.wSizes = {channels, channels, 3, 3, 0};
        const auto plan = planned(problem, hundredths, CallKind::kOverwriting);
        if (!plan || !hasCopiesBehind(*plan)) continue;
        expectRoom(*plan);
        if (++found % 4 == 0) {
          EXPECT_EQ(
              distance(
                  outputOf(problem, plan.get()), outputOf(problem, nullptr), problem.outputType()),
              0)
              << toText(*plan);
        }
      }
  EXPECT_LE(8, found);
}

/// Their output's samples hold what they add to.
TEST_F(PlannerOutputCopiesTest, CallsThatAddHaveTheirsInTheWorkspace) {
  UCUDNN_SKIP_WITHOUT_BLOCK_COPIES();
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    const auto plan = planned(smallProblem(operation), 30, CallKind::kAdding);
    ASSERT_TRUE(plan);
    EXPECT_FALSE(hasCopiesBehind(*plan)) << toText(*plan);
    EXPECT_NE(plan->of(CallKind::kAdding), nullptr);
  }
}

}  // namespace
}  // namespace ucudnn::test
