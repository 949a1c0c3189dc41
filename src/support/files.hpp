// Reads files of unknown size.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// Throws std::runtime_error: it is no regular file. A pipe would be waited for.
void expectFile(const std::string& path);

/// What stands in the file. Throws std::runtime_error: it cannot be read, or is larger than
/// `mostBytes`; no more is read of it then.
std::string readFile(const std::string& path, std::size_t mostBytes);

}  // namespace ucudnn
