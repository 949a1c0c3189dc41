// Kernels that compute a tile at a time, against the same kernels undivided: on the simulator, and
// on a GPU.
#include "kernels/tiles.hpp"

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "kernels/factor.hpp"
#include "support/problems.hpp"
#include "support/simulator.hpp"

namespace ucudnn {
namespace {

using test::sampleProblem;

constexpr Operation kOperations[] = {
    Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter};

/// With sizes, strides and filters as they are packed; `gap` elements between samples besides.
void setSizes(Problem& p, int channels, int filters, bool isNhwc, int gap = 0) {
  const auto spatial = static_cast<std::size_t>(p.dimensions);
  const auto pack = [&](Problem::Sizes& sizes, Problem::Sizes& strides, int count) {
    sizes[1] = count;
    int stride = isNhwc ? count : 1;
    for (std::size_t d = spatial - 1; d >= 2; --d) {
      strides[d] = stride;
      stride *= sizes[d];
    }
    strides[1] = isNhwc ? 1 : stride;
    strides[0] = (isNhwc ? stride : stride * count) + gap;
  };
  pack(p.xSizes, p.xStrides, channels);
  pack(p.ySizes, p.yStrides, filters);
  p.wSizes[0] = filters;
  p.wSizes[1] = channels / p.groups;
  p.wFormat = isNhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

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
  // Of eight tiles each has three filters.
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

/// Small integers: the sums are exact whatever their order.
std::vector<char> integers(std::size_t bytes, std::int32_t type, unsigned seed) {
  std::vector<char> values(bytes);
  std::mt19937 random(seed);
  const std::size_t step = elementBytes(type);
  for (std::size_t i = 0; i + step <= bytes; i += step) {
    const auto number = static_cast<float>(static_cast<int>(random() % 5) - 2);
    const __half half = __float2half(number);
    const double wide = number;
    const void* const from = type == CUDNN_DATA_HALF     ? static_cast<const void*>(&half)
                             : type == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&wide)
                                                         : static_cast<const void*>(&number);
    std::memcpy(values.data() + i, from, step);
  }
  return values;
}

double numberAt(const std::vector<char>& values, std::size_t i, std::int32_t type) {
  const char* const from = values.data() + i * elementBytes(type);
  if (type == CUDNN_DATA_HALF) {
    __half half;
    std::memcpy(&half, from, sizeof half);
    return static_cast<double>(__half2float(half));
  }
  if (type == CUDNN_DATA_DOUBLE) {
    double wide;
    std::memcpy(&wide, from, sizeof wide);
    return wide;
  }
  float number;
  std::memcpy(&number, from, sizeof number);
  return static_cast<double>(number);
}

/// Normalized L2; infinite where only one has written an element.
double distance(const std::vector<char>& a, const std::vector<char>& b, std::int32_t type) {
  double difference = 0;
  double norm = 1e-30;
  for (std::size_t i = 0; i < a.size() / elementBytes(type); ++i) {
    const double x = numberAt(a, i, type);
    const double y = numberAt(b, i, type);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::isnan(x) || std::isnan(y)) return HUGE_VAL;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

class TilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no device";
    handle_ = makeOwned<CudnnHandle>(cudnnCreate);
  }

  /// What an engine offers for the problem in so many tiles.
  std::optional<KernelOffer> offer(const Problem& problem, EngineConfiguration value, int tiles) {
    value.tiles = tiles;
    const auto parsed = parseKernel(problem, toText(value));
    if (!parsed) return std::nullopt;
    int failures = 0;
    const auto found = offeredKernel(handle_.get(),
                                     problem,
                                     std::make_shared<const ProblemDescriptors>(problem),
                                     parsed->kernel,
                                     &failures);
    EXPECT_EQ(failures, 0) << toText(value);
    return found;
  }

  /// The engines that the problem has, undivided.
  std::vector<EngineConfiguration> engines(const Problem& problem) {
    std::vector<EngineConfiguration> all;
    for (const KernelOffer& offer :
         offeredKernels(handle_.get(), problem, ProblemDescriptors(problem).get(), true))
      if (offer.kernel.source == kEngines) all.push_back(engineConfigurationOf(offer.kernel.id));
    return all;
  }

  std::shared_ptr<const BuiltKernel> build(const Problem& problem, Kernel kernel) {
    return buildKernel(
        handle_.get(), problem, std::make_shared<const ProblemDescriptors>(problem), kernel);
  }

  /// The output, in a buffer that has NaN everywhere unless it is added to.
  std::vector<char> run(const Problem& problem, const KernelOffer& offer, bool adds) {
    const auto kernel = build(problem, offer.kernel);
    std::size_t bytes = 0;
    EXPECT_EQ(kernel->workspaceSize(handle_.get(), &bytes), CUDNN_STATUS_SUCCESS);
    EXPECT_LE(bytes, offer.workspaceBytes);
    const DeviceBuffer x(problem.xBytes()), w(problem.wBytes()), y(problem.yBytes());
    const DeviceBuffer workspace(bytes);
    const auto copyTo = [](const DeviceBuffer& buffer, const std::vector<char>& from) {
      UCUDNN_CHECK_CUDA(
          cudaMemcpy(buffer.get(), from.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    };
    copyTo(x, integers(x.bytes(), problem.xType, 1));
    copyTo(w, integers(w.bytes(), problem.wType, 2));
    copyTo(y, integers(y.bytes(), problem.yType, 3));
    const DeviceBuffer& output = problem.operation == Operation::kForward        ? y
                                 : problem.operation == Operation::kBackwardData ? x
                                                                                 : w;
    if (!adds) UCUDNN_CHECK_CUDA(cudaMemset(output.get(), 0xFF, output.bytes()));
    const Factor& beta = adds ? Factor::one(problem) : Factor::zero(problem);
    EXPECT_EQ(kernel->enqueue(handle_.get(),
                              {Factor::one(problem).get(),
                               beta.get(),
                               x.get(),
                               w.get(),
                               y.get(),
                               workspace.get(),
                               bytes},
                              nullptr),
              CUDNN_STATUS_SUCCESS);
    UCUDNN_CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<char> result(output.bytes());
    UCUDNN_CHECK_CUDA(
        cudaMemcpy(result.data(), output.get(), output.bytes(), cudaMemcpyDeviceToHost));
    return result;
  }

  CudnnHandle handle_;
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
  EXPECT_TRUE(Tiling::exists(problem, 2, 16));
  EXPECT_FALSE(Tiling::exists(fused, 2, 16));
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
