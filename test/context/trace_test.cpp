// Where a trace's lines go.
#include "context/trace.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temporary_directory.hpp"

namespace ucudnn {
namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int descriptorOf(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path)
      return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST(TraceFileTest, LeavesAloneWhatAProgramOpensInItsPlace) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("trace"), other = directory.file("other");
  TraceFile trace(path);
  trace.write("one\n");
  const int descriptor = descriptorOf(path);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(0, ::close(descriptor));
  const int programs = ::open(other.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(descriptor, programs) << "the lowest that is free";
  trace.write("two\n");
  trace.write("three\n");
  EXPECT_EQ("", contentOf(other));
  EXPECT_EQ("one\ntwo\nthree\n", contentOf(path));
  ::close(programs);
}

}  // namespace
}  // namespace ucudnn
