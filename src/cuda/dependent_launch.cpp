#include "cuda/dependent_launch.hpp"

namespace ucudnn {

#if CUDART_VERSION >= 13000

namespace {

constexpr int kLeastCapability = 9;  // its major number

/// Whether the kernel may be launched before the one before it has ended.
bool mayOverlap(cudaStream_t stream) noexcept {
  int device = 0, major = 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const bool isKnown =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaStreamIsCapturing(stream, &status) == cudaSuccess;
  if (!isKnown) static_cast<void>(cudaGetLastError());
  return isKnown && major >= kLeastCapability && status == cudaStreamCaptureStatusNone;
}

}  // namespace

cudaError_t launchDependent(
    cudaKernel_t kernel, dim3 threadBlocks, dim3 threads, void** arguments, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = threadBlocks;
  configuration.blockDim = threads;
  configuration.stream = stream;
  configuration.attrs = &overlap;
  configuration.numAttrs = mayOverlap(stream) ? 1 : 0;
  return cudaLaunchKernelExC(&configuration, reinterpret_cast<const void*>(kernel), arguments);
}

#endif

}  // namespace ucudnn
