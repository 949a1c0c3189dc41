// A planner of a test's own, on the simulator: time is virtual, so plans are the same everywhere.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/planner.hpp"
#include "support/block_copies.hpp"
#include "support/problems.hpp"
#include "support/simulator.hpp"

namespace ucudnn::test {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
/// For largeProblem at a batch of 32, on the simulated H200: the fastest algorithm needs 55.5 MiB
/// for the mini-batch and 31.7 MiB for one half of it.
constexpr std::size_t kUndividedLimit = 64 * kMebibyte;
constexpr std::size_t kDividedLimit = 32 * kMebibyte;

/// AlexNet's second convolution, whose fast algorithms need workspace.
inline Problem largeProblem(Operation operation = Operation::kForward, int batch = 32) {
  constexpr int kImage = 27 * 27;
  Problem problem = sampleProblem(operation, batch, 64);
  problem.xSizes = {batch, 64, 27, 27, 0};
  problem.xStrides = {64 * kImage, kImage, 27, 1, 0};
  problem.ySizes = {batch, 192, 27, 27, 0};
  problem.yStrides = {192 * kImage, kImage, 27, 1, 0};
  problem.wSizes = {192, 64, 5, 5, 0};
  problem.pads = {2, 2, 0};
  return problem;
}

class PlannerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onSimulator()) GTEST_SKIP() << "needs the simulator's virtual time";
    setArithmetic(arithmetic_);
    if (arithmetic_ == Arithmetic::kOff) expectNoBlockCopies();
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }
  void TearDown() override {
    setArithmetic(Arithmetic::kFull);
    setMemory(0, SIZE_MAX);  // no limit but the device's own
  }

  PlanRequest request(Planner& planner,
                      std::size_t limitBytes,
                      const Problem& problem = largeProblem()) const {
    PlanRequest request;
    request.handle = handle_.get();
    request.machine = planner.machines().ofDevice(0);
    request.problem = problem;
    request.limitBytes = limitBytes;
    request.settings = &settings_;
    request.benchmarkDevices = &noDevices_;
    return request;
  }

  static long long measured(Planner& planner) { return planner.statistics().kernelsMeasured; }

  Arithmetic arithmetic_ = Arithmetic::kOff;
  Settings settings_;
  std::vector<int> noDevices_;
  CudnnHandle handle_;
};

/// Expectations of any plan, whatever the problem.
inline void expectValid(const Plan& plan, const PlanRequest& request) {
  EXPECT_EQ(plan.problem, request.problem);
  EXPECT_LE(plan.workspaceBytes, request.limitBytes);
  EXPECT_LE(plan.algorithmBytes, request.limitBytes);
  int samples = 0;
  std::size_t largest = 0;
  for (const Plan::Step& step : plan.steps) {
    samples += step.batch * step.count;
    largest = std::max(largest, step.workspaceBytes);
  }
  EXPECT_EQ(samples, request.problem.batch());
  for (const auto& other : {plan.enqueued, plan.general})
    if (other) largest = std::max(largest, other->workspaceBytes);
  EXPECT_EQ(plan.workspaceBytes, largest);
}

}  // namespace ucudnn::test
