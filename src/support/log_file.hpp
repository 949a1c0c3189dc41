// The file that log lines are written to.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// Opens `file` to append to, and returns its descriptor. It may be a regular file, which is made
/// if it doesn't exist, a character device such as /dev/stderr, or a pipe that somebody reads.
/// Never waits for a pipe's reader: neither to come nor, when the pipe is written to, to read.
/// Throws std::runtime_error that says why the file cannot be opened.
int openLogFile(const std::string& file);

/// Text that cannot be written is lost. Raises no signal.
void writeLog(int descriptor, const char* text, std::size_t bytes) noexcept;

}  // namespace ucudnn
