#include "tool/output_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "tool/failure.hpp"

namespace ucudnn::tool {

OutputFile::OutputFile(const char* option, const std::string& path) : option_(option), path_(path) {
  if (path_.empty() || isStandardOutput()) return;
  stream_.open(path_);
  if (!stream_) throw BadInput(fmt::format("{}: {}: {}", option_, path_, std::strerror(errno)));
}

void OutputFile::write(const std::function<void(std::ostream&)>& content) {
  if (path_.empty()) return;
  std::ostream& stream = isStandardOutput() ? std::cout : stream_;
  content(stream);
  stream.flush();
  if (!stream) throw BadInput(fmt::format("{}: {}: cannot be written", option_, path_));
}

}  // namespace ucudnn::tool
