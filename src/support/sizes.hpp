// Sizes in bytes as people write and read them.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// "67108864", "64MiB", "64 MiB", "1GiB", "512KiB", "64MB" (decimal), "64M" (binary, as dd has it).
/// Throws std::invalid_argument: empty, negative, not a number, a fraction of a byte, or above
/// SIZE_MAX.
std::size_t parseSize(const std::string& text);

/// A remark on a number without a unit that is probably not meant as bytes: "64 means 64 bytes:
/// write 64MiB, or 64B if that is meant". Empty: there is nothing to remark.
std::string doubtOfSize(const std::string& text);

/// "64 MiB", "1.5 GiB", "512 B": for people.
std::string formatSize(std::size_t bytes);

}  // namespace ucudnn
