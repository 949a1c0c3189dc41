// How much workspace a micro-batch may have: the limit, or the part of the output that it borrows.
// Samples of the output that are written later hold nothing yet. They are often far larger than the
// limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/alignment.hpp"

namespace ucudnn {

struct WorkspaceRoom {
  std::size_t limitBytes = 0;
  std::size_t sampleBytes = 0;  ///< of the output; 0: the output may not be borrowed

  /// Bytes of the output that a micro-batch may borrow if `samplesBehind` samples are written after
  /// it. Borrowed memory begins at an aligned address.
  std::size_t borrowed(int samplesBehind) const noexcept {
    const std::size_t bytes = sampleBytes * static_cast<std::size_t>(samplesBehind);
    return bytes > kMemoryAlignment ? bytes - kMemoryAlignment : 0;
  }
  /// Bytes that the copy of an output may have there. It is aligned as engines' tensors are, so
  /// that a half of the batch has room for the copy of the other. REQUIRES: the output is, too.
  std::size_t forCopy(int samplesBehind) const noexcept {
    const std::size_t bytes = sampleBytes * static_cast<std::size_t>(samplesBehind);
    if (sampleBytes % kEngineAlignment == 0) return bytes;
    return bytes > kEngineAlignment ? bytes - kEngineAlignment : 0;
  }
  std::size_t at(int samplesBehind) const noexcept {
    return std::max(limitBytes, borrowed(samplesBehind));
  }
};

/// Where `bytes` borrowed bytes begin. They lie at an output's end, so that several micro-batches
/// use the same memory.
inline void* borrowedPlace(const void* outputsEnd,
                           std::size_t bytes,
                           std::size_t alignment = kMemoryAlignment) noexcept {
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(outputsEnd) - bytes;
  return static_cast<char*>(const_cast<void*>(outputsEnd)) - bytes - place % alignment;
}

}  // namespace ucudnn
