#include "optimizer/placement.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace ucudnn {
namespace {

PlacementProblem randomProblem(std::mt19937& random, std::size_t tensors) {
  PlacementProblem problem;
  const auto pick = [&](double most) {
    return std::uniform_real_distribution<>(0.01, most)(random);
  };
  double all = 0;
  for (std::size_t i = 0; i < tensors; ++i) {
    problem.tensorBytes.push_back(pick(100));
    all += problem.tensorBytes.back();
  }
  problem.deviceBytes = std::uniform_real_distribution<>(0, 1.1)(random) * all;
  problem.bytesPerMs = {pick(5), pick(5)};
  for (std::size_t i = 0; i < 2 * tensors; ++i) {
    PlacementProblem::Call call;
    call.kernelMs = pick(40);
    for (auto reads = random() % 3; reads > 0; --reads) call.reads.push_back(random() % tensors);
    if (random() % 2 == 0) call.writes.push_back(random() % tensors);
    problem.calls.push_back(call);
  }
  return problem;
}

/// Of all placements of whole tensors.
double bestMs(const PlacementProblem& problem) {
  const std::size_t tensors = problem.tensorBytes.size();
  double best = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 0; chosen < 1U << tensors; ++chosen) {
    std::vector<double> onDevice(tensors, 0);
    double bytes = 0;
    for (std::size_t i = 0; i < tensors; ++i)
      if ((chosen >> i & 1U) != 0) {
        onDevice[i] = 1;
        bytes += problem.tensorBytes[i];
      }
    if (bytes <= problem.deviceBytes) best = std::min(best, problem.ms(onDevice));
  }
  return best;
}

TEST(PlacementTest, NoPlacementBeatsTheBound) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const PlacementProblem problem = randomProblem(random, 1 + static_cast<std::size_t>(i % 10));
    const PlacementBound bound = boundPlacement(problem);
    EXPECT_LE(bound.leastMs, bestMs(problem) * (1 + 1e-12));
    EXPECT_LE(bound.leastMs, bound.foundMs * (1 + 1e-12));
    EXPECT_GT(bound.leastMs, 0.99 * bound.foundMs);
  }
}

TEST(PlacementTest, ATensorThatIsReadOftenStays) {
  PlacementProblem problem;
  problem.tensorBytes = {100, 100};
  problem.deviceBytes = 150;
  problem.bytesPerMs = {1, 1};
  problem.calls = {{1, {0}, {}}, {1, {1}, {}}, {1, {1}, {}}};
  // One byte of the other is copied beside each kernel.
  EXPECT_NEAR(49 + 1 + 1, boundPlacement(problem).leastMs, 0.01);
}

TEST(PlacementTest, KernelsAndCopiesHideEachOther) {
  PlacementProblem problem;
  problem.tensorBytes = {100, 100};
  problem.bytesPerMs = {1, 2};
  problem.calls = {{70, {0}, {1}}, {120, {0}, {}}};
  EXPECT_NEAR(100 + 120, boundPlacement(problem).leastMs, 0.05);
  problem.deviceBytes = 200;
  EXPECT_NEAR(70 + 120, boundPlacement(problem).leastMs, 0.05);
}

TEST(PlacementTest, NoCallsTakeNoTime) {
  EXPECT_EQ(0, boundPlacement({}).leastMs);
}

}  // namespace
}  // namespace ucudnn
