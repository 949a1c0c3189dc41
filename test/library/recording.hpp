// CUDA graph captures of the whole-library tests.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "fixture.hpp"

namespace ucudnn::test {

constexpr cudaStreamCaptureMode kCaptureModes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

/// A stream that is captured, the graph that comes of it, and its launches.
class Recording {
 public:
  Recording() { EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Recording() {
    if (exec_ != nullptr) {
      EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    }
    EXPECT_CUDA(cudaStreamDestroy(stream_));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  cudaStream_t stream() const { return stream_; }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_CUDA(cudaStreamBeginCapture(stream_, mode));
  }
  void end() {
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
    ASSERT_CUDA(cudaGraphInstantiate(&exec_, graph, 0));
    ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  void launch() {
    ASSERT_CUDA(cudaGraphLaunch(exec_, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

/// A capture of a fill that lasts while `during` runs, in another thread or this one; it must come
/// out whole.
inline void expectUndisturbed(bool inAnotherThread,
                              cudaStreamCaptureMode mode,
                              const std::function<void()>& during) {
  const DeviceBuffer filled(1024);
  std::promise<void> begun;
  std::promise<void> done;
  const auto capture = [&](const std::function<void()>& meanwhile) {
    Recording recording;
    recording.begin(mode);
    EXPECT_CUDA(cudaMemsetAsync(filled.get(), 0, filled.bytes(), recording.stream()));
    meanwhile();
    EXPECT_NO_FATAL_FAILURE(recording.end());
  };
  if (!inAnotherThread) return capture(during);
  std::thread other([&] {
    capture([&] {
      begun.set_value();
      done.get_future().wait();
    });
  });
  begun.get_future().wait();
  during();
  done.set_value();
  other.join();
}

}  // namespace ucudnn::test
