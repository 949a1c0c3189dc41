// Errors of kernels, which are measured where they are asked for.
#include <cmath>
#include <functional>
#include <string>

#include "benchmark/exact_outputs.hpp"
#include "benchmark/random_values.hpp"
#include "benchmark_fixture.hpp"
#include "kernels/algorithms.hpp"
#include "problem/numbers.hpp"

namespace ucudnn::test {
namespace {

class ErrorsTest : public BenchmarkTest {
 protected:
  ErrorsTest() { arithmetic_ = Arithmetic::kFull; }
  void TearDown() override {
    setRounding(false);
    BenchmarkTest::TearDown();
  }

  static BenchmarkRequest question(const Problem& problem) {
    BenchmarkRequest request;
    request.problem = problem;
    request.sizes = powersUpTo(problem.batch());
    request.room.limitBytes = 256 * kMebibyte;
    request.errors = true;
    return request;
  }

  /// By the largest error of each kernel.
  std::map<std::string, double> errors(const BenchmarkRequest& request) {
    std::map<std::string, double> found;
    for (const auto& [kernel, known] : largestErrors(run(request).measurements))
      found[toText(request.problem.operation, kernel)] = known.error;
    return found;
  }
};

/// 5x5 filters, so that the non-fused Winograd is far off.
Problem largeFilter(Operation operation, int batch, cudnnMathType_t math = CUDNN_FMA_MATH) {
  Problem problem = sampleProblem(operation, batch, 4);
  problem.wSizes[2] = problem.wSizes[3] = 5;
  problem.pads = {2, 2, 0};
  problem.mathType = math;
  return problem;
}

void setNhwc(Problem& problem) {
  for (Problem::Strides* const strides : {&problem.xStrides, &problem.yStrides}) {
    const Problem::Sizes& sizes = strides == &problem.xStrides ? problem.xSizes : problem.ySizes;
    const std::int64_t pixel = sizes[1], row = pixel * sizes[3];
    *strides = {row * sizes[2], 1, row, pixel, 0};
  }
  problem.wFormat = CUDNN_TENSOR_NHWC;
}

Problem planar(Operation operation) {
  return sampleProblem(operation, 4, 8);
}

/// 9x8 to 4x3 outputs by filters of 3x2, padded in one dimension.
Problem strided(Operation operation) {
  Problem problem = planar(operation);
  problem.wSizes = {8, 8, 3, 2, 0};
  problem.pads = {1, 0, 0};
  problem.strides = {2, 3, 0};
  problem.dilations = {2, 1, 0};
  problem.ySizes = {4, 8, 4, 3, 0};
  problem.yStrides = {96, 12, 3, 1, 0};
  return problem;
}

Problem spatial(Operation operation) {
  Problem problem = planar(operation);
  problem.dimensions = 5;
  problem.xSizes = problem.ySizes = {4, 8, 3, 4, 5};
  problem.xStrides = problem.yStrides = {480, 60, 20, 5, 1};
  problem.wSizes = {8, 8, 3, 1, 3};
  problem.pads = {1, 0, 1};
  problem.strides = problem.dilations = {1, 1, 1};
  return problem;
}

// The simulator's arithmetic, which shares no code with what is tested, rounds an exact sum once.
TEST_F(ErrorsTest, AreThoseOfTheOutputsRoundingWhereKernelsAreExact) {
  const struct {
    const char* what;
    Problem (*make)(Operation);
    std::function<void(Problem&)> change;
    double least, most;
  } cases[] = {
      {"packed", planar, [](Problem&) {}, 1e-8, 6e-8},
      {"strided", strided, [](Problem&) {}, 1e-8, 6e-8},
      {"3-D", spatial, [](Problem&) {}, 1e-8, 6e-8},
      {"flipped", strided, [](Problem& p) { p.mode = CUDNN_CONVOLUTION; }, 1e-8, 6e-8},
      {"NHWC", planar, setNhwc, 1e-8, 6e-8},
      {"groups",
       planar,
       [](Problem& p) {
         p.groups = 2;
         p.wSizes[1] = 4;
       },
       1e-8,
       6e-8},
      {"gaps",
       planar,
       [](Problem& p) {
         p.xStrides = {1000, 120, 10, 1, 0};
         p.yStrides = {2000, 130, 12, 1, 0};
       },
       1e-8,
       6e-8},
      {"half",
       planar,
       [](Problem& p) { p.xType = p.wType = p.yType = CUDNN_DATA_HALF; },
       1e-4,
       5e-4},
      {"bfloat16",
       planar,
       [](Problem& p) { p.xType = p.wType = p.yType = CUDNN_DATA_BFLOAT16; },
       8e-4,
       4e-3},
      {"double",
       planar,
       [](Problem& p) { p.xType = p.wType = p.yType = p.computeType = CUDNN_DATA_DOUBLE; },
       0,
       1e-14},
  };
  for (const auto& c : cases)
    for (const Operation operation :
         {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter}) {
      Problem problem = c.make(operation);
      c.change(problem);
      BenchmarkRequest request = question(problem);
      request.sizes = {problem.batch()};
      const auto found = errors(request);
      EXPECT_FALSE(found.empty()) << c.what;
      for (const auto& [kernel, error] : found) {
        EXPECT_GE(error, c.least) << c.what << " " << toText(operation) << " " << kernel;
        EXPECT_LE(error, c.most) << c.what << " " << toText(operation) << " " << kernel;
      }
    }
}

TEST_F(ErrorsTest, AreThoseOfTheFusedOperation) {
  for (const cudnnActivationMode_t activation : {CUDNN_ACTIVATION_IDENTITY, CUDNN_ACTIVATION_RELU})
    for (const int addsZ : {0, 1})
      for (const Kernels kernels : {Kernels::kLegacy, Kernels::kEngines}) {
        Problem problem = planar(Operation::kBiasActivationForward);
        problem.activation = static_cast<std::int16_t>(activation);
        problem.addsZ = addsZ != 0 ? 1 : 0;
        BenchmarkRequest request = question(problem);
        request.kernels = kernels;
        request.sizes = {problem.batch()};
        const auto found = errors(request);
        EXPECT_FALSE(found.empty());
        for (const auto& [kernel, error] : found) EXPECT_LE(error, 6e-8) << kernel << " " << addsZ;
      }
  Problem problem = planar(Operation::kBiasActivationForward);
  problem.activation = CUDNN_ACTIVATION_TANH;
  EXPECT_FALSE(hasExactOutputs(problem));
}

TEST_F(ErrorsTest, TellKernelsApart) {
  setRounding(true);
  BenchmarkRequest request = question(largeFilter(Operation::kForward, 8));
  const auto fma = errors(request);
  EXPECT_NEAR(1e-3, fma.at("WINOGRAD_NONFUSED/fma"), 2e-4);
  EXPECT_NEAR(1e-7, fma.at("IMPLICIT_GEMM/fma"), 5e-8);
  EXPECT_NEAR(1e-6, fma.at("FFT_TILING/fma"), 2e-7);

  request.problem.mathType = CUDNN_DEFAULT_MATH;
  request.kernels = Kernels::kAll;
  int tensorCores = 0;
  for (const auto& [kernel, error] : errors(request))
    if (kernel.rfind("eng", 0) == 0 && error > 2e-4 && error < 4e-4) ++tensorCores;
  EXPECT_GT(tensorCores, 0) << "engines have errors too";
}

// At another batch size, and among others: by a factor of two at most.
TEST_F(ErrorsTest, RepeatWithinTwoTimes) {
  setRounding(true);
  for (const Operation operation : {Operation::kForward, Operation::kBackwardData}) {
    BenchmarkRequest request = question(largeFilter(operation, 16));
    const auto split = errors(request);
    request.sizes = {16};
    const auto undivided = errors(request);
    for (const auto& [kernel, error] : undivided) {
      EXPECT_LE(error, 2 * split.at(kernel)) << kernel;
      EXPECT_GE(error, split.at(kernel) / 2) << kernel;
    }
  }
}

TEST_F(ErrorsTest, AreMeasuredOnceForEachKernel) {
  BenchmarkRequest request = question(planar(Operation::kForward));
  request.errors = false;
  const auto calls = [&] {
    const auto before = callCount("cudnnConvolutionForward");
    run(request);
    return callCount("cudnnConvolutionForward") - before;
  };
  const auto without = calls();
  request.errors = true;
  const auto with = calls();
  EXPECT_EQ(with - without,
            static_cast<std::int64_t>(largestErrors(run(request).measurements).size()));
}

// A filter gradient adds up more samples in a larger batch, and rounds more often.
TEST_F(ErrorsTest, OfFilterGradientsAreMeasuredAtEachSize) {
  setRounding(true);
  const BenchmarkResult result = run(question(largeFilter(Operation::kBackwardFilter, 16)));
  std::map<int, double> gemm;
  for (const auto& [batch, size] : result.measurements)
    for (const Measurement& m : size.kernels)
      if (m.kernel.id == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING) gemm[batch] = m.error;
  ASSERT_EQ(1U, gemm.count(16));
  for (const auto& [batch, error] : gemm)
    EXPECT_NEAR(1e-6 * std::sqrt(batch), error, 3e-7 * std::sqrt(batch)) << batch;
}

// Measurements for another question keep their times, and their errors are found out once.
TEST_F(ErrorsTest, OfKnownKernelsAreFoundOut) {
  setRounding(true);
  BenchmarkRequest request = question(largeFilter(Operation::kForward, 8));
  request.errors = false;
  Measurements known = run(request).measurements;
  EXPECT_TRUE(largestErrors(known).empty());
  request.errors = true;
  request.known = &known;
  const BenchmarkResult first = run(request);
  std::set<Kernel> kernels;
  for (const auto& [batch, size] : known)
    for (const Measurement& m : size.kernels) kernels.insert(m.kernel);
  EXPECT_EQ(kernels.size(), largestErrors(first.measurements).size());

  addTo(known, first.measurements);
  EXPECT_EQ(0, run(request).kernelsMeasured);
  // Another question learns nothing of them.
  request.errors = false;
  EXPECT_EQ(0, run(request).kernelsMeasured);
}

TEST(ExactOutputsTest, AreOfTheWholeOutput) {
  const Problem problem = sampleProblem(Operation::kForward, 64, 16);
  const std::vector<ExactOutput> outputs = exactOutputs(problem);
  EXPECT_EQ(256U, outputs.size());
  std::set<std::size_t> samples, channels;
  for (const ExactOutput& output : outputs) {
    samples.insert(output.offset / static_cast<std::size_t>(problem.yStrides[0]));
    channels.insert(output.offset / 72 % 16);
  }
  EXPECT_EQ(64U, samples.size());
  EXPECT_EQ(16U, channels.size());
}

TEST(ExactOutputsTest, AreAllOfAFewOnce) {
  Problem problem = sampleProblem(Operation::kBackwardFilter, 4, 2);
  const std::vector<ExactOutput> outputs = exactOutputs(problem);
  std::set<std::size_t> places;
  for (const ExactOutput& output : outputs) places.insert(output.offset);
  EXPECT_EQ(36U, places.size());
  EXPECT_EQ(36U, outputs.size());
}

TEST(RandomValuesTest, AreKnownToTheHost) {
  for (const auto type :
       {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    const RandomValues values(RandomTensor::kX, type), others(RandomTensor::kW, type);
    const std::vector<double> block =
        toDoubles(randomBlockOf(type), kRandomBlockBytes / elementBytes(type), type);
    ASSERT_EQ(values.size(), block.size());
    const std::size_t first = firstRandomByte(RandomTensor::kX) / elementBytes(type);
    std::size_t same = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      ASSERT_EQ(values[i], block[(first + i) % block.size()]);
      ASSERT_GE(std::abs(values[i]), 0x1p-5);
      ASSERT_LE(std::abs(values[i]), 1);
      same += values[i] == others[i] ? 1 : 0;
    }
    EXPECT_LT(same, block.size() / 100) << "tensors begin at different ones";
  }
}

TEST(ExactOutputsTest, HaveADistance) {
  const std::vector<ExactOutput> exact{{0, 3}, {1, 4}};
  EXPECT_EQ(0, normalizedError(exact, {3, 4}));
  EXPECT_DOUBLE_EQ(0.2, normalizedError(exact, {3, 5}));
  for (const double wrong : {std::nan(""), HUGE_VAL, -1e300})
    EXPECT_EQ(kLargestError, normalizedError(exact, {3, wrong})) << "known to be of no use";
  EXPECT_EQ(kLargestError, normalizedError({{0, 0}}, {1}));
  EXPECT_EQ(0, normalizedError({{0, 0}}, {0}));
}

}  // namespace
}  // namespace ucudnn::test
