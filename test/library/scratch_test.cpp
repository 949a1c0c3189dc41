// Measuring that nobody asked for leaves the memory that the client's other threads want.
#include <atomic>
#include <thread>

#include "../support/simulator.hpp"
#include "fixture.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kAllMemory = std::size_t{64} << 30;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

/// A convolution whose calls add: they are measured in scratch memory.
class ScratchTest : public LibraryTest {
 protected:
  void SetUp() override {
    LibraryTest::SetUp();
    if (IsSkipped()) return;
    if (!onSimulator()) GTEST_SKIP() << "only the simulator limits memory";
    setArithmetic(Arithmetic::kOff);
  }
  void TearDown() override {
    setMemory(0, kAllMemory);
    LibraryTest::TearDown();
  }

  /// Leaves so much free, and calls until what pays would have been measured. How many kernels
  /// were.
  long long measuredWithin(std::size_t freeBytes, int channels) {
    const EnvironmentGuard share("UCUDNN_BENCHMARK_SHARE", "1");
    const Handles handles;
    Convolution convolution(largeCase(channels), Convolution::Contents::kAny);
    const long long before = statistics().kernelsMeasured;
    setMemory(0, freeBytes);
    live_ = liveBytes();
    startPeak();
    meanwhile_ = true;
    for (int i = 0; i < kCalls; ++i)
      EXPECT_CUDNN(convolution.run(handles.ours, UCUDNN_FORWARD, 0, {}, 1, 1));
    meanwhile_ = false;
    peak_ = peakBytes() - live_;
    setMemory(0, kAllMemory);
    return statistics().kernelsMeasured - before;
  }
  static std::size_t tensorBytes(int channels) {
    Convolution convolution(largeCase(channels), Convolution::Contents::kAny);
    return convolution.x().bytes() + convolution.w().bytes() + convolution.y().bytes();
  }

  static constexpr int kCalls = 80000;
  std::atomic<bool> meanwhile_{false};
  std::size_t live_ = 0, peak_ = 0;
};

TEST_F(ScratchTest, UnaskedMeasuringTakesAQuarterOfWhatIsFreeAtMost) {
  const std::size_t tensors = tensorBytes(48);
  const std::size_t enough = 4 * (tensors + 4 * kMebibyte);
  EXPECT_LT(0, measuredWithin(enough, 48));
  EXPECT_LE(tensors, peak_);
  EXPECT_GE(enough / 4, peak_);
}

TEST_F(ScratchTest, WhereThatDoesNotSufficeNothingIsTaken) {
  const std::size_t tooLittle = 4 * tensorBytes(40) - 4 * kMebibyte;
  const std::int64_t asked = callCount("cudaMalloc");
  EXPECT_EQ(0, measuredWithin(tooLittle, 40));
  EXPECT_EQ(0U, peak_);
  EXPECT_GE(asked + 8, callCount("cudaMalloc")) << "its own buffers";
}

TEST_F(ScratchTest, AnotherThreadGetsItsMemoryMeanwhile) {
  for (const int channels : {56, 24}) {
    const std::size_t tensors = tensorBytes(channels);
    // Put off for the second, and for the first while the thread has its half.
    const std::size_t freeBytes = channels == 56 ? 4 * (tensors + 4 * kMebibyte) : 2 * tensors;
    std::atomic<bool> done{false};
    std::atomic<long> tries{0}, failures{0};
    std::thread other([&] {
      while (!done) {
        if (!meanwhile_) {
          std::this_thread::yield();
          continue;
        }
        void* memory = nullptr;
        ++tries;
        if (cudaMalloc(&memory, freeBytes / 2) != cudaSuccess) {
          ++failures;
          static_cast<void>(cudaGetLastError());
        } else {
          cudaFree(memory);
        }
      }
    });
    const long long measured = measuredWithin(freeBytes, channels);
    done = true;
    other.join();
    EXPECT_EQ(0, failures) << "of " << tries;
    if (channels == 24) {
      EXPECT_EQ(0, measured);
    }
  }
}

}  // namespace
}  // namespace ucudnn::test
