// The cost of measuring for a whole program, in virtual time with the true cost of every call: one
// program whose shapes change all the time, and one whose shapes never do.
#include <gtest/gtest.h>

#include "../support/simulator.hpp"
#include "shapes.hpp"

namespace ucudnn::test {
namespace {

constexpr int kShapes = 2000;
// The first layer's calls are short: as many have to pay for measuring it.
constexpr int kIterations = 60000;

const std::map<std::string, std::string> kTrueCost{{"UCUDNN_SIMULATOR_MEASURING_COST", "1"}};

TEST(ProgramTest, ChangingShapesCostLittleMoreThanCudnn) {
  if (!onSimulator()) GTEST_SKIP() << "ucudnn_shapes_benchmark runs this on a GPU";
  const std::vector<Shape> shapes = randomShapes(kShapes, 1);
  const ProgramTimes plain = runProgramApart(Library::kPlain, shapes, 2, kTrueCost);
  const ProgramTimes ours = runProgramApart(Library::kOurs, shapes, 2, kTrueCost);
  ASSERT_EQ(2U, plain.passMs.size());
  ASSERT_EQ(2U, ours.passMs.size());
  EXPECT_LE(ours.passMs[0], 1.25 * plain.passMs[0]) << "first pass";
  EXPECT_LE(ours.passMs[1], 1.05 * plain.passMs[1]) << "second pass";
}

TEST(ProgramTest, FixedShapesEndWithThePlansOfMeasuringAtOnce) {
  if (!onSimulator()) GTEST_SKIP() << "needs the simulator's clock";
  auto atOnce = kTrueCost;
  atOnce["UCUDNN_BENCHMARK_SHARE"] = "always";
  const ProgramTimes best = runProgramApart(Library::kOurs, alexnetShapes(), kIterations, atOnce);
  auto inSlices = kTrueCost;
  inSlices["UCUDNN_BENCHMARK_SHARE"] = "0.3";  // 0.03 would take ten times as many iterations
  const ProgramTimes ours = runProgramApart(Library::kOurs, alexnetShapes(), kIterations, inSlices);
  // Plans show in the time of an iteration, to within the virtual clock's ticks.
  EXPECT_NEAR(best.passMs.back(), ours.passMs.back(), 1e-3 * best.passMs.back());
}

}  // namespace
}  // namespace ucudnn::test
