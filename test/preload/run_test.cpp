// `ucudnn run`
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "preload/process.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn::test {
namespace {

const std::string kRun = preloading("") + UCUDNN_TOOL " run ";

TEST(Run, ExitStatusIsTheCommands) {
  EXPECT_EQ(0, shell(kRun + "true").status);
  EXPECT_EQ(7, shell(kRun + "sh -c 'exit 7'").status);
  EXPECT_EQ(7, shell(kRun + "-- sh -c 'exit 7'").status);
  EXPECT_EQ(128 + 15, shell(kRun + "sh -c 'kill $$'").status);
}

TEST(Run, WhatCannotBeRunIsOneLine) {
  for (const auto& [command, status] : {std::pair<const char*, int>{"nonexistent --help", 127},
                                        {"/nonexistent/x", 127},
                                        {"/tmp", 126}}) {
    const Outcome outcome = shell(kRun + command);
    EXPECT_EQ(status, outcome.status) << command;
    EXPECT_EQ("", outcome.output);
    EXPECT_EQ(0U, outcome.error.find("ucudnn: ")) << outcome.error;
    EXPECT_EQ(1, std::count(outcome.error.begin(), outcome.error.end(), '\n')) << outcome.error;
  }
}

TEST(Run, BadOptionsAndSettingsAreRefusedBeforeTheProgramStarts) {
  for (const std::string& line : {kRun,
                                  kRun + "--",
                                  kRun + "--workspace-limit",
                                  kRun + "--workspace-limit much echo",
                                  kRun + "--total-workspace -1 echo",
                                  kRun + "--nonsense echo",
                                  kRun + "--database /nonexistent/a.db echo",
                                  kRun + "--database /nonexistent/a/b/ echo",
                                  kRun + "--trace /nonexistent/a echo",
                                  "UCUDNN_DATABASE=/nonexistent/a.db " + kRun + "echo",
                                  "UCUDNN_TRACE=/nonexistent/a " + kRun + "echo",
                                  "UCUDNN_KERNELS=some " + kRun + "echo"}) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(2, outcome.status) << line;
    EXPECT_EQ("", outcome.output);
    EXPECT_EQ(1, std::count(outcome.error.begin(), outcome.error.end(), '\n')) << outcome.error;
  }
}

/// The environment that a program sees.
std::string environmentOf(const std::string& line, const std::string& variable) {
  return shell(line + " sh -c 'echo \"$" + variable + "\"'").output;
}

TEST(Run, OptionsBecomeTheProgramsEnvironment) {
  const std::string folder = std::filesystem::current_path().string();
  EXPECT_EQ("2097152B\n", environmentOf(kRun + "--workspace-limit 2MiB", "UCUDNN_WORKSPACE_LIMIT"));
  EXPECT_EQ("1048576B\n",
            environmentOf(kRun + "--total-workspace=1MiB", "UCUDNN_TOTAL_WORKSPACE_SIZE"));
  EXPECT_EQ(folder + "/a.db\n", environmentOf(kRun + "--database a.db", "UCUDNN_DATABASE"));
  EXPECT_EQ(folder + "/a/\n", environmentOf(kRun + "--database a/", "UCUDNN_DATABASE"));
  EXPECT_EQ("/tmp/%p\n", environmentOf(kRun + "--trace /tmp/%p", "UCUDNN_TRACE"));
  EXPECT_EQ("67108864B\n", environmentOf(kRun + "--replay on", "UCUDNN_GRAPH_MEMORY"));
  EXPECT_EQ("0B\n", environmentOf(kRun + "--replay off", "UCUDNN_GRAPH_MEMORY"));
  EXPECT_EQ("8MiB\n", environmentOf("UCUDNN_GRAPH_MEMORY=8MiB " + kRun, "UCUDNN_GRAPH_MEMORY"));
  EXPECT_EQ("4096\n",
            environmentOf("UCUDNN_WORKSPACE_LIMIT=4096 " + kRun, "UCUDNN_WORKSPACE_LIMIT"));
}

