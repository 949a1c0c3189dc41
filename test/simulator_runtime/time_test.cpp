#include <cmath>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

constexpr std::size_t kBytes = 48'000'000;  // written in 0.01 ms by an H200 (4800 GB/s)
constexpr double kFillMs = 0.0125;          // with its launch
constexpr double kTolerance = 1e-6;         // elapsed times are float

/// With arithmetic off the fills cost nothing but virtual time.
class SimulatedTimeTest : public testing::Test {
 protected:
  SimulatedTimeTest() { setArithmetic(Arithmetic::kOff); }
  ~SimulatedTimeTest() override { setArithmetic(Arithmetic::kFull); }

  void fill(cudaStream_t stream, int buffer = 0) {
    char* const target = buffer == 0 ? first_.get() : second_.get();
    EXPECT_CUDA(cudaMemsetAsync(target, 0, kBytes, stream));
  }
  static double elapsed(cudaEvent_t start, cudaEvent_t end) {
    float ms = -1;
    EXPECT_CUDA(cudaEventSynchronize(end));
    EXPECT_CUDA(cudaEventElapsedTime(&ms, start, end));
    return ms;
  }

  DeviceBuffer first_{kBytes};
  DeviceBuffer second_{kBytes};
};

TEST_F(SimulatedTimeTest, EventsReadTheStreamsClock) {
  const ScopedStream stream;
  const ScopedEvent start;
  const ScopedEvent end;
  for (int count = 0; count < 4; ++count) {
    EXPECT_CUDA(cudaEventRecord(start, stream));
    for (int i = 0; i < count; ++i) fill(stream);
    EXPECT_CUDA(cudaEventRecord(end, stream));
    EXPECT_NEAR(elapsed(start, end), count * kFillMs, kTolerance);
  }
}

TEST_F(SimulatedTimeTest, WorkIsUnderWayUntilTheHostWaits) {
  const ScopedStream stream;
  const ScopedEvent start;
  const ScopedEvent end;
  EXPECT_CUDA(cudaEventRecord(start, stream));
  fill(stream);
  EXPECT_CUDA(cudaEventRecord(end, stream));
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_CUDA(cudaStreamQuery(stream));  // polling takes time
  fill(stream);
  EXPECT_CUDA(cudaEventRecord(end, stream));
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_CUDA(cudaEventQuery(end));
  fill(stream);
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_CUDA(cudaStreamQuery(stream));
  cudaGetLastError();  // cudaErrorNotReady
}

TEST_F(SimulatedTimeTest, StreamsRunSideBySide) {
  const ScopedStream a;
  const ScopedStream b;
  EXPECT_CUDA(cudaDeviceSynchronize());
  fill(a, 0);
  fill(b, 1);
  EXPECT_NEAR(clockMs(a), clockMs(b), kTolerance);
}

class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) { EXPECT_CUDA(cudaMallocHost(&pointer_, bytes)); }
  ~PinnedBuffer() { EXPECT_CUDA(cudaFreeHost(pointer_)); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  char* get() const { return static_cast<char*>(pointer_); }

 private:
  void* pointer_ = nullptr;
};

TEST_F(SimulatedTimeTest, CopiesOfOneDirectionTakeTurns) {
  constexpr std::size_t kCopied = std::size_t{1} << 20;
  const DeviceBuffer device(3 * kCopied);
  const PinnedBuffer host(3 * kCopied);
  const ScopedStream a;
  const ScopedStream b;
  const ScopedStream other;
  EXPECT_CUDA(cudaDeviceSynchronize());
  const auto toDevice = [&](cudaStream_t stream, std::size_t part) {
    EXPECT_CUDA(cudaMemcpyAsync(device.get() + part * kCopied,
                                host.get() + part * kCopied,
                                kCopied,
                                cudaMemcpyHostToDevice,
                                stream));
  };
  toDevice(a, 0);
  const double before = clockMs(a);
  toDevice(a, 0);
  const double copyMs = clockMs(a) - before;
  EXPECT_GT(copyMs, 0);
  toDevice(b, 1);
  EXPECT_NEAR(clockMs(b), clockMs(a) + copyMs, kTolerance);
  EXPECT_CUDA(cudaMemcpyAsync(host.get() + 2 * kCopied,
                              device.get() + 2 * kCopied,
                              kCopied,
                              cudaMemcpyDeviceToHost,
                              other));
  EXPECT_NEAR(clockMs(other), before, kTolerance) << "the other direction";
}

