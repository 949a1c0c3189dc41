// CUDA graph captures of the whole-library tests.
#pragma once

#include "fixture.hpp"

namespace ucudnn::test {

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

}  // namespace ucudnn::test
