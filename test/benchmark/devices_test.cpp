// Several devices: the same kernels, found together.
#include <chrono>
#include <thread>

#include "benchmark/helper_devices.hpp"
#include "benchmark_fixture.hpp"

namespace ucudnn::test {
namespace {

class BenchmarkDevicesTest : public BenchmarkTest {
 protected:
  /// A problem whose real arithmetic takes each call a while: time enough for the other
  /// device's thread to wake up.
  static BenchmarkRequest slowQuestion() {
    BenchmarkRequest request = question(16, kLimit);
    request.problem = sampleProblem(Operation::kForward, 16, 6);
    request.sizes = allUpTo(16);
    return request;
  }
};

TEST_F(BenchmarkDevicesTest, TheyMeasureTheSameKernelsAsOne) {
  for (const auto& sizes : {powersUpTo(64), allUpTo(64)})
    for (const std::size_t limitBytes : {8 * kMebibyte, kLimit}) {
      BenchmarkRequest request = question(64, limitBytes);
      request.sizes = sizes;
      const BenchmarkResult alone = run(request);
      request.devices = {1};
      prepareBenchmarkDevices(request.devices);
      for (int i = 0; i < 20; ++i) {
        const BenchmarkResult together = run(request);
        ASSERT_EQ(kernelsOf(alone.measurements), kernelsOf(together.measurements));
        EXPECT_EQ(alone.kernelsMeasured, together.kernelsMeasured);
        EXPECT_TRUE(together.undividedMeasured);
        for (const auto& [batch, size] : alone.measurements)
          for (std::size_t k = 0; k < size.kernels.size(); ++k) {
            const Measurement& other = together.measurements.at(batch).kernels[k];
            EXPECT_EQ(size.kernels[k].kernel, other.kernel);
            EXPECT_DOUBLE_EQ(size.kernels[k].timeMs, other.timeMs);
          }
        EXPECT_EQ(0U, liveBytes(0));
        EXPECT_EQ(0U, liveBytes(1)) << "its scratch memory is given back";
      }
    }
}

TEST_F(BenchmarkDevicesTest, TheOtherTakesPart) {
  setArithmetic(Arithmetic::kSampled);
  BenchmarkRequest request = slowQuestion();
  request.devices = {1};
  bool tookPart = false;
  for (int i = 0; i < 50 && !tookPart; ++i) {
    const auto allocations = callCount("cudaMalloc");
    EXPECT_LT(0, run(request).kernelsMeasured);
    tookPart = callCount("cudaMalloc") == allocations + 2;  // a block on each device
  }
  EXPECT_TRUE(tookPart);
}

TEST_F(BenchmarkDevicesTest, ItsHandleIsKeptAndThereIsOne) {
  setArithmetic(Arithmetic::kSampled);
  BenchmarkRequest request = slowQuestion();
  request.devices = {1};
  const auto before = liveHandles("cudnnHandle");
  for (int i = 0; i < 3; ++i) run(request);
  EXPECT_GE(before + 1, liveHandles("cudnnHandle"));
  EXPECT_EQ(0, liveHandles("event"));
}

TEST_F(BenchmarkDevicesTest, ForAFewTimingsNoOtherIsAsked) {
  BenchmarkRequest request = question(32, kLimit);
  request.sizes = {32};
  request.devices = {1};
  const auto created = callCount("cudnnCreate"), set = callCount("cudaSetDevice");
  const auto allocations = callCount("cudaMalloc");
  EXPECT_LT(0, run(request).kernelsMeasured);
  EXPECT_EQ(created, callCount("cudnnCreate"));
  EXPECT_EQ(set, callCount("cudaSetDevice"));
  EXPECT_EQ(allocations + 1, callCount("cudaMalloc"));
}

TEST_F(BenchmarkDevicesTest, WithoutMemoryOnTheOtherAllIsMeasuredHere) {
  BenchmarkRequest request = question(64, kLimit);
  request.sizes = allUpTo(64);
  const BenchmarkResult alone = run(request);
  request.devices = {1};
  setMemory(1, 0);
  for (int i = 0; i < 20; ++i) {
    const BenchmarkResult result = run(request);
    EXPECT_EQ(kernelsOf(alone.measurements), kernelsOf(result.measurements));
    EXPECT_EQ(Untried::kNone, result.untried);
    EXPECT_EQ(0, result.failures);
  }
}

TEST_F(BenchmarkDevicesTest, ADeviceThatIsNotThereIsNotWaitedFor) {
  BenchmarkRequest request = question(64, kLimit);
  const BenchmarkResult alone = run(request);
  request.devices = {7};
  const BenchmarkResult result = run(request);
  EXPECT_EQ(kernelsOf(alone.measurements), kernelsOf(result.measurements));
}

TEST(InvitationTest, WhoComesTooLateDoesNotWork) {
  int worked = 0;
  Invitation invitation([&](cudnnHandle_t) { ++worked; });
  invitation.accept(nullptr);
  invitation.close();
  invitation.accept(nullptr);
  EXPECT_EQ(1, worked);
}

}  // namespace
}  // namespace ucudnn::test
