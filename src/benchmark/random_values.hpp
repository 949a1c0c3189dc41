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

/// The numbers of a type that fillRandom repeats: 1 MiB is larger than a tile, and made in a
/// millisecond. One word less is a prime number of words, so that no two samples hold the same.
constexpr std::size_t kRandomBlockBytes = (std::size_t{1} << 20) - sizeof(std::uint64_t);
const void* randomBlockOf(std::int32_t dataType);
/// Where a tensor begins in it. At least kRandomBytes follow.
std::size_t firstRandomByte(RandomTensor tensor) noexcept;
constexpr std::size_t kRandomBytes = std::size_t{1} << 18;

/// Enqueues the filling of `bytes` bytes with numbers of a cudnnDataType_t: finite, between 2^-5
/// and 1 in magnitude. Kernels run faster on zeros, and denormals or infinities would mislead too.
/// `copyOfBlock`: one in device memory, which spares copies from the host. Throws Error.
void fillRandom(void* memory,
                std::size_t bytes,
                RandomTensor tensor,
                std::int32_t dataType,
                cudaStream_t stream,
                const void* copyOfBlock = nullptr);

/// Whether `count` bytes from `offset` on of filled memory are as it has filled them.
bool areRandom(const char* bytes,
               std::size_t offset,
               std::size_t count,
               RandomTensor tensor,
               std::int32_t dataType);

/// The numbers of filled memory, from its beginning on. The process keeps some MiB for each type.
class RandomValues {
 public:
  RandomValues(RandomTensor tensor, std::int32_t dataType);

  /// After so many numbers they begin anew.
  std::size_t size() const noexcept { return values_.size(); }
  /// The place of a number for `at`, which goes from 0 to size() - 1.
  std::size_t place(std::size_t offset) const noexcept { return (first_ + offset) % size(); }
  /// The place `step` numbers further on. REQUIRES: step < size().
  std::size_t after(std::size_t place, std::size_t step) const noexcept {
    place += step;
    return place < size() ? place : place - size();
  }
  double at(std::size_t place) const noexcept { return values_[place]; }
  double operator[](std::size_t offset) const noexcept { return at(place(offset)); }

 private:
  const std::vector<double>& values_;
  std::size_t first_;
};

}  // namespace ucudnn
