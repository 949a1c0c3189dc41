// Replaying must not disturb the client's captures, streams and threads.
#include <atomic>
#include <thread>

#include "../../src/api/lookup.h"
#include "../support/simulator.hpp"
#include "recording.hpp"
#include "replay.hpp"

namespace ucudnn::test {
namespace {

class ReplayCaptureTest : public ReplayFixture {};

TEST_F(ReplayCaptureTest, CallWhileTheClientCapturesGoesIntoTheClientsGraph) {
  for (const cudaStreamCaptureMode mode : kCaptureModes)
    for (const ucudnnOperation_t operation : kOperations) {
      Repeated calls(replayCase());
      Recording recording;
      ASSERT_CUDNN(cudnnSetStream(calls.handle(), recording.stream()));
      for (int i = 0; i < 3; ++i) calls.call(operation);
      const Counts before = Counts::now();
      ASSERT_NO_FATAL_FAILURE(recording.begin(mode));
      for (int i = 0; i < 3; ++i) ASSERT_CUDNN(calls.enqueue(operation));
      const Counts did = Counts::now() - before;
      ASSERT_NO_FATAL_FAILURE(recording.end());
      EXPECT_EQ(0, did.replayed + did.graphs);
      EXPECT_EQ(3, did.split);
      EXPECT_EQ(0, did.launches);
      EXPECT_EQ(onSimulator() ? 1 : 0, did.captures) << "the client's";
      calls.call(operation, false, [&](UcudnnHandle_t handle) {
        if (handle == calls.enqueuing())
          return calls.convolution().run(handle, operation, 0, calls.workspace());
        recording.launch();
        return CUDNN_STATUS_SUCCESS;
      });
      EXPECT_EQ(1, calls.call(operation).replayed);
      ASSERT_CUDNN(cudnnSetStream(calls.handle(), calls.stream()));
    }
}

// Captured, launched, driven out and given back while others capture.
TEST_F(ReplayCaptureTest, ReplayingLeavesOtherStreamsCapturesValid) {
  for (const bool inAnotherThread : {false, true})
    for (const cudaStreamCaptureMode mode : kCaptureModes) {
      SCOPED_TRACE("mode " + std::to_string(mode) + (inAnotherThread ? ", another thread" : ""));
      Repeated calls(replayCase());
      ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), 150 << 10));  // one graph
      for (const ucudnnOperation_t operation : kOperations) ASSERT_CUDNN(calls.enqueue(operation));
      const Counts before = Counts::now();
      expectUndisturbed(inAnotherThread, mode, [&] {
        for (int i = 0; i < 2; ++i)
          for (const ucudnnOperation_t operation : kOperations) {
            ASSERT_CUDNN(calls.enqueue(operation));
            ASSERT_CUDNN(calls.enqueue(operation));
            ASSERT_CUDNN(calls.enqueue(operation));
          }
        ASSERT_CUDNN(ucudnnSetGraphMemory(calls.handle(), 0));
      });
      EXPECT_LE(6, (Counts::now() - before).replayed);
      EXPECT_EQ(0, statistics().graphs);
      calls.convolution().fill();  // they were each other's operands
      for (const ucudnnOperation_t operation : kOperations) calls.call(operation);
    }
}

class ReplayStreamTest : public ReplayFixture {};

TEST_F(ReplayStreamTest, EachStreamHasAGraphAndStaysTheHandles) {
  Repeated calls(replayCase());
  const Recording other;
  for (const cudaStream_t stream :
       {calls.stream(), other.stream(), cudaStream_t{nullptr}, cudaStreamPerThread})
    for (const ucudnnOperation_t operation : kOperations) {
      ASSERT_CUDNN(cudnnSetStream(calls.handle(), stream));
      for (int i = 0; i < 4; ++i) {
        const Counts did = calls.call(operation);
        EXPECT_EQ(i == 0 ? 0 : 1, did.replayed);
        EXPECT_EQ(i == 1 ? 1 : 0, did.graphs);
        cudaStream_t now = nullptr;
        ASSERT_CUDNN(cudnnGetStream(calls.handle(), &now));
        EXPECT_EQ(stream, now);
      }
    }
  ASSERT_CUDNN(cudnnSetStream(calls.handle(), calls.stream()));
  EXPECT_EQ(1, calls.call(UCUDNN_FORWARD).replayed);
}

