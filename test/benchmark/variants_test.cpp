// Kernels that no heuristic proposes: variants of the fastest.
#include "benchmark_fixture.hpp"
#include "kernels/engines.hpp"

namespace ucudnn::test {
namespace {

class VariantsTest : public BenchmarkTest {
 protected:
  static BenchmarkRequest withEngines(int batch, std::size_t limitBytes) {
    BenchmarkRequest request = question(batch, limitBytes);
    request.problem.mathType = CUDNN_DEFAULT_MATH;
    request.kernels = Kernels::kAll;
    request.tuning = Tuning::kFast;
    return request;
  }

  /// cuDNN's offers at any of the sizes.
  std::set<Kernel> offered(const BenchmarkRequest& request) {
    std::set<Kernel> kernels;
    for (const int batch : request.sizes) {
      const Problem problem = request.problem.withBatch(batch);
      const ProblemDescriptors descriptors(problem);
      for (const auto& offer : offeredKernels(handle_.get(), problem, descriptors.get(), true))
        kernels.insert(offer.kernel);
    }
    return kernels;
  }

  /// Measured, but offered nowhere; by batch size.
  std::vector<std::pair<int, Measurement>> variants(const BenchmarkRequest& request,
                                                    const Measurements& measured) {
    const std::set<Kernel> proposed = offered(request);
    std::vector<std::pair<int, Measurement>> found;
    for (const auto& [batch, size] : measured)
      for (const Measurement& m : size.kernels)
        if (proposed.count(m.kernel) == 0) found.emplace_back(batch, m);
    return found;
  }

  void dropVariants(const BenchmarkRequest& request, std::vector<Measurement>& kernels) {
    const std::set<Kernel> proposed = offered(request);
    const auto isVariant = [&](const Measurement& m) { return proposed.count(m.kernel) == 0; };
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isVariant), kernels.end());
  }
};

TEST_F(VariantsTest, SomeAreFasterThanAllThatIsOffered) {
  int faster = 0;
  for (const Operation operation :
       {Operation::kForward, Operation::kBackwardData, Operation::kBackwardFilter})
    for (const std::size_t limit : {8 * kMebibyte, 64 * kMebibyte}) {
      BenchmarkRequest request = withEngines(64, limit);
      request.problem = conv2(64, operation);
      request.problem.mathType = CUDNN_DEFAULT_MATH;
      const BenchmarkResult result = run(request);
      EXPECT_EQ(Untried::kNone, result.untried);
      EXPECT_EQ(0, result.failures);
      std::size_t measured = 0;
      for (const auto& [batch, size] : result.measurements) measured += size.kernels.size();
      EXPECT_EQ(result.kernelsMeasured, static_cast<long long>(measured));
      for (const auto& [batch, variant] : variants(request, result.measurements)) {
        EXPECT_LE(variant.workspaceBytes, limit);
        const auto& rivals = result.measurements.at(batch).kernels;
        if (fastestOf(rivals)->kernel == variant.kernel) ++faster;
      }
    }
  EXPECT_LT(0, faster);
}

// The fallback's engine without choices is the fastest, and of the kind that has variants.
TEST_F(VariantsTest, WhatHasNoneStandsInTheWayOfNoOther) {
  BenchmarkRequest request = withEngines(32, 0);
  request.problem = sampleProblem(Operation::kBackwardFilter, 32, 56);
  const BenchmarkResult result = run(request);
  std::vector<Measurement> undivided = result.measurements.at(32).kernels;
  const Kernel variant = fastestOf(undivided)->kernel;
  EXPECT_EQ(0U, offered(request).count(variant)) << toText(Operation::kBackwardFilter, variant);
  dropVariants(request, undivided);
  const Kernel proposed = fastestOf(undivided)->kernel;
  EXPECT_TRUE(kindOf(proposed) == kindOf(variant));
  EXPECT_TRUE(variantsOf(handle_.get(), request.problem, proposed).empty());
}

TEST_F(VariantsTest, WhatAnotherQuestionHasFoundIsFoundAgain) {
  const BenchmarkRequest alone = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult cold = run(alone);
  ASSERT_FALSE(variants(alone, cold.measurements).empty());
  const BenchmarkResult other = run(withEngines(48, 64 * kMebibyte));
  BenchmarkRequest after = alone;
  after.known = &other.measurements;
  Measurements known = other.measurements;
  addTo(known, run(after).measurements);
  for (const auto& [batch, variant] : variants(alone, cold.measurements))
    EXPECT_TRUE(kernelsOf(known).count({batch, variant.kernel.id}))
        << batch << ' ' << toText(Operation::kForward, variant.kernel);
}

TEST_F(VariantsTest, NoneIsTriedWhereNothingIsMeasured) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult first = run(request);
  request.known = &first.measurements;
  runUntouched(request);
}

TEST_F(VariantsTest, AlgorithmsHaveNone) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  request.kernels = Kernels::kLegacy;
  const BenchmarkResult result = run(request);
  EXPECT_TRUE(variants(request, result.measurements).empty());
  for (const Measurement& m : result.measurements.at(64).kernels) {
    EXPECT_TRUE(variantsOf(handle_.get(), request.problem, m.kernel).empty());
    EXPECT_TRUE(kindOf(m.kernel) == m.kernel);
  }
}

TEST_F(VariantsTest, DeterministicKernelsHaveDeterministicOnesInTheirPlace) {
  for (const std::size_t limit : {std::size_t{0}, 8 * kMebibyte}) {
    BenchmarkRequest request = withEngines(64, limit);
    request.problem = conv2(64, Operation::kBackwardFilter);
    request.problem.mathType = CUDNN_DEFAULT_MATH;
    const BenchmarkResult result = run(request);
    for (const auto& [batch, variant] : variants(request, result.measurements)) {
      const Kernel kind = kindOf(variant.kernel);
      for (const Measurement& m : result.measurements.at(batch).kernels)
        EXPECT_TRUE(!(kindOf(m.kernel) == kind) || m.deterministic == variant.deterministic);
    }
  }
}

