// The benchmark takes no device memory that nobody granted, and makes the best of little.
#include <limits>

#include "benchmark/device_timer.hpp"
#include "benchmark/question.hpp"
#include "benchmark_fixture.hpp"

namespace ucudnn::test {
namespace {

class BenchmarkMemoryTest : public BenchmarkTest {
 protected:
  static std::size_t tensorBytes(int batch) {
    const Problem problem = conv2(batch);
    return problem.xBytes() + problem.yBytes() + problem.wBytes();
  }
  /// The alignment of the parts.
  static constexpr std::size_t kSlack = 4096;
};

TEST_F(BenchmarkMemoryTest, OneBlockForAll) {
  const auto allocations = callCount("cudaMalloc"), frees = callCount("cudaFree");
  run(question(32, kLimit));
  EXPECT_EQ(allocations + 1, callCount("cudaMalloc"));
  EXPECT_EQ(frees + 1, callCount("cudaFree"));
  EXPECT_EQ(0U, liveBytes());
}

/// Variants do, which are not known when the memory is taken.
TEST_F(BenchmarkMemoryTest, AKernelThatNeedsMoreThanAllThatIsOfferedGetsIt) {
  BenchmarkRequest request = question(32, kLimit);
  const Question asked = questionOf(request);
  TimingTask task;
  Measurement kernel = *fastestOf(run(request).measurements.at(32).kernels);
  kernel.workspaceBytes = asked.largestWorkspace() + 8 * kMebibyte;
  task.call = {std::make_shared<const ProblemDescriptors>(request.problem), 32, kernel};
  task.expectedMs = kernel.timeMs;
  const auto statusWith = [&](std::size_t grantedBytes) {
    request.memory.mostBytes = grantedBytes;
    DeviceTimer timer(handle_.get(), request, nullptr, asked);
    timer.prepare();
    return timer.run(task).status;
  };
  using Status = TimingOutcome::Status;
  const std::size_t needed = tensorBytes(32) + kSlack + kernel.workspaceBytes;
  EXPECT_EQ(Status::kTimed, statusWith(needed));
  EXPECT_EQ(Status::kNoMemory, statusWith(tensorBytes(32) + kernel.workspaceBytes / 2));
  EXPECT_EQ(0U, liveBytes());
}

TEST_F(BenchmarkMemoryTest, OnTheCallersBuffersNothingIsAllocated) {
  for (const Operation operation : {Operation::kForward,
                                    Operation::kBackwardData,
                                    Operation::kBackwardFilter,
                                    Operation::kBiasActivationForward}) {
    BenchmarkRequest request = question(32, kLimit);
    request.problem = conv2(32, operation);
    request.sizes = allUpTo(32);
    const BenchmarkResult expected = run(request);
    const DeviceBuffer x(request.problem.xBytes()), w(request.problem.wBytes()),
        y(request.problem.yBytes()), workspace(kLimit);
    const TensorBuffers buffers{x.get(), w.get(), y.get(), workspace.get(), kLimit};
    request.buffers = &buffers;
    request.memory.mostBytes = 0;  // no scratch memory could be had
    const auto allocations = callCount("cudaMalloc");
    const BenchmarkResult result = run(request);
    EXPECT_EQ(allocations, callCount("cudaMalloc"));
    EXPECT_EQ(kernelsOf(expected.measurements), kernelsOf(result.measurements));
    EXPECT_EQ(Untried::kNone, result.untried);
  }
}

/// The device has just what was granted: asking for more would fail, and a second cudaMalloc show.
TEST_F(BenchmarkMemoryTest, NoMoreIsTakenThanGranted) {
  for (const std::size_t granted : {tensorBytes(32) + 36 * kMebibyte,
                                    tensorBytes(32),
                                    tensorBytes(16),
                                    tensorBytes(2),
                                    tensorBytes(1) + kSlack,
                                    std::size_t{4096},
                                    std::size_t{0}}) {
    setMemory(0, granted);
    BenchmarkRequest request = question(32, kLimit);
    request.memory.mostBytes = granted;
    const auto allocations = callCount("cudaMalloc");
    const BenchmarkResult result = run(request);
    EXPECT_GE(allocations + 1, callCount("cudaMalloc")) << granted;
    EXPECT_EQ(Untried::kMemory, result.untried) << granted;
    EXPECT_EQ(0, result.failures) << granted;
    EXPECT_EQ(granted > 4096, result.kernelsMeasured > 0) << granted;
    EXPECT_EQ(0U, liveBytes());
    setMemory(0, SIZE_MAX);
  }
}

/// Engines don't add z in place: the simulator would see it. Without them z takes no memory.
TEST_F(BenchmarkMemoryTest, ZLiesBesideYWhereEnginesAreTimed) {
  const std::int64_t violations = violationCount();
  for (const bool engines : {false, true}) {
    BenchmarkRequest request = question(32, kLimit);
    request.problem = conv2(32, Operation::kBiasActivationForward);
    request.problem.activation = CUDNN_ACTIVATION_RELU;
    request.problem.addsZ = 1;
    request.kernels = engines ? Kernels::kAll : Kernels::kLegacy;
    const std::size_t zBytes = engines ? request.problem.yBytes() : 0;
    for (const std::size_t granted :
         {tensorBytes(32) + zBytes + kSlack, tensorBytes(32) + zBytes}) {
      const bool isEnough = granted > tensorBytes(32) + zBytes;
      setMemory(0, granted);
      request.memory.mostBytes = granted;
      const BenchmarkResult result = run(request);
      setMemory(0, SIZE_MAX);
      EXPECT_EQ(0, result.failures);
      const auto whole = result.measurements.find(32);
      const bool isWhole = whole != result.measurements.end();
      ASSERT_EQ(isEnough, isWhole) << "engines " << engines;
      if (!isWhole) continue;
      const auto& kernels = whole->second.kernels;
      EXPECT_EQ(engines, std::any_of(kernels.begin(), kernels.end(), [](const Measurement& m) {
                  return !m.anyCall;
                }));
    }
  }
  EXPECT_EQ(violations, violationCount());
}

TEST_F(BenchmarkMemoryTest, OfADeviceThatHasLessWhatItHasIsUsed) {
  for (const std::size_t freeBytes : {tensorBytes(32) + 36 * kMebibyte, tensorBytes(2)}) {
    BenchmarkRequest request = question(32, kLimit);
    request.memory.mostBytes = freeBytes;
    const BenchmarkResult granted = run(request);
    setMemory(0, freeBytes);
    request.memory.mostBytes = SIZE_MAX;
    const BenchmarkResult found = run(request);
    setMemory(0, SIZE_MAX);
    EXPECT_EQ(kernelsOf(granted.measurements), kernelsOf(found.measurements));
    EXPECT_EQ(Untried::kMemory, found.untried);
    EXPECT_EQ(cudaSuccess, cudaPeekAtLastError()) << "the client must not see it";
  }
}

/// Memory for the mini-batch's tensors and little else: small workspaces go with large sizes, large
/// ones with small sizes.
TEST_F(BenchmarkMemoryTest, TensorsAndWorkspaceDoNotCrowdEachOtherOut) {
  BenchmarkRequest request = question(32, kLimit);
  const BenchmarkResult everything = run(request);
  request.memory.mostBytes = tensorBytes(32) + kSlack;
  const BenchmarkResult result = run(request);
  const KernelsFound measured = kernelsOf(result.measurements);
  bool wholeWithout = false, partWithMore = false;
  for (const auto& [batch, size] : everything.measurements)
    for (const Measurement& m : size.kernels) {
      const bool fits = tensorBytes(batch) + m.workspaceBytes <= tensorBytes(32);
      if (!fits) continue;
      EXPECT_EQ(1U, measured.count({batch, m.kernel.id})) << batch;
      if (batch == 32 && m.workspaceBytes == 0) wholeWithout = true;
      if (batch < 32 && m.workspaceBytes > request.memory.mostBytes / 4) partWithMore = true;
    }
  EXPECT_TRUE(wholeWithout);
  EXPECT_TRUE(partWithMore);
  EXPECT_FALSE(result.undividedMeasured);
  EXPECT_FALSE(result.measurements.at(32).kernels.empty());
}

TEST_F(BenchmarkMemoryTest, WhatDidNotFitIsMeasuredOnceThereIsMemory) {
  BenchmarkRequest request = question(32, kLimit);
  const BenchmarkResult everything = run(request);
  request.memory.mostBytes = tensorBytes(8);
  Measurements known = run(request).measurements;
  EXPECT_EQ(0U, known.count(32));
  request.memory.mostBytes = SIZE_MAX;
  request.known = &known;
  const BenchmarkResult more = run(request);
  EXPECT_TRUE(more.undividedMeasured);
  EXPECT_EQ(Untried::kNone, more.untried);
  addTo(known, more.measurements);
  EXPECT_TRUE(includes(kernelsOf(known), kernelsOf(everything.measurements)));
}

}  // namespace
}  // namespace ucudnn::test
