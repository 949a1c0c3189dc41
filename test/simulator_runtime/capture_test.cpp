#include <functional>
#include <thread>

#include "fixtures.hpp"

namespace ucudnn::test {
namespace {

struct ForbiddenCase {
  const char* name;
  cudaError_t expected;
  std::function<cudaError_t(cudaStream_t)> call;
};

TEST(SimulatedCaptureTest, ForbiddenCallsInvalidateTheCapture) {
  const DeviceBuffer buffer(16);
  const ScopedEvent event;
  const ScopedStream elsewhere;
  const ScopedEvent outside;
  EXPECT_CUDA(cudaEventRecord(outside, elsewhere));
  void* pointer = nullptr;
  char host = 0;
  const ForbiddenCase cases[] = {
      {"cudaMalloc",
       cudaErrorStreamCaptureUnsupported,
       [&](cudaStream_t) { return cudaMalloc(&pointer, 16); }},
      {"cudaFree",
       cudaErrorStreamCaptureUnsupported,
       [&](cudaStream_t) { return cudaFree(buffer.get()); }},
      {"cudaStreamSynchronize",
       cudaErrorStreamCaptureUnsupported,
       [](cudaStream_t stream) { return cudaStreamSynchronize(stream); }},
      {"cudaStreamQuery",
       cudaErrorStreamCaptureUnsupported,
       [](cudaStream_t stream) { return cudaStreamQuery(stream); }},
      {"cudaDeviceSynchronize",
       cudaErrorStreamCaptureUnsupported,
       [](cudaStream_t) { return cudaDeviceSynchronize(); }},
      {"cudaEventQuery",
       cudaErrorStreamCaptureUnsupported,
       [&](cudaStream_t) { return cudaEventQuery(outside); }},
      {"cudaMemcpy",
       cudaErrorStreamCaptureUnsupported,
       [&](cudaStream_t) { return cudaMemcpy(&host, buffer.get(), 1, cudaMemcpyDeviceToHost); }},
      {"cudaEventQuery of a captured event",
       cudaErrorCapturedEvent,
       [&](cudaStream_t stream) {
         cudaEventRecord(event, stream);
         return cudaEventQuery(event);
       }},
      {"cudaEventSynchronize of a captured event",
       cudaErrorCapturedEvent,
       [&](cudaStream_t stream) {
         cudaEventRecord(event, stream);
         return cudaEventSynchronize(event);
       }},
      {"cudaStreamGetId",
       cudaErrorStreamCaptureUnsupported,
       [&](cudaStream_t stream) {
         unsigned long long id = 0;
         return cudaStreamGetId(stream, &id);
       }},
      {"work on the legacy stream",
       cudaErrorStreamCaptureImplicit,
       [&](cudaStream_t) { return cudaMemsetAsync(buffer.get(), 0, 1, nullptr); }},
      {"an event from outside",
       cudaErrorStreamCaptureIsolation,
       [&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, outside, 0); }},
  };
  for (const ForbiddenCase& test : cases) {
    SCOPED_TRACE(test.name);
    const ScopedStream stream(cudaStreamDefault);
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(test.call(stream), test.expected);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_CUDA(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaMemsetAsync(buffer.get(), 0, 1, stream), cudaErrorStreamCaptureInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 1, stream));
  }
  cudaGetLastError();
}

/// Sets the calling thread's mode; gives the old one back at the end.
class ThreadMode {
 public:
  explicit ThreadMode(cudaStreamCaptureMode mode) : mode_(mode) { exchange(); }
  ~ThreadMode() { exchange(); }
  ThreadMode(const ThreadMode&) = delete;
  ThreadMode& operator=(const ThreadMode&) = delete;

 private:
  void exchange() { EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  cudaStreamCaptureMode mode_;
};

struct UnsafeCase {
  cudaStreamCaptureMode capture;
  bool ownThread;  ///< the calls come from the thread that captures
  cudaStreamCaptureMode thread;
  bool allowed;
};

constexpr cudaStreamCaptureMode kGlobal = cudaStreamCaptureModeGlobal;
constexpr cudaStreamCaptureMode kThreadLocal = cudaStreamCaptureModeThreadLocal;
constexpr cudaStreamCaptureMode kRelaxed = cudaStreamCaptureModeRelaxed;

// As CUDA's manual has it at cudaThreadExchangeStreamCaptureMode, and as an H200 does.
constexpr UnsafeCase kUnsafeCases[] = {
    {kGlobal, true, kGlobal, false},
    {kGlobal, true, kThreadLocal, false},
    {kGlobal, true, kRelaxed, true},
    {kGlobal, false, kGlobal, false},
    {kGlobal, false, kThreadLocal, true},
    {kGlobal, false, kRelaxed, true},
    {kThreadLocal, true, kGlobal, false},
    {kThreadLocal, true, kThreadLocal, false},
    {kThreadLocal, true, kRelaxed, true},
    {kThreadLocal, false, kGlobal, true},
    {kThreadLocal, false, kThreadLocal, true},
    {kThreadLocal, false, kRelaxed, true},
    {kRelaxed, true, kGlobal, true},
    {kRelaxed, true, kThreadLocal, true},
    {kRelaxed, true, kRelaxed, true},
    {kRelaxed, false, kGlobal, true},
    {kRelaxed, false, kThreadLocal, true},
    {kRelaxed, false, kRelaxed, true},
};

/// Calls that planning makes beside a capture, each on memory, a stream and an event that take no
/// part in it.
class UnsafeCalls {
 public:
  UnsafeCalls() {
    EXPECT_CUDA(cudaMalloc(&freed_, 16));
    EXPECT_CUDA(cudaMemsetAsync(buffer_.get(), 0, 16, stream_));
    EXPECT_CUDA(cudaEventRecord(event_, stream_));
  }
  ~UnsafeCalls() {
    EXPECT_CUDA(cudaFree(allocated_));
    EXPECT_CUDA(cudaFree(freed_));
  }
  UnsafeCalls(const UnsafeCalls&) = delete;
  UnsafeCalls& operator=(const UnsafeCalls&) = delete;

