// Kernels that compute a tile at a time, against the same kernels undivided: on the simulator, and
// on a GPU.
#include "kernels/tiles.hpp"

#include <string>
#include <vector>

#include "device_kernels.hpp"
#include "support/operations.hpp"

namespace ucudnn {
namespace {

using namespace test;

struct TileCase {
  std::string name;
  Problem problem;  ///< of the forward operation
};

std::ostream& operator<<(std::ostream& stream, const TileCase& tested) {
  return stream << tested.name;
}

std::vector<TileCase> tileCases() {
  std::vector<TileCase> cases;
  const auto add = [&](const char* name, cudnnDataType_t type, auto change) {
    Problem problem = sampleProblem(Operation::kForward, 3, 8, type);
    problem.mathType = CUDNN_DEFAULT_MATH;
    change(problem);
    cases.push_back({name, problem});
  };
  using P = Problem&;
  // With eight tiles each has three filters.
  add("Float", CUDNN_DATA_FLOAT, [](P p) { setSizes(p, 7, 24, false); });
  add("Double", CUDNN_DATA_DOUBLE, [](P p) { setSizes(p, 7, 24, false); });
  add("Half", CUDNN_DATA_HALF, [](P p) { setSizes(p, 8, 32, false); });
  add("Nhwc", CUDNN_DATA_FLOAT, [](P p) { setSizes(p, 8, 32, true); });
  add("HalfNhwc", CUDNN_DATA_HALF, [](P p) { setSizes(p, 8, 64, true); });
  add("Fma", CUDNN_DATA_FLOAT, [](P p) {
    p.mathType = CUDNN_FMA_MATH;
    setSizes(p, 7, 24, false);
  });
  add("Groups", CUDNN_DATA_FLOAT, [](P p) { p.groups = 8, setSizes(p, 32, 24, false); });
  add("GroupsNhwc", CUDNN_DATA_FLOAT, [](P p) { p.groups = 8, setSizes(p, 32, 64, true); });
  add("GroupsHalf", CUDNN_DATA_HALF, [](P p) { p.groups = 16, setSizes(p, 64, 64, false); });
  add("GapsBetweenSamples", CUDNN_DATA_FLOAT, [](P p) { setSizes(p, 7, 24, false, 20); });
  add("StrideTwo", CUDNN_DATA_FLOAT, [](P p) {
    p.strides = {2, 2};
    p.ySizes = {3, 0, 5, 4};
    setSizes(p, 7, 24, false);
  });
  add("Volume", CUDNN_DATA_FLOAT, [](P p) {
    p.dimensions = 5;
    p.xSizes = p.ySizes = {3, 0, 4, 5, 4};
    p.wSizes = {0, 0, 3, 3, 3};
    p.pads = p.strides = p.dilations = {1, 1, 1};
    setSizes(p, 7, 24, false);
  });
  return cases;
}

class TilesTest : public DeviceKernelsTest {
 protected:
  /// An engine's offer for the problem in so many tiles.
  std::optional<KernelOffer> offer(const Problem& problem, EngineConfiguration value, int tiles) {
    value.tiles = tiles;
    return offerOf(problem, value);
  }
};

class TileNumericsTest : public TilesTest, public ::testing::WithParamInterface<TileCase> {};

TEST_P(TileNumericsTest, TheyAreTheUndividedResult) {
  for (const Operation operation : kOperations) {
    Problem problem = GetParam().problem;
    problem.operation = operation;
    const bool addsUpInHalf = operation == Operation::kBackwardData && problem.groups == 1 &&
                              problem.xType == CUDNN_DATA_HALF;
    int compared = 0;
    for (const EngineConfiguration& value : engines(problem)) {
      const auto undivided = offer(problem, value, 1);
      ASSERT_TRUE(undivided);
      for (const bool adds : {false, true}) {
        const std::vector<char> expected = run(problem, *undivided, adds);
        for (const int tiles : {2, 4, 8}) {
          const auto tiled = offer(problem, value, tiles);
          if (!tiled) continue;
          SCOPED_TRACE(std::string(toText(operation)) + " " + toText(operation, tiled->kernel) +
                       (adds ? " adds" : ""));
          ++compared;
          EXPECT_FALSE(tiled->anyCall);
          EXPECT_EQ(tiled->deterministic, undivided->deterministic);
          // Exact, but for transforms.
          EXPECT_LE(distance(run(problem, *tiled, adds), expected, problem.outputType()), 1e-3);
        }
      }
    }
    EXPECT_EQ(compared == 0, addsUpInHalf) << toText(operation);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         TileNumericsTest,
                         ::testing::ValuesIn(tileCases()),
                         [](const auto& test) { return test.param.name; });

TEST_F(TilesTest, FiltersThatCannotBeCutAreRefused) {
  const auto refused = [&](int filters, int tiles, int groups, bool isNhwc) {
    Problem problem = sampleProblem(Operation::kForward, 3, 8);
    problem.mathType = CUDNN_DEFAULT_MATH;
    problem.groups = groups;
    setSizes(problem, 12, filters, isNhwc);
    const auto all = engines(problem);
    ASSERT_FALSE(all.empty());
    EngineConfiguration value = all.front();
    EXPECT_FALSE(offer(problem, value, tiles)) << filters << " in " << tiles;
    value.tiles = tiles;
    EXPECT_THROW(build(problem, {idOf(value), problem.mathType, kEngines}), Error);
  };
  refused(7, 2, 1, false);
  refused(12, 8, 1, false);
  refused(24, 8, 12, false);  // groups stay whole
  refused(24, 4, 1, true);    // six filters of four bytes: 24 is no multiple of 16
}

TEST_F(TilesTest, BiasAndActivationHaveNone) {
  const Problem problem = sampleProblem(Operation::kForward, 3, 8);
  Problem fused = problem;
  fused.operation = Operation::kBiasActivationForward;
  EXPECT_EQ(cutInTiles(problem, 2).size(), 2U);
  EXPECT_TRUE(cutInTiles(fused, 2).empty());
}

TEST_F(TilesTest, OtherFactorsAreRefusedAndChangeNothing) {
  Problem problem = sampleProblem(Operation::kForward, 3, 8);
  problem.mathType = CUDNN_DEFAULT_MATH;
  const auto tiled = offer(problem, engines(problem).front(), 2);
  ASSERT_TRUE(tiled);
  const auto kernel = build(problem, tiled->kernel);
  const DeviceBuffer data(std::max(problem.xBytes(), problem.wBytes()));
  const DeviceBuffer y(problem.yBytes()), workspace(tiled->workspaceBytes);
  UCUDNN_CHECK_CUDA(cudaMemset(y.get(), 0xFF, y.bytes()));
  const float one = 1, half = 0.5F;
  for (const bool isBeta : {false, true})
    EXPECT_EQ(kernel->enqueue(handle_.get(),
                              {isBeta ? &one : &half,
                               isBeta ? &half : &one,
                               data.get(),
                               data.get(),
                               y.get(),
                               workspace.get(),
                               workspace.bytes()},
                              nullptr),
              CUDNN_STATUS_NOT_SUPPORTED);
  std::vector<unsigned char> bytes(y.bytes());
  UCUDNN_CHECK_CUDA(cudaMemcpy(bytes.data(), y.get(), y.bytes(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(bytes, std::vector<unsigned char>(y.bytes(), 0xFF));
}

}  // namespace
}  // namespace ucudnn
