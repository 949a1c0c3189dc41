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

/// Its first bytes on the host, kRandomBytes of them.
const void* randomNumbers(RandomTensor tensor, std::int32_t dataType);
constexpr std::size_t kRandomBytes = std::size_t{1} << 18;

/// Whether `bytes` bytes from `offset` on of filled memory are as it has filled them.
bool areRandom(const char* bytes,
               std::size_t offset,
               std::size_t count,
               RandomTensor tensor,
               std::int32_t dataType);

/// The numbers that it repeats, from the memory's beginning on.
std::vector<double> randomValues(RandomTensor tensor, std::int32_t dataType);

}  // namespace ucudnn
