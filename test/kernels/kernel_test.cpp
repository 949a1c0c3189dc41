#include "kernels/algorithms.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/problems.hpp"

namespace ucudnn {
namespace {

struct AlgorithmSet {
  Operation operation;
  int count;
  std::set<int> nonDeterministic;  ///< cuDNN developer guide, "Reproducibility (Determinism)"
};

const AlgorithmSet kSets[] = {
    {Operation::kForward, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, {}},
    {Operation::kBackwardData,
     CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0}},
    {Operation::kBackwardFilter,
     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3}},
    {Operation::kBiasActivationForward, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, {}},
};

constexpr int kMathTypes[] = {CUDNN_DEFAULT_MATH,
                              CUDNN_TENSOR_OP_MATH,
                              CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
                              CUDNN_FMA_MATH};

TEST(KernelTest, EveryNameIsItsOwnAndComesBackAsTheKernel) {
  for (const AlgorithmSet& set : kSets) {
    SCOPED_TRACE(toText(set.operation));
    std::set<std::string> names;
    for (int algorithm = 0; algorithm < set.count; ++algorithm)
      for (const int mathType : kMathTypes) {
        const Kernel kernel{algorithm, mathType};
        const std::string name = toText(set.operation, kernel);
        EXPECT_TRUE(names.insert(name).second) << name;
        Problem problem = test::sampleProblem(set.operation, 2);
        problem.mathType = mathType;
        const auto parsed = parseKernel(problem, name);
        ASSERT_TRUE(parsed) << name;
        EXPECT_EQ(parsed->kernel, kernel) << name;
        EXPECT_EQ(parsed->deterministic, isDeterministic(set.operation, algorithm)) << name;
        EXPECT_EQ(parsed->accurate, isAccurate(problem, algorithm)) << name;
        problem.mathType = (mathType + 1) % 4;
        EXPECT_FALSE(parseKernel(problem, name)) << name << " is another math type's";
      }
  }
}

TEST(KernelTest, NamesAreCudnns) {
  const struct {
    Operation operation;
    Kernel kernel;
    const char* name;
  } kCases[] = {
      {Operation::kForward,
       {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_DEFAULT_MATH},
       "IMPLICIT_PRECOMP_GEMM/default"},
      {Operation::kForward,
       {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_FMA_MATH},
       "WINOGRAD_NONFUSED/fma"},
      {Operation::kBackwardData,
       {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, CUDNN_TENSOR_OP_MATH},
       "FFT_TILING/tensor"},
      {Operation::kBackwardFilter,
       {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION},
       "ALGO_3/tensor_conversion"},
      {Operation::kBackwardFilter,
       {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, CUDNN_DEFAULT_MATH},
       "FFT_TILING/default"},
      {Operation::kBiasActivationForward,
       {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_FMA_MATH},
       "FFT/fma"},
  };
  for (const auto& expected : kCases)
    EXPECT_EQ(toText(expected.operation, expected.kernel), expected.name);
}

TEST(KernelTest, TextThatNamesNoKernelIsRefused) {
  for (const char* text :
       {"", "FFT", "FFT/", "/fma", "fft/fma", "FFT/FMA", "FFT/fma ", "ALGO_0/fma"})  // backward's
    EXPECT_FALSE(parseKernel(test::sampleProblem(Operation::kForward, 2), text)) << text;
  EXPECT_FALSE(parseKernel(test::sampleProblem(Operation::kBackwardData, 2), "ALGO_3/fma"));
  EXPECT_FALSE(
      parseKernel(test::sampleProblem(Operation::kBackwardFilter, 2), "IMPLICIT_GEMM/fma"));
}

TEST(KernelTest, DeterminismIsAsCudnnDocumentsIt) {
  for (const AlgorithmSet& set : kSets)
    for (int algorithm = 0; algorithm < set.count; ++algorithm)
      EXPECT_EQ(isDeterministic(set.operation, algorithm),
                set.nonDeterministic.count(algorithm) == 0)
          << toText(set.operation) << " " << algorithm;
}

TEST(KernelTest, OnlyTheNonFusedWinogradOfLargeFiltersIsInaccurate) {
  const std::map<Operation, int> winograd = {
      {Operation::kForward, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED},
      {Operation::kBackwardData, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED},
      {Operation::kBackwardFilter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED},
      {Operation::kBiasActivationForward, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED}};
  for (const AlgorithmSet& set : kSets)
    for (const int size : {1, 3, 5}) {
      Problem problem = test::sampleProblem(set.operation, 2);
      problem.wSizes[2] = problem.wSizes[3] = size;
      for (int algorithm = -1; algorithm <= set.count; ++algorithm)
        EXPECT_EQ(isAccurate(problem, algorithm),
                  size <= 3 || algorithm != winograd.at(set.operation))
            << toText(set.operation) << " " << algorithm << " " << size;
    }
}

TEST(KernelTest, TransformsAreThoseOfTheNames) {
  for (const AlgorithmSet& set : kSets)
    for (int algorithm = -1; algorithm <= set.count; ++algorithm) {
      const std::string name = toText(set.operation, {algorithm, CUDNN_FMA_MATH});
      SCOPED_TRACE(std::string(toText(set.operation)) + " " + name);
      Problem problem = test::sampleProblem(set.operation, 2);
      problem.activation = CUDNN_ACTIVATION_RELU;
      EXPECT_TRUE(mayRun(problem, algorithm));
      const bool isKnown = algorithm >= 0 && algorithm < set.count;
      problem.transform = Transform::kFourier;
      EXPECT_EQ(isKnown && name.rfind("WINOGRAD", 0) != 0, mayRun(problem, algorithm));
      problem.transform = Transform::kNone;
      EXPECT_EQ(isKnown && name.rfind("WINOGRAD", 0) != 0 && name.rfind("FFT", 0) != 0,
                mayRun(problem, algorithm));
    }
}

// A call that names an algorithm of no known kind must not be given a plan that is less than
// deterministic.
TEST(KernelTest, AnUnknownAlgorithmCountsAsDeterministic) {
  for (const AlgorithmSet& set : kSets)
    for (const int algorithm : {-1, set.count, 1000})
      EXPECT_TRUE(isDeterministic(set.operation, algorithm)) << toText(set.operation);
}

}  // namespace
}  // namespace ucudnn
