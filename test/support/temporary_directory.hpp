// A directory for one test, removed with all it holds when the test ends.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ucudnn::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    // In memory where that is possible: a database flushes to a disk often, and disks may be slow.
    const std::filesystem::path memory = "/dev/shm";
    const bool hasMemory = ::access(memory.c_str(), W_OK | X_OK) == 0;
    const auto parent = hasMemory ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "ucudnn-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp: " + pattern);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // Files left behind in /tmp are no reason to fail a test.
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace ucudnn::test
