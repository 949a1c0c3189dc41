#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "temporary_directory.hpp"

namespace ucudnn {
namespace {

/// Gives the file another owner, or another group of ours, whose rights it runs with. False: there
/// is none.
bool setOtherId(const std::string& program) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0)
    return ::chown(program.c_str(), kNobody, static_cast<gid_t>(-1)) == 0 &&
           ::chmod(program.c_str(), 04755) == 0;
  std::array<gid_t, 64> groups{};
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  for (int i = 0; i < count; ++i)
    if (groups[static_cast<std::size_t>(i)] != ::getgid())
      return ::chown(program.c_str(),
                     static_cast<uid_t>(-1),
                     groups[static_cast<std::size_t>(i)]) == 0 &&
             ::chmod(program.c_str(), 02755) == 0;
  return false;
}

std::string outputOf(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  ::pclose(pipe);
  return output;
}

TEST(SetUserIdTest, VariablesThatNameFilesAreIgnored) {
  const test::TemporaryDirectory directory;
  const std::string program = directory.file("client");
  const std::string log = directory.file("log");
  std::filesystem::copy_file(UCUDNN_SET_USER_ID_CLIENT, program);
  const std::string command =
      "UCUDNN_DETERMINISTIC=1 UCUDNN_DATABASE=/tmp/x UCUDNN_PLANS=/tmp/x UCUDNN_LOG_FILE=" + log +
      " " + program + " 2>&1";
  EXPECT_EQ("secure=0 database=/tmp/x log=" + log + " deterministic=1\n", outputOf(command));
  EXPECT_TRUE(std::filesystem::exists(log));

  std::filesystem::remove(log);
  if (!setOtherId(program)) GTEST_SKIP() << "neither root nor of another group";
  const std::string output = outputOf(command);
  if (output.find("secure=0") != std::string::npos) GTEST_SKIP() << "mounted with nosuid";
  EXPECT_NE(std::string::npos, output.find("secure=1 database= log= deterministic=1\n")) << output;
  for (const char* name : {"UCUDNN_DATABASE", "UCUDNN_PLANS", "UCUDNN_LOG_FILE"})
    EXPECT_NE(std::string::npos, output.find(std::string(name) + " is ignored")) << output;
  EXPECT_FALSE(std::filesystem::exists(log));
}

}  // namespace
}  // namespace ucudnn
