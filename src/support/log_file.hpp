// The file that log lines are written to.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// Opens `file` to append to, and returns its descriptor. The file may be a regular one, which is
/// made if it doesn't exist, a character device such as /dev/stderr, or a pipe that has a reader.
/// Neither opening nor writing waits for the pipe's reader. Throws std::runtime_error that says why
/// the file cannot be opened.
int openLogFile(const std::string& file);

/// Text that cannot be written is lost. Raises no signal.
void writeLog(int descriptor, const char* text, std::size_t bytes) noexcept;

}  // namespace ucudnn
