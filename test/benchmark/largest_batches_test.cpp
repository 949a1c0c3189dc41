// The largest batches that fit a limit, beside what cuDNN says of each batch.
#include "benchmark/largest_batches.hpp"

#include "benchmark_fixture.hpp"

namespace ucudnn {
namespace {

using namespace test;

class LargestBatchesTest : public BenchmarkTest {
 protected:
  /// A benchmark's measurements at powers of two and the mini-batch.
  Measurements atAnchors(int miniBatch, std::size_t limitBytes) {
    return run(question(miniBatch, limitBytes)).measurements;
  }
  /// Whether some kernel fits at a batch and not at the next.
  bool isLargestOfOne(int batch, std::size_t limitBytes) {
    const KernelsFound here = offered(batch, limitBytes);
    const KernelsFound next = offered(batch + 1, limitBytes);
    return std::any_of(here.begin(), here.end(), [&](const auto& kernel) {
      return next.count({batch + 1, kernel.second}) == 0;
    });
  }
};

TEST_F(LargestBatchesTest, AreTheLargestAndWhatIsLeftBesideThem) {
  constexpr int kMiniBatch = 100;
  int found = 0;
  for (const std::size_t limitBytes : {3u << 20, 10u << 20, 30u << 20, 60u << 20, 100u << 20}) {
    const auto sizes = largestBatches(
        handle_.get(), question(kMiniBatch, limitBytes), atAnchors(kMiniBatch, limitBytes));
    for (const int size : sizes) {
      EXPECT_GT(size, 0);
      EXPECT_LT(size, kMiniBatch);
      if (isLargestOfOne(size, limitBytes)) ++found;
    }
  }
  EXPECT_GE(found, 3);
}

TEST_F(LargestBatchesTest, AreNoneWhereEveryKernelFits) {
  constexpr std::size_t kEnough = std::size_t{16} << 30;
  EXPECT_TRUE(largestBatches(handle_.get(), question(64, kEnough), atAnchors(64, kEnough)).empty());
}

/// A kernel that takes about as long for 16 samples as for 8 is behind another one there, and may
/// be ahead of it at the most that fit.
TEST_F(LargestBatchesTest, CountByWhatTheyMayTakeThere) {
  constexpr int kMiniBatch = 32;
  constexpr std::size_t kLimit = 50 * kMebibyte;  // 26 samples of the fastest
  const Measurement fastest = *fastestOf(atAnchors(kMiniBatch, kLimit).at(16).kernels);
  ASSERT_LT(0U, fastest.workspaceBytes);
  Measurement other = fastest;
  other.kernel.id += 1000;  // runs anywhere
  const auto sizes = [&](double at8, double at16) {
    Measurements measured;
    for (const int batch : powersUpTo(kMiniBatch)) {
      other.timeMs = other.deviceMs = batch;
      other.workspaceBytes = 0;
      measured[batch].kernels = {other};
    }
    for (const auto& [batch, timeMs] : {std::pair{8, at8}, {16, at16}}) {
      measured[batch].kernels.push_back(fastest);
      measured[batch].kernels.back().timeMs = measured[batch].kernels.back().deviceMs = timeMs;
    }
    return largestBatches(handle_.get(), question(kMiniBatch, kLimit), measured);
  };
  EXPECT_FALSE(sizes(18, 20).empty());
  EXPECT_TRUE(sizes(10, 20).empty());
}

TEST_F(LargestBatchesTest, AskCudnnAFewTimesOnly) {
  constexpr std::size_t kLimit = 100 * kMebibyte;
  const Measurements measured = atAnchors(100, kLimit);
  const auto before = callCount("cudnnGetConvolutionForwardWorkspaceSize");
  EXPECT_FALSE(largestBatches(handle_.get(), question(100, kLimit), measured).empty());
  EXPECT_LE(callCount("cudnnGetConvolutionForwardWorkspaceSize") - before, 40);
}

}  // namespace
}  // namespace ucudnn
