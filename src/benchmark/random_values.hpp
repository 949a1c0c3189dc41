// Fills device memory with random numbers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// Enqueues the filling of `bytes` bytes with numbers of a cudnnDataType_t: finite, between 2^-5
/// and 1 in magnitude. Kernels run faster on zeros, and denormals or infinities would mislead too.
/// Throws Error.
void fillRandom(void* memory, std::size_t bytes, std::int32_t dataType, cudaStream_t stream);

}  // namespace ucudnn
