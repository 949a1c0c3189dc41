// Reads files of unknown size.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// Throws std::runtime_error if the path is no regular file, because reading a pipe would wait.
void expectFile(const std::string& path);

/// Returns the file's contents. Throws std::runtime_error if the file cannot be read, or is larger
/// than `mostBytes`; it then reads no more of it.
std::string readFile(const std::string& path, std::size_t mostBytes);

}  // namespace ucudnn
