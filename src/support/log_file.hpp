// What log lines are written to.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// Opens `file` to append to and returns its descriptor: a file, which is made where there is none,
/// a character device as /dev/stderr, or a pipe that somebody reads. Never waits: neither for a
/// pipe's reader to come nor, when it is written to, for him to read. Throws std::runtime_error:
/// why it cannot be opened.
int openLogFile(const std::string& file);

/// What cannot be written is lost. Raises no signal.
void writeLog(int descriptor, const char* text, std::size_t bytes) noexcept;

}  // namespace ucudnn
