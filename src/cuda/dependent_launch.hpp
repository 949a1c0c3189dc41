// Launches that begin before the kernel before them has ended (CUDA: programmatic dependent
// launch).
#pragma once

#include <cuda_runtime_api.h>

namespace ucudnn {

#if CUDART_VERSION >= 13000
/// Launches a kernel that begins with cudaGridDependencySynchronize. From compute capability 9.0 on
/// its thread blocks are placed while the kernel before it in the stream, cuDNN's or any other,
/// ends: the gap between the two is shorter. Devices before have no such code, and get a plain
/// launch. So does a graph that is being captured: not all functions that its owner may call know
/// other edges. Returns CUDA's error.
cudaError_t launchDependent(
    cudaKernel_t kernel, dim3 threadBlocks, dim3 threads, void** arguments, cudaStream_t stream);
#endif

}  // namespace ucudnn