// A measurement for a question without errors says too little for one with them.
TEST_F(VariantsTest, KnownOnesWithoutAnErrorAreFoundAgainWithIt) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult without = run(request);
  request.errors = true;
  const BenchmarkResult alone = run(request);
  request.known = &without.measurements;
  const BenchmarkResult after = run(request);
  const auto expected = variants(request, alone.measurements);
  ASSERT_FALSE(expected.empty());
  const KernelErrors errors = largestErrors(after.measurements);
  for (const auto& [batch, variant] : expected) {
    EXPECT_LT(variant.error, kUnknownError);
    EXPECT_TRUE(errors.count(variant.kernel))
        << batch << ' ' << toText(Operation::kForward, variant.kernel);
  }
}

TEST_F(VariantsTest, ErrorsThatNobodyAsksForDecideNothing) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult alone = run(request);
  const auto expected = variants(request, alone.measurements);
  ASSERT_FALSE(expected.empty());
  // All that is offered is known with errors, but for one kernel.
  Measurements known = alone.measurements;
  for (auto& [batch, size] : known) {
    for (Measurement& m : size.kernels) m.error = 1e-6;
    dropVariants(request, size.kernels);
  }
  known.begin()->second.kernels.pop_back();
  request.known = &known;
  const BenchmarkResult after = run(request);
  ASSERT_LT(0, after.kernelsMeasured);
  for (const auto& [batch, variant] : expected)
    EXPECT_TRUE(kernelsOf(after.measurements).count({batch, variant.kernel.id}))
        << batch << ' ' << toText(Operation::kForward, variant.kernel);
}

TEST_F(VariantsTest, WhatIsKnownIsNotTimedAgain) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult alone = run(request);
  ASSERT_FALSE(variants(request, alone.measurements).empty());
  Measurements known = alone.measurements;
  auto& smallest = known.begin()->second.kernels;  // no variants are there
  const KernelsFound missing{{known.begin()->first, smallest.back().kernel.id}};
  smallest.pop_back();
  request.known = &known;
  const BenchmarkResult after = run(request);
  EXPECT_EQ(missing, kernelsOf(after.measurements));
  EXPECT_EQ(1, after.kernelsMeasured);
}

TEST_F(VariantsTest, WhatIsRefusedIsNotTriedAgain) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const BenchmarkResult alone = run(request);
  KernelsAtSizes refused;
  for (const auto& [batch, variant] : variants(request, alone.measurements))
    refused[batch].push_back(variant.kernel);
  ASSERT_FALSE(refused.empty());
  request.refused = &refused;
  const BenchmarkResult after = run(request);
  for (const auto& [batch, kernels] : refused)
    for (const Kernel kernel : kernels)
      EXPECT_FALSE(kernelsOf(after.measurements).count({batch, kernel.id}))
          << batch << ' ' << toText(Operation::kForward, kernel);
}

/// Kernels of more than 3 ms.
class LongVariantsTest : public VariantsTest {
 protected:
  static BenchmarkRequest longKernels() {
    BenchmarkRequest request = withEngines(1024, 64 * kMebibyte);
    request.problem = conv2(1024, Operation::kBackwardFilter);
    constexpr int kFilters = 240;
    request.problem.wSizes[0] = request.problem.ySizes[1] = kFilters;
    request.problem.yStrides[0] = kFilters * 27 * 27;
    request.problem.mathType = CUDNN_DEFAULT_MATH;
    request.sizes = {1024};
    return request;
  }
};

// A kernel's first call loads its code, which takes longer than a variant gains.
TEST_F(LongVariantsTest, AreFoundWhetherLoadedOrNot) {
  for (const bool isLoaded : {true, false}) {
    const BenchmarkRequest request = longKernels();
    setMeasuringCost(!isLoaded);
    const BenchmarkResult result = run(request);
    setMeasuringCost(false);
    const auto found = variants(request, result.measurements);
    ASSERT_FALSE(found.empty()) << isLoaded;
    EXPECT_LT(3, found.front().second.timeMs);
  }
}

// The kernel that is varied leads to expect a time; without one they would be called as often as
// the shortest.
TEST_F(LongVariantsTest, AreCalledAFewTimes) {
  const BenchmarkRequest request = longKernels();
  const auto before = callCount("cudnnBackendExecute");
  EXPECT_FALSE(variants(request, run(request).measurements).empty());
  EXPECT_GT(100, callCount("cudnnBackendExecute") - before);
}

// A search that only makes plans faster must not cost the plans that exist without it. It makes the
// last calls.
TEST_F(VariantsTest, AFailureLeavesWhatWasMeasured) {
  BenchmarkRequest request = withEngines(64, 64 * kMebibyte);
  const auto before = callCount();
  Measurements measured = run(request).measurements;
  const auto calls = callCount() - before;
  ASSERT_FALSE(variants(request, measured).empty());
  for (auto& [batch, size] : measured) dropVariants(request, size.kernels);
  const KernelsFound expected = kernelsOf(measured);
  constexpr std::int64_t kLast = 200;
  ASSERT_LT(kLast, calls);
  for (std::int64_t n = calls - kLast; n <= calls; ++n) {
    failCall(n);
    BenchmarkResult result;
    EXPECT_NO_THROW(result = run(request)) << n;
    failCall(0);
    static_cast<void>(cudaGetLastError());
    EXPECT_TRUE(includes(kernelsOf(result.measurements), expected)) << n;
  }
}

}  // namespace
}  // namespace ucudnn::test
