// Reads numbers from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucudnn {

/// Reads numbers of one of the four types that are planned (elementBytes).
std::vector<double> toDoubles(const void* memory, std::size_t count, std::int32_t dataType);

/// The bits of `value` as a number of one of these types: the nearest one, of two the even one.
/// REQUIRES: `value` is finite, and within the type's range.
std::uint64_t bitsOf(float value, std::int32_t dataType) noexcept;

}  // namespace ucudnn
