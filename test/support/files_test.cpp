#include "support/files.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "temporary_directory.hpp"

namespace ucudnn {
namespace {

std::string refusal(const std::string& path, std::size_t mostBytes) {
  try {
    readFile(path, mostBytes);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(FilesTest, ReadsWholeFilesUpToTheBound) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("file");
  for (const std::size_t size : {0, 1, 65535, 65536, 65537, 200000}) {
    const std::string text(size, 'x');
    std::ofstream(file) << text;
    EXPECT_EQ(text, readFile(file, size));
    if (size > 0) {
      EXPECT_NE("", refusal(file, size - 1)) << size;
    }
  }
  EXPECT_EQ("it is larger than 1 KiB", refusal(file, 1024));
}

TEST(FilesTest, RefusesWhatHasNoEndOrCannotBeRead) {
  EXPECT_EQ("it is larger than 1 MiB", refusal("/dev/zero", 1 << 20));
  EXPECT_EQ("Is a directory", refusal("/tmp", 1));
  EXPECT_EQ("No such file or directory", refusal("/nonexistent", 1));
}

}  // namespace
}  // namespace ucudnn