// By the tool for an option, by the library for a variable, once for all handles of a process.
TEST(Run, ASmallSizeWithoutAUnitIsRemarkedOnce) {
  const std::string remark = ": 64 means 64 bytes: write 64MiB, or 64B if that is meant\n";
  const std::string environment = "UCUDNN_SIMULATOR_ARITHMETIC=off UCUDNN_BENCHMARK_SHARE=0 ";
  const std::string program = " " PLAIN " fixed /dev/null";
  EXPECT_EQ("ucudnn: --workspace-limit" + remark,
            shell(environment + kRun + "--workspace-limit 64" + program).error);
  const std::string ofVariables =
      shell("UCUDNN_WORKSPACE_LIMIT=64 UCUDNN_GRAPH_MEMORY=0 UCUDNN_BENCHMARK_MEMORY=64B " +
            environment + kRun + program)
          .error;
  EXPECT_NE(std::string::npos, ofVariables.find("UCUDNN_WORKSPACE_LIMIT" + remark)) << ofVariables;
  EXPECT_EQ(1, std::count(ofVariables.begin(), ofVariables.end(), '\n')) << ofVariables;
}

TEST(Run, LibraryIsPreloadedBehindOthers) {
  const std::string own = std::filesystem::canonical(UCUDNN_PRELOAD).string();
  const auto preloadOf = [](const std::string& line) {
    const std::string libraries = environmentOf(line, "LD_PRELOAD");
    return "LD_PRELOAD=" + libraries.substr(0, libraries.find('\n')) + " ";
  };
  EXPECT_EQ(preloading(own), preloadOf(kRun));
  EXPECT_EQ(preloading(OTHER_CUDNN ":" + own),
            preloadOf(preloading(OTHER_CUDNN) + UCUDNN_TOOL " run "));
}

TEST(Run, AReportSaysWhyThereWereNoCalls) {
  const std::string begin = "ucudnn: no convolution call came by: the program ";
  const Outcome none = shell(kRun + "--report true");
  EXPECT_EQ(0, none.status);
  EXPECT_EQ(0U, none.error.find(begin + "did not load cuDNN")) << none.error;
  EXPECT_EQ(2, std::count(none.error.begin(), none.error.end(), '\n')) << none.error;
  // The shell's children are not what was started. (dash ends by _exit, and so without a word.)
  const Outcome children = shell(kRun + "--report bash -c '/bin/true; /bin/true; :'");
  EXPECT_EQ(2, std::count(children.error.begin(), children.error.end(), '\n')) << children.error;
  EXPECT_EQ("", shell(kRun + "true").error);
  const Outcome disabled = shell("UCUDNN_DISABLE=1 UCUDNN_SIMULATOR_ARITHMETIC=off " + kRun +
                                 "--report " PLAIN " fixed /dev/null");
  EXPECT_EQ(0U, disabled.error.find(begin + "loaded cuDNN, but made no handle")) << disabled.error;
}

/// What a program writes to a terminal that is its stderr.
std::string onTerminal(const std::string& line) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  EXPECT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  const std::string name = ::ptsname(terminal);
  const int kept = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // what is written stays
  EXPECT_EQ(0, shell(line + " 2>" + name).status);
  std::string text;
  char part[4096];
  for (ssize_t size = 0; (size = ::read(terminal, part, sizeof(part))) > 0;)
    text.append(part, static_cast<std::size_t>(size));
  ::close(kept);
  ::close(terminal);
  return text;
}

TEST(Run, WhoWaitsAtATerminalSeesWhatIsMeasured) {
  const std::string begin = "UCUDNN_SIMULATOR_ARITHMETIC=off " + kRun + "--no-database ",
                    program = " " PLAIN " fixed /dev/null", erase = "\r\x1b[K";
  const std::string seen = onTerminal(begin + "--tune" + program);
  const std::string line = "ucudnn: measuring; so far ";
  EXPECT_EQ(0U, seen.find(erase + line + "0 convolutions, 0 kernels, 0 s" + erase)) << seen;
  EXPECT_NE(std::string::npos, seen.find(line + "3 convolutions, ")) << seen;
  EXPECT_EQ(seen.size() - erase.size(), seen.rfind(erase)) << seen;
  EXPECT_EQ(std::string::npos, seen.find('\n')) << seen;
  EXPECT_EQ("", onTerminal(begin + program));
  EXPECT_EQ("", shell(begin + "--tune" + program).error);
}

