// Reads numbers from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucudnn {

/// Reads numbers of one of the four types that are planned (elementBytes).
std::vector<double> toDoubles(const void* memory, std::size_t count, std::int32_t dataType);

}  // namespace ucudnn
