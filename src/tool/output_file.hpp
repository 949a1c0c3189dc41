// Files that results are written to.
#pragma once

#include <fstream>
#include <functional>
#include <ostream>
#include <string>

namespace ucudnn::tool {

/// Opened before the work begins, so that a bad name is found out at once and not after an hour.
class OutputFile {
 public:
  /// `option` names the option in the message. An empty path: nothing is written; "-": to stdout.
  /// Throws BadInput.
  OutputFile(const char* option, std::string path);

  bool isStandardOutput() const noexcept { return path_ == "-"; }

  /// Calls `content` with the stream if there is one. Throws BadInput when the disk is full.
  void write(const std::function<void(std::ostream&)>& content);

 private:
  std::string option_, path_;
  std::ofstream stream_;
};

/// The text that a function writes which only knows paths, and may not say that the disk was full.
/// Throws std::runtime_error when `write` returns false, and what it throws.
std::string whatIsWritten(const std::function<bool(const std::string& path)>& write);

}  // namespace ucudnn::tool
