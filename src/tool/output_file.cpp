#include "tool/output_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>

#include "support/text.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {

OutputFile::OutputFile(const char* option, std::string path)
    : option_(option), path_(std::move(path)) {
  if (path_.empty() || isStandardOutput()) return;
  stream_.open(path_);
  if (!stream_)
    throw BadInput(fmt::format("{}: {}: {}", option_, excerpt(path_), std::strerror(errno)));
}

void OutputFile::write(const std::function<void(std::ostream&)>& content) {
  if (path_.empty()) return;
  std::ostream& stream = isStandardOutput() ? std::cout : stream_;
  content(stream);
  stream.flush();
  if (!isStandardOutput()) stream_.close();
  if (!stream && !(isStandardOutput() && isReaderGone()))
    throw BadInput(fmt::format("{}: {}: cannot be written", option_, excerpt(path_)));
}

std::string whatIsWritten(const std::function<bool(const std::string& path)>& write) {
  const int descriptor = memfd_create("ucudnn", MFD_CLOEXEC);
  if (descriptor < 0)
    throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  std::ostringstream text;
  const bool written = write(path);
  if (written) text << std::ifstream(path).rdbuf();
  ::close(descriptor);
  if (!written) throw std::runtime_error("there is nothing to be written");
  return text.str();
}

}  // namespace ucudnn::tool
