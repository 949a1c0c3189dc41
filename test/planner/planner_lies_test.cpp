// False statements in a database.
#include <string>

#include "changed_database.hpp"
#include "planner/confirmation.hpp"
#include "planner_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

using namespace test;

class PlannerLiesTest : public PlannerTest {
 protected:
  void SetUp() override {
    PlannerTest::SetUp();
    settings_.databasePath = directory_.file("ucudnn.db");
  }
  void lie(const std::string& statement) const {
    changeDatabase(settings_.databasePath, statement);
  }
  void expectConfirmed(const Plan& plan) const;

  TemporaryDirectory directory_;
};

/// Each step's workspace and determinism as cuDNN itself says.
void PlannerLiesTest::expectConfirmed(const Plan& plan) const {
  for (const Plan::Step& step : plan.steps) {
    const Problem part = plan.problem.withBatch(step.batch);
    const auto offer = offeredKernel(
        handle_.get(), part, std::make_shared<const ProblemDescriptors>(part), step.kernel);
    ASSERT_TRUE(offer) << toText(plan);
    EXPECT_EQ(step.workspaceBytes, offer->workspaceBytes) << toText(plan);
    EXPECT_EQ(step.deterministic, offer->deterministic) << toText(plan);
    EXPECT_EQ(step.kernel.mathType, plan.problem.mathType) << toText(plan);
  }
}

/// The question's own call fails, or one of a descriptor's, which throws.
TEST_F(PlannerLiesTest, AKernelThatCantBeAskedAboutIsNoLie) {
  const Problem problem = largeProblem();
  const auto descriptors = std::make_shared<const ProblemDescriptors>(problem);
  const auto offers = offeredKernels(handle_.get(), problem, descriptors->get(), false);
  ASSERT_FALSE(offers.empty());
  int unanswered = 0;
  for (int n = 1; n <= 20; ++n) {
    PreparedKernels prepared(handle_.get(), problem);
    SizeMeasurements size;
    size.kernels.push_back({offers.front(), {1, 1}, false, true});
    int failures = 0;
    failCall(n);
    try {
      const auto confirmation = confirm(
          prepared, problem.batch(), {offers.front().kernel}, Calls::kAll, {}, size, &failures);
      EXPECT_EQ(confirmation, failures > 0 ? Confirmation::kOtherwise : Confirmation::kAsAssumed);
      EXPECT_EQ(size.kernels.size(), failures > 0 ? 0U : 1U) << "it can't be planned with";
      unanswered += failures;
    } catch (const Error&) {
    }
    failCall(0);
  }
  EXPECT_EQ(unanswered, 1);
}

TEST_F(PlannerLiesTest, WorkspaceIsAskedOfCudnn) {
  for (const char* bytes : {"0", "512", "9223372036854775807", "workspace_bytes / 2"})
    for (const std::size_t limit : {std::size_t{0}, kMebibyte, kDividedLimit, kUndividedLimit}) {
      SCOPED_TRACE(std::string(bytes) + " within " + std::to_string(limit));
      std::filesystem::remove(settings_.databasePath);
      std::string expected;
      {
        Planner planner;
        expected = toText(*planner.plan(request(planner, limit)));
      }
      lie(std::string("UPDATE measurement SET workspace_bytes = ") + bytes);
      Planner planner;
      const auto plan = planner.plan(request(planner, limit));
      ASSERT_TRUE(plan);
      expectValid(*plan, request(planner, limit));
      expectConfirmed(*plan);
      for (const Configuration& point : planner.front(request(planner, limit)))
        EXPECT_LE(point.workspaceBytes, limit);
      for (const Measurement& m : planner.undivided(request(planner, limit)))
        EXPECT_LE(m.workspaceBytes, limit);
      const bool looksBetter = bytes[0] != '9';
      EXPECT_TRUE(!looksBetter || toText(*plan) == expected) << toText(*plan);
    }
}

