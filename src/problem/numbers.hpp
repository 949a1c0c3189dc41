// Reads numbers from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucudnn {

/// Reads numbers of one of the four types that are planned (elementBytes).
std::vector<double> toDoubles(const void* memory, std::size_t count, std::int32_t dataType);

/// The bits of a number of one of these types that is nearest to `value`, the even one of two.
/// REQUIRES: it is finite, and not beyond half's largest where it becomes a half.
std::uint64_t bitsOf(float value, std::int32_t dataType) noexcept;

}  // namespace ucudnn
