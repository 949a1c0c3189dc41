// Streams, events and device memory that give themselves back, and a check that names the failing
// call.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include "support/simulator.hpp"

#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)
#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess)

namespace ucudnn::test {

class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) { EXPECT_CUDA(cudaMalloc(&pointer_, bytes)); }
  ~DeviceBuffer() { EXPECT_CUDA(cudaFree(pointer_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  char* get() const { return static_cast<char*>(pointer_); }

 private:
  void* pointer_ = nullptr;
};

class ScopedStream {
 public:
  explicit ScopedStream(unsigned int flags = cudaStreamNonBlocking) {
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~ScopedStream() { EXPECT_CUDA(cudaStreamDestroy(stream_)); }
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT: as a handle is used

 private:
  cudaStream_t stream_ = nullptr;
};

class ScopedEvent {
 public:
  ScopedEvent() { EXPECT_CUDA(cudaEventCreate(&event_)); }
  ~ScopedEvent() { EXPECT_CUDA(cudaEventDestroy(event_)); }
  ScopedEvent(const ScopedEvent&) = delete;
  ScopedEvent& operator=(const ScopedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT: as a handle is used

 private:
  cudaEvent_t event_ = nullptr;
};

/// A graph of what `enqueue` puts on the stream, instantiated.
class CapturedGraph {
 public:
  CapturedGraph(cudaStream_t stream,
                const std::function<void()>& enqueue,
                cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    EXPECT_CUDA(cudaStreamBeginCapture(stream, mode));
    enqueue();
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes_));
    EXPECT_CUDA(cudaGraphInstantiate(&exec_, graph, 0));
    EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  ~CapturedGraph() { EXPECT_CUDA(cudaGraphExecDestroy(exec_)); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  std::size_t nodes() const { return nodes_; }
  cudaGraphExec_t exec() const { return exec_; }

 private:
  std::size_t nodes_ = 0;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace ucudnn::test