TEST(Run, TheProgramsArgumentsAreItsOwn) {
  EXPECT_EQ("--trace info --help\n", shell(kRun + "echo --trace info --help").output);
  const TemporaryDirectory directory;
  const std::string program = directory.file("plan");  // named as a command of ours
  ASSERT_EQ(0,
            shell("printf '#!/bin/sh\\necho own\\n' >" + program + "; chmod +x " + program).status);
  EXPECT_EQ(
      "own\n",
      shell("PATH=" + program.substr(0, program.rfind('/')) + ":$PATH " + kRun + "plan").output);
}

TEST(Run, AProgramIsSplitWithinTheLimit) {
  const TemporaryDirectory directory;
  const Outcome outcome = shell("UCUDNN_KERNELS=legacy UCUDNN_SIMULATOR_ARITHMETIC=off " + kRun +
                                "--workspace-limit 2MiB --trace " + directory.file("trace") +
                                " " PLAIN " find " + directory.file("results"));
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ("", outcome.error);
  const auto lines = linesOf(directory.file("trace"));
  ASSERT_EQ(12U, lines.size());
  for (std::size_t i = 0; i < 9; ++i)  // the fused calls have not been asked about
    EXPECT_NE(std::string::npos, lines[i].find("\tsplit")) << lines[i];
}

TEST(Run, StartsWhereThereIsNoCudnn) {
  const TemporaryDirectory directory;
  const std::string program = directory.file("bin/ucudnn"),
                    library = directory.file("bin/" UCUDNN_LIBRARIES "/libucudnn_preload.so");
  for (const auto& [from, to] : {std::pair(UCUDNN_TOOL, program), {UCUDNN_PRELOAD, library}}) {
    std::filesystem::create_directories(std::filesystem::path(to).parent_path());  // bin first
    std::filesystem::copy_file(from, to);
  }
  const Outcome outcome =
      shell("env -i LD_DEBUG=files " + preloading("") + program + " run /bin/ls /");
  EXPECT_EQ(0, outcome.status) << outcome.error;
  EXPECT_EQ(shell("/bin/ls /").output, outcome.output);
  EXPECT_NE(std::string::npos, outcome.error.find("libucudnn_preload.so"));
  for (const char* const other : {"libucudnn.so", "libcudnn", "libcudart", "libsqlite3", "libglpk"})
    EXPECT_EQ(std::string::npos, outcome.error.find(other)) << other;

  const Outcome rest = shell("env -i " + program + " info");
  EXPECT_EQ(0, rest.status) << rest.error;
  EXPECT_NE(std::string::npos, rest.output.find("not found: No such file")) << rest.output;
  const Outcome bench = shell("env -i " + program + " db list --database a.db");
  EXPECT_EQ(1, bench.status);
  EXPECT_NE(std::string::npos, bench.error.find("ucudnn-database: No such file")) << bench.error;
}

TEST(Run, FindsACudnnWhereTheLoaderDoesNotLook) {
  const TemporaryDirectory directory;
  const Outcome outcome = shell(
      "UCUDNN_KERNELS=legacy UCUDNN_SIMULATOR_ARITHMETIC=off env -u LD_LIBRARY_PATH " + kRun +
      "--workspace-limit 2MiB --trace " + directory.file("trace") + " " HOST " " PLUGIN " find " +
      directory.file("results") + " " SIMULATOR "/" RUNTIME " " SIMULATOR "/libcudnn.so.9");
  EXPECT_EQ(0, outcome.status) << outcome.output;
  EXPECT_EQ("", outcome.error);
  const auto lines = linesOf(directory.file("trace"));
  ASSERT_EQ(12U, lines.size());
  EXPECT_NE(std::string::npos, lines[0].find("\tsplit")) << lines[0];
}

}  // namespace
}  // namespace ucudnn::test