  static constexpr int kCount = 5;
  cudaError_t call(int which) {
    switch (which) {
      case 0:
        return cudaMalloc(&allocated_, 16);
      case 1: {
        const cudaError_t error = cudaFree(freed_);
        if (error == cudaSuccess) freed_ = nullptr;
        return error;
      }
      case 2:
        return cudaStreamSynchronize(stream_);
      case 3:
        return cudaEventSynchronize(event_);
      default: {
        const cudaError_t error = cudaEventQuery(event_);  // the first finds it under way
        return error == cudaErrorNotReady ? cudaEventQuery(event_) : error;
      }
    }
  }

 private:
  DeviceBuffer buffer_{16};
  ScopedStream stream_;
  ScopedEvent event_;
  void* allocated_ = nullptr;
  void* freed_ = nullptr;
};

// The captured streams are blocking ones, as most are.
TEST(SimulatedCaptureTest, UnsafeCallsDisturbOnlyTheCapturesThatTheyMayNot) {
  for (const UnsafeCase& test : kUnsafeCases) {
    for (int which = 0; which < UnsafeCalls::kCount; ++which) {
      SCOPED_TRACE(testing::Message() << "capture " << test.capture << " own " << test.ownThread
                                      << " thread " << test.thread << " call " << which);
      const ScopedStream stream(cudaStreamDefault);
      UnsafeCalls calls;
      ASSERT_CUDA(cudaStreamBeginCapture(stream, test.capture));
      cudaError_t error = cudaErrorUnknown;
      const auto run = [&] {
        const ThreadMode mode(test.thread);
        error = calls.call(which);
      };
      if (test.ownThread) {
        run();
      } else {
        std::thread(run).join();
      }
      EXPECT_EQ(error, test.allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
                test.allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
      if (graph != nullptr) {
        EXPECT_CUDA(cudaGraphDestroy(graph));
      }
    }
  }
  cudaGetLastError();
}

// A broader handle than a stream encompasses the captured one: no mode allows that.
TEST(SimulatedCaptureTest, SynchronizingTheDeviceVoidsEveryCapture) {
  for (const cudaStreamCaptureMode capture : {kGlobal, kThreadLocal, kRelaxed}) {
    const ScopedStream stream;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, capture));
    const ThreadMode mode(kRelaxed);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  }
  cudaGetLastError();
}

TEST(SimulatedCaptureTest, ExchangingTheModeGivesTheOldOneBack) {
  cudaStreamCaptureMode mode = kRelaxed;
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kGlobal);
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kRelaxed);
}

struct ThreadCase {
  cudaStreamCaptureMode mode;
  cudaError_t mallocElsewhere;
  cudaError_t endElsewhere;
};

TEST(SimulatedCaptureTest, ModesDecideWhatOtherThreadsMayDo) {
  const ThreadCase cases[] = {
      {cudaStreamCaptureModeGlobal,
       cudaErrorStreamCaptureUnsupported,
       cudaErrorStreamCaptureWrongThread},
      {cudaStreamCaptureModeThreadLocal, cudaSuccess, cudaErrorStreamCaptureWrongThread},
      {cudaStreamCaptureModeRelaxed, cudaSuccess, cudaSuccess},
  };
  for (const ThreadCase& test : cases) {
    SCOPED_TRACE(test.mode);
    const ScopedStream stream;
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamBeginCapture(stream, test.mode));
    std::thread([&] {
      void* pointer = nullptr;
      EXPECT_EQ(cudaMalloc(&pointer, 16), test.mallocElsewhere);
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph), test.endElsewhere);
    }).join();
    if (test.endElsewhere != cudaSuccess) cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) {
      EXPECT_CUDA(cudaGraphDestroy(graph));
    }
  }
}

TEST(SimulatedCaptureTest, WorkOfAForkMustBeJoined) {
  const DeviceBuffer buffer(16);
  const ScopedStream main;
  const ScopedStream side;
  const ScopedEvent forked;
  ASSERT_CUDA(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
  EXPECT_CUDA(cudaEventRecord(forked, main));
  EXPECT_CUDA(cudaStreamWaitEvent(side, forked, 0));
  EXPECT_CUDA(cudaMemsetAsync(buffer.get(), 0, 16, side));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureUnjoined);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_CUDA(cudaStreamIsCapturing(side, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
}

TEST(SimulatedCaptureTest, CapturesDoNotMix) {
  const ScopedStream a;
  const ScopedStream b;
  const ScopedEvent event;
  ASSERT_CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  EXPECT_CUDA(cudaEventRecord(event, a));
  EXPECT_EQ(cudaStreamWaitEvent(b, event, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
}

}  // namespace
}  // namespace ucudnn::test
