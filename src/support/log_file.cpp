#include "support/log_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "support/write_signals.hpp"

namespace ucudnn {
namespace {

std::string reasonNotToOpen() {
  // open() says ENXIO for a pipe without a reader if it must not wait for one.
  if (errno == ENXIO)
    return "it is a pipe that nobody reads, a socket, or a device that is not there";
  return std::strerror(errno);
}

}  // namespace

int openLogFile(const std::string& file) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  constexpr mode_t kReadableByAll = 0644;  // less the user's umask
  const int descriptor = ::open(file.c_str(), kFlags, kReadableByAll);
  if (descriptor < 0) throw std::runtime_error(reasonNotToOpen());
  struct stat status {};
  ::fstat(descriptor, &status);
  if (S_ISFIFO(status.st_mode)) return descriptor;
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
    ::close(descriptor);
    throw std::runtime_error("it is neither a file, a character device nor a pipe");
  }
  // Writes may block from here on, so that a terminal that is stopped for a moment loses no line.
  ::fcntl(descriptor, F_SETFL, O_APPEND);
  return descriptor;
}

void writeLog(int descriptor, const char* text, std::size_t bytes) noexcept {
  const WriteSignalsHeld held;
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // Closed or full: there is nowhere left to say so.
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

}  // namespace ucudnn
