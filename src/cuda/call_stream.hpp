// The stream of a call: who it is, and whether it is being captured.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <functional>

namespace ucudnn {

/// A handle's value is no identity: cudaStreamPerThread is another stream in each thread, and the
/// value of a destroyed stream is used again. So a stream is known by its id, and a capture by its
/// own: CUDA uses neither twice.
struct CallStream {
  cudaStream_t stream = nullptr;
  std::uint64_t id = 0;       ///< 0 while capturing: asking would void the capture
  std::uint64_t capture = 0;  ///< 0: not known
  bool capturing = false;
};

/// Asks a handle for its stream. Voids no capture. Throws Error.
CallStream streamOf(cudnnHandle_t handle);

/// Whether nothing but work to be captured may be put on the handle's stream: it is being captured,
/// or is the legacy default stream while another one is. Throws Error.
bool isCapturing(cudnnHandle_t handle);

/// Has `gone` called once, when the graph that the stream is being captured into, its copies and
/// all that was instantiated of them have been destroyed and run no more; or when nothing comes of
/// the capture. On whatever thread; it may call no function of CUDA's and throw nothing. Throws
/// Error, std::bad_alloc: it is called at some time or never.
void callWhenGraphIsGone(const CallStream& stream, std::function<void()> gone);

}  // namespace ucudnn