TEST_F(SimulatedTimeTest, CopiesToPageableMemoryWaitAndTakeLonger) {
  constexpr std::size_t kCopied = std::size_t{1} << 20;
  const DeviceBuffer device(kCopied);
  const PinnedBuffer pinned(kCopied);
  std::vector<char> pageable(kCopied);
  const ScopedStream stream;
  EXPECT_CUDA(cudaDeviceSynchronize());
  const auto copyMs = [&](char* to) {
    const double before = clockMs(stream);
    EXPECT_CUDA(cudaMemcpyAsync(to, device.get(), kCopied, cudaMemcpyDeviceToHost, stream));
    return clockMs(stream) - before;
  };
  copyMs(pinned.get());  // begins when the host does
  const double pinnedMs = copyMs(pinned.get());
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(stream));
  cudaGetLastError();
  EXPECT_GT(copyMs(pageable.data()), 1.5 * pinnedMs);
  EXPECT_CUDA(cudaStreamQuery(stream)) << "the host has waited";
}

TEST_F(SimulatedTimeTest, WaitingForAnEventJoinsTheClocks) {
  const ScopedStream a;
  const ScopedStream b;
  const ScopedEvent event;
  EXPECT_CUDA(cudaDeviceSynchronize());
  fill(a);
  fill(a);
  EXPECT_CUDA(cudaEventRecord(event, a));
  EXPECT_CUDA(cudaStreamWaitEvent(b, event, 0));
  EXPECT_NEAR(clockMs(b), clockMs(a), kTolerance);
  fill(b);
  EXPECT_NEAR(clockMs(b), clockMs(a) + kFillMs, kTolerance);
}

TEST_F(SimulatedTimeTest, NothingStartsBeforeTheHostEnqueuesIt) {
  const ScopedStream busy;
  const ScopedStream idle;
  fill(busy);
  EXPECT_CUDA(cudaStreamSynchronize(busy));
  fill(idle);
  EXPECT_NEAR(clockMs(idle), clockMs(busy) + kFillMs, kTolerance);
}

TEST_F(SimulatedTimeTest, TheLegacyStreamWaitsForBlockingStreamsOnly) {
  const ScopedStream blocking(cudaStreamDefault);
  const ScopedStream other(cudaStreamNonBlocking);
  EXPECT_CUDA(cudaDeviceSynchronize());
  fill(blocking);
  fill(blocking);
  for (int i = 0; i < 5; ++i) fill(other, 1);
  fill(nullptr);
  EXPECT_NEAR(clockMs(nullptr), clockMs(blocking) + kFillMs, kTolerance);
  EXPECT_EQ(clockMs(nullptr), clockMs(cudaStreamLegacy));
  fill(blocking);
  EXPECT_NEAR(clockMs(blocking), clockMs(nullptr) + kFillMs, kTolerance);
  const double before = clockMs(cudaStreamPerThread);
  fill(cudaStreamPerThread);
  EXPECT_GT(clockMs(cudaStreamPerThread), before);
  EXPECT_NEAR(clockMs(cudaStreamPerThread), clockMs(blocking), kTolerance);
}

TEST_F(SimulatedTimeTest, EventsThatCanNotBeTimedAreRefused) {
  const ScopedStream stream;
  const ScopedEvent recorded;
  const ScopedEvent never;
  cudaEvent_t untimed = nullptr;
  ASSERT_CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  EXPECT_CUDA(cudaEventRecord(recorded, stream));
  EXPECT_CUDA(cudaEventRecord(untimed, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, recorded, never), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&ms, recorded, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventQuery(never));
  EXPECT_CUDA(cudaEventDestroy(untimed));
  EXPECT_EQ(cudaEventDestroy(untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(untimed, stream), cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace ucudnn::test
