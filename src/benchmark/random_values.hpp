// Fills device memory with random numbers, which the host knows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucudnn {

/// The tensor that the numbers are for: each begins at different ones. If two tensors had the same
/// numbers, some outputs would be sums of squares, beside which all others count for nothing.
enum class RandomTensor { kX, kW, kY };

/// Enqueues the filling of `bytes` bytes with numbers of a cudnnDataType_t: finite, between 2^-5
/// and 1 in magnitude. Kernels run faster on zeros, and denormals or infinities would mislead too.
/// Throws Error.
void fillRandom(void* memory,
                std::size_t bytes,
                RandomTensor tensor,
                std::int32_t dataType,
                cudaStream_t stream);

/// The numbers that it repeats, from the memory's beginning on.
std::vector<double> randomValues(RandomTensor tensor, std::int32_t dataType);

}  // namespace ucudnn