TEST_F(ReplayStreamTest, TwoStreamsRunSideBySide) {
  Repeated first(replayCase());
  Repeated second(replayCase());
  Convolution& convolution = first.convolution();  // one x and one w for both
  auto output = std::make_unique<DeviceBuffer>(convolution.y().bytes());
  const Counts before = Counts::now();
  for (int i = 0; i < 8; ++i) {
    ASSERT_CUDNN(convolution.run(first.handle(), UCUDNN_FORWARD, 0, first.workspace()));
    output = convolution.exchange(UCUDNN_FORWARD, std::move(output));
    ASSERT_CUDNN(convolution.run(second.handle(), UCUDNN_FORWARD, 0, second.workspace()));
    output = convolution.exchange(UCUDNN_FORWARD, std::move(output));
  }
  EXPECT_EQ(14, (Counts::now() - before).replayed);
  EXPECT_TRUE(convolution.y().read() == output->read());
  first.call(UCUDNN_FORWARD);
}

/// The work of one thread: calls with buffers that take turns. Waits only for its own stream.
class Worker {
 public:
  Worker() : memory_(std::size_t{1} << 20) {
    for (Set& set : sets_) {
      for (const ucudnnOperation_t operation : kOperations) {
        DeviceBuffer& output = set.convolution.output(operation);
        const std::vector<char> operand = output.read();
        EXPECT_CUDNN(
            set.convolution.run(handles_.ours, operation, 0, {memory_.get(), memory_.bytes()}));
        set.expected[operation] = output.read();
        output.write(operand);
        set.outputs[operation] = std::make_unique<DeviceBuffer>(output.bytes());
      }
    }
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Worker() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Makes a handle, uses it, destroys it. Some calls repeat at once, others after a while.
  void work(int rounds) {
    UcudnnHandle_t handle;
    ASSERT_CUDNN(cudnnCreate(&handle));
    ASSERT_CUDNN(cudnnSetStream(handle, stream_));
    for (int round = 0; round < rounds; ++round)
      for (const ucudnnOperation_t operation : kOperations)
        for (int i = 0; i < 3; ++i) call(handle, sets_[round / 2 % kSets], operation);
    ASSERT_CUDNN(cudnnDestroy(handle));
  }

 private:
  static constexpr int kSets = 3;
  struct Set {
    Convolution convolution{replayCase()};
    std::vector<char> expected[3];
    std::unique_ptr<DeviceBuffer> outputs[3];
  };

  void call(UcudnnHandle_t handle, Set& set, ucudnnOperation_t operation) {
    Convolution& convolution = set.convolution;
    auto& output = set.outputs[operation];
    ASSERT_CUDA(cudaMemsetAsync(output->get(), 0xFF, output->bytes(), stream_));
    output = convolution.exchange(operation, std::move(output));
    const cudnnStatus_t status =
        convolution.run(handle, operation, 0, {memory_.get(), memory_.bytes()});
    output = convolution.exchange(operation, std::move(output));
    ASSERT_CUDNN(status);
    std::vector<char> result(output->bytes());
    ASSERT_CUDA(cudaMemcpyAsync(
        result.data(), output->get(), result.size(), cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    const double far = distance(convolution.geometry(operation), result, set.expected[operation]);
    EXPECT_LE(far, tolerance(convolution.parameters())) << toText(operation);
  }

  const Handles handles_;
  DeviceBuffer memory_;
  Set sets_[kSets];
  cudaStream_t stream_ = nullptr;
};

class ReplayThreadTest : public ReplayFixture {
};  // last: behind threads nothing is captured for 10 s

// cudaStreamPerThread has one value and is another stream in each thread.
TEST_F(ReplayThreadTest, AThreadsOwnStreamIsNoOtherThreads) {
  Repeated calls(replayCase());
  ASSERT_CUDNN(cudnnSetStream(calls.handle(), cudaStreamPerThread));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(i == 0 ? 0 : 1, calls.call(UCUDNN_FORWARD).replayed);
  std::thread([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(0, calls.call(UCUDNN_FORWARD).replayed) << "of two threads none captures";
  }).join();
  EXPECT_EQ(1, calls.call(UCUDNN_FORWARD).replayed) << "what was captured before is launched";
}

/// Eight threads call, while two more make and destroy handles.
void callInThreads() {
  constexpr int kThreads = 8, kOthers = 2;
  // A handful of graphs, so that they are driven out all the time.
  const EnvironmentGuard graphs("UCUDNN_GRAPH_MEMORY", std::to_string(500 << 10));
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kThreads + kOthers; ++i) workers.push_back(std::make_unique<Worker>());
  ASSERT_CUDA(cudaDeviceSynchronize());
  std::atomic<int> running{kThreads};
  std::atomic<bool> within{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      workers[static_cast<std::size_t>(i)]->work(30);
      --running;
    });
  for (int i = 0; i < kOthers; ++i)
    threads.emplace_back([&, i] {
      while (running > 0) {
        workers[static_cast<std::size_t>(kThreads + i)]->work(2);
        if (statistics().graphBytes > 500 << 10) within = false;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(within);
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST_F(ReplayThreadTest, EightThreadsCallWhileOthersMakeAndDestroyHandles) {
  callInThreads();
}

// CUDA refuses to wait for a device while any stream of it is captured, ours included, and cuDNN
// crashes in the midst of such a capture: so nothing is captured where two threads call us.
TEST_F(ReplayThreadTest, AnotherThreadThatCallsUsMayWaitForTheDevice) {
  Worker worker, other;
  std::atomic<bool> done{false};
  std::atomic<int> refused{0};
  std::thread waiting([&] {
    while (!done) {
      other.work(1);
      for (int i = 0; i < 100; ++i)
        if (cudaDeviceSynchronize() != cudaSuccess) ++refused;
    }
  });
  for (int i = 0; i < 40; ++i) worker.work(6);
  done = true;
  waiting.join();
  EXPECT_EQ(0, refused);
}

TEST_F(ReplayThreadTest, WithoutReplayNothingIsCapturedSoAnyThreadMayWaitForTheDevice) {
  const EnvironmentGuard off("UCUDNN_GRAPH_MEMORY", "0");
  std::atomic<bool> done{false};
  std::atomic<int> refused{0};
  std::thread waiting([&] {
    while (!done)
      if (cudaDeviceSynchronize() != cudaSuccess) ++refused;
  });
  Worker worker;
  worker.work(20);
  setArithmetic(Arithmetic::kOff);  // only times are wanted of the benchmark
  const Handles handles;
  const Convolution measured(fftCase(97));
  ucudnnPlan_t plan{};
  std::vector<ucudnnMicroBatches_t> entries;
  EXPECT_CUDNN(measured.plan(handles.ours, UCUDNN_FORWARD, 1 << 20, &plan, &entries));
  setArithmetic(Arithmetic::kFull);
  done = true;
  waiting.join();
  EXPECT_EQ(0, refused);
}

/// As under libucudnn_preload.so: for the rest of the process.
class KnownWaitsTest : public ReplayThreadTest {
 protected:
  void SetUp() override {
    ReplayThreadTest::SetUp();
    ucudnnKnowDeviceWaits(1);
  }
};

TEST_F(KnownWaitsTest, EightThreadsCaptureWhileOthersMakeAndDestroyHandles) {
  const Counts before = Counts::now();
  callInThreads();
  EXPECT_LT(0, (Counts::now() - before).replayed);
}

TEST_F(KnownWaitsTest, NothingIsCapturedWhileAnotherThreadWaitsForTheDevice) {
  Worker worker;
  std::atomic<bool> done{false};
  std::atomic<int> refused{0};
  std::thread waiting([&] {
    while (!done) {
      void* const wait = ucudnnBeginDeviceWait();
      if (cudaDeviceSynchronize() != cudaSuccess) ++refused;
      ucudnnEndDeviceWait(wait);
    }
  });
  const Counts before = Counts::now();
  for (int i = 0; i < 40; ++i) worker.work(6);
  done = true;
  waiting.join();
  EXPECT_EQ(0, refused);
  EXPECT_LT(0, (Counts::now() - before).replayed);
}

TEST_F(KnownWaitsTest, OneClientWhoseWaitsAreNotKnownDecidesForAll) {
  ucudnnKnowDeviceWaits(0);
  ucudnnKnowDeviceWaits(1);
  Repeated calls(replayCase());
  ASSERT_CUDNN(calls.enqueue(UCUDNN_FORWARD));
  std::thread([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(0, calls.call(UCUDNN_FORWARD).replayed) << "of two threads none captures";
  }).join();
}

}  // namespace
}  // namespace ucudnn::test