TEST_F(PlannerLiesTest, DeterminismIsAskedOfTheAlgorithm) {
  const Problem problem = largeProblem(Operation::kBackwardFilter);
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit, problem));
  }
  lie("UPDATE measurement SET deterministic = 1, time_ms = CASE WHEN kernel LIKE 'ALGO_0/%' OR "
      "kernel LIKE 'ALGO_3/%' THEN 0.02 ELSE 20 END, device_ms = 0.02");
  Planner planner;
  PlanRequest wanted = request(planner, kUndividedLimit, problem);
  EXPECT_FALSE(planner.plan(wanted)->isDeterministic());
  wanted.deterministic = true;
  const auto plan = planner.plan(wanted);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->isDeterministic());
  expectConfirmed(*plan);
}

TEST_F(PlannerLiesTest, AKernelOfAnotherMathTypeIsMeasuredAsItsOwn) {
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit));
  }
  ASSERT_EQ(largeProblem().mathType, CUDNN_FMA_MATH);
  lie("UPDATE measurement SET kernel = replace(kernel, '/fma', '/default')");
  Planner planner;
  const auto plan = planner.plan(request(planner, kUndividedLimit));
  ASSERT_TRUE(plan);
  expectConfirmed(*plan);
  EXPECT_GT(measured(planner), 0);
}

TEST_F(PlannerLiesTest, AKernelThatCudnnDoesNotHaveIsNotPlanned) {
  Problem strided = largeProblem();  // cuDNN has no FFT for it
  strided.strides = {2, 2, 0};
  strided.ySizes = {32, 192, 14, 14, 0};
  strided.yStrides = {192 * 196, 196, 14, 1, 0};
  {
    Planner planner;
    planner.plan(request(planner, kUndividedLimit, strided));
  }
  lie("INSERT INTO measurement SELECT id, 'FFT/fma', 0.01, 0, 1, 0.01, measured_at FROM size "
      "WHERE covered_bytes = 0");
  Planner planner;
  const auto plan = planner.plan(request(planner, kUndividedLimit, strided));
  ASSERT_TRUE(plan);
  expectValid(*plan, request(planner, kUndividedLimit, strided));
  expectConfirmed(*plan);
}

TEST_F(PlannerLiesTest, ATimeThatCantBeIsMeasuredAgainAndReplaced) {
  std::string expected;
  {
    Planner planner;
    expected = toText(*planner.plan(request(planner, kDividedLimit)));
  }
  lie("UPDATE measurement SET time_ms = 1e-30 WHERE kernel LIKE 'IMPLICIT_GEMM/%'");
  for (const bool isReplaced : {false, true}) {
    Planner planner;
    const auto plan = planner.plan(request(planner, kDividedLimit));
    ASSERT_TRUE(plan);
    EXPECT_EQ(toText(*plan), expected);
    EXPECT_EQ(measured(planner) == 0, isReplaced);
  }
}

// It keeps the inaccurate kernel out, whoever asks.
TEST_F(PlannerLiesTest, ALieAboutTheRankingCostsTimeAlone) {
  Planner first;
  const auto truth = first.plan(request(first, kDividedLimit));
  ASSERT_TRUE(truth);
  ASSERT_FALSE(truth->steps.front().accurate);
  lie("INSERT INTO problem (text) SELECT text || ' accurate' FROM problem"
      " WHERE text NOT LIKE '% asked %';"
      "INSERT INTO size (machine_id, problem_id, batch, covered_bytes, measured_at)"
      " SELECT machine_id, (SELECT max(id) FROM problem), 32, 0, 0 FROM size LIMIT 1");
  Planner planner;
  const TensorBuffers buffers{};
  PlanRequest wanted = request(planner, kDividedLimit);
  wanted.buffers = &buffers;
  const auto plan = planner.plan(wanted);
  ASSERT_TRUE(plan);
  expectConfirmed(*plan);
  for (const Plan::Step& step : plan->steps) EXPECT_TRUE(step.accurate);
  EXPECT_GT(plan->predictedMs, truth->predictedMs);
  wanted.buffers = nullptr;
  wanted.deterministic = true;
  EXPECT_EQ(toText(*planner.plan(wanted)), toText(*plan));
  EXPECT_EQ(measured(planner), 0);
}

}  // namespace
}  // namespace ucudnn
