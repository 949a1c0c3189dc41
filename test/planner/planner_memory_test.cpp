// Planning while device memory is short.
#include <cuda_runtime_api.h>

#include "planner/planner.hpp"
#include "planner_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

// Memory for scratch tensors but not for the workspace of cuDNN's own choice, which the client may
// well have: a plan that is not compared with it could be slower.
TEST_F(PlannerTest, NoPlanIsMadeWithoutCudnnsOwnChoiceBesideIt) {
  const Problem problem = largeProblem();
  const std::size_t tensors = problem.xBytes() + problem.yBytes() + problem.wBytes();
  setMemory(0, tensors + 36 * kMebibyte);  // two thirds of the fastest kernel's workspace
  Planner planner;
  const PlanRequest wanted = request(planner, kUndividedLimit);
  EXPECT_FALSE(planner.plan(wanted));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the client must not see it";
}

TEST_F(PlannerTest, WhatMemoryWasShortForIsTriedAgainOnceThereIsSome) {
  Planner alone;
  const auto best = alone.plan(request(alone, kUndividedLimit));
  setMemory(0, 4096);
  Planner planner;
  const PlanRequest wanted = request(planner, kUndividedLimit);
  EXPECT_FALSE(planner.plan(wanted));
  setMemory(0, SIZE_MAX);
  constexpr std::chrono::seconds kHang{100};  // 0.1 s would do where nothing else runs
  const auto deadline = std::chrono::steady_clock::now() + kHang;
  std::shared_ptr<const Plan> plan;
  while (!plan && std::chrono::steady_clock::now() < deadline) plan = planner.plan(wanted);
  ASSERT_TRUE(plan && best);
  EXPECT_EQ(toText(*plan), toText(*best));
}

TEST_F(PlannerTest, TheCallersBuffersAreMemoryEnough) {
  const Problem problem = largeProblem();
  const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
  const DeviceBuffer workspace(kUndividedLimit);
  setMemory(0, 4096);
  Planner planner;
  PlanRequest wanted = request(planner, kUndividedLimit);
  EXPECT_FALSE(planner.plan(wanted));
  const TensorBuffers buffers{x.get(), w.get(), y.get(), workspace.get(), workspace.bytes()};
  wanted.buffers = &buffers;
  EXPECT_TRUE(planner.plan(wanted)) << "at once, not when it is time to try again";
}

// It is tried again from 0.1 s later on: on a busy machine so much may pass between two questions,
// but not each time.
TEST_F(PlannerTest, WithoutMemoryThereIsNoPlanAndThatIsRemembered) {
  setMemory(0, 4096);
  bool isRemembered = false;
  for (int attempt = 0; attempt < 20 && !isRemembered; ++attempt) {
    Planner planner;
    const PlanRequest wanted = request(planner, kUndividedLimit);
    EXPECT_FALSE(planner.plan(wanted));
    const auto calls = callCount();
    EXPECT_FALSE(planner.plan(wanted));
    isRemembered = callCount() == calls;
  }
  EXPECT_TRUE(isRemembered) << "a query costs microseconds from now on";
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(PlannerTest, NothingIsLeftOfABenchmark) {
  const auto live = liveHandles();
  const auto bytes = liveBytes();
  {
    Planner planner;
    planner.measurements(request(planner, kUndividedLimit));
    EXPECT_EQ(liveBytes(), bytes) << "scratch memory";
    EXPECT_EQ(liveHandles(), live);
  }
}

}  // namespace
}  // namespace ucudnn
