// The whole tool where no device is needed.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temporary_directory.hpp"
#include "tool/process.hpp"

namespace ucudnn::test {
namespace {

const std::string kAlexNet = UCUDNN_LAYERS "/alexnet.csv";

void expectRefused(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.status, 2) << outcome.error;
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  EXPECT_EQ(outcome.error.rfind("ucudnn: ", 0), 0U) << outcome.error;
  EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
}

TEST(Usage, BadInputIsOneLineAndStatus2) {
  expectRefused(runTool(""), "subcommand");
  expectRefused(runTool("bench"), "LAYERS.csv");
  expectRefused(runTool("bench /nonexistent.csv"), "/nonexistent.csv");
  expectRefused(runTool("bench /tmp"), "/tmp");
  expectRefused(runTool("bench " + kAlexNet + " --policy some"), "--policy");
  expectRefused(runTool("bench " + kAlexNet + " --json /nonexistent/x"), "--json: /nonexistent/x");
  expectRefused(runTool("plan " + kAlexNet + " --save /nonexistent/x"), "--save: /nonexistent/x");
  expectRefused(runTool("bench " + kAlexNet + " --database /nonexistent/x"),
                "--database: there is no folder /nonexistent");
  expectRefused(runTool("db list", "UCUDNN_DATABASE="), "UCUDNN_DATABASE");
  expectRefused(runTool("db list --database /nonexistent/file"), "/nonexistent/file");
  expectRefused(runTool("bench " + kAlexNet, "UCUDNN_BATCH_SIZE_POLICY=some"),
                "UCUDNN_BATCH_SIZE_POLICY");
}

TEST(Usage, BadLayerListIsNamedWithLineAndColumn) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("bad.csv");
  std::ofstream(file) << "source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h\n"
                      << "conv1,8,8,3,two,4,3,3,1,1,1,1\n";
  expectRefused(runTool("bench " + file),
                file + ", line 2, column N: \"two\" is not a whole number");
}

TEST(Usage, WhatCannotBeWrittenIsAFailure) {
  for (const char* arguments : {"--help", "--version", "info", "run --help"})
    expectRefused(runTool(arguments, "", "/dev/full"), "stdout cannot be written");
}

// `| head` closes the pipe, which is no failure, whoever ignores the signal.
TEST(Usage, AReaderThatHasEnoughIsNoFailure) {
  const TemporaryDirectory directory;
  for (const char* const before : {"", "trap '' PIPE; "})
    for (const char* const arguments : {"--help", "info --verbose", "bench --help", "run --help"}) {
      const std::string error = directory.file("error"), status = directory.file("status");
      const std::string line = std::string(before) + "{ sleep 0.1; '" UCUDNN_TOOL "' " + arguments +
                               " 2>" + error + "; echo $? >" + status + "; } | true";
      ASSERT_EQ(std::system(line.c_str()), 0);
      EXPECT_EQ(readFile(status), "0\n") << line;
      EXPECT_EQ(readFile(error), "") << line;
    }
}

TEST(Usage, MessagesAreBoundedAndPrintable) {
  const std::string longText(100000, 'a');
  expectRefused(runTool(longText), "\"" + std::string(97, 'a') + "...\" is no command");
  for (const std::string& arguments : {"bench " + longText,
                                       "bench " + kAlexNet + " --" + longText,
                                       "bench " + kAlexNet + " --policy " + longText,
                                       "bench " + kAlexNet + " --batch-size " + longText,
                                       "bench " + kAlexNet + " --layers " + longText,
                                       "bench " + kAlexNet + " --limit " + longText,
                                       "bench " + kAlexNet + " --json " + longText,
                                       "db list --database " + longText}) {
    const Outcome outcome = runTool(arguments);
    expectRefused(outcome, "aaaa");
    EXPECT_LE(outcome.error.size(), 500U) << arguments.substr(0, 60);
  }
  expectRefused(runTool("bench \"$(printf '\\033[31m\\377')\""), "\\x1b[31m\\xff");
}

TEST(Usage, ABatchBeyondTheBoundNamesIt) {
  expectRefused(runTool("plan " + kAlexNet + " --batch-size 100000000"), "1048576");
}

TEST(Usage, HelpAndVersion) {
  for (const char* arguments :
       {"--help", "bench --help", "plan --help", "db --help", "run --help"}) {
    const Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments;
    EXPECT_EQ(outcome.error, "");
    EXPECT_NE(outcome.output.find("--help"), std::string::npos) << outcome.output;
  }
  const Outcome runHelp = runTool("run --help");
  EXPECT_NE(runHelp.output.find("COMMAND..."), std::string::npos) << runHelp.output;
  const Outcome version = runTool("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.output.rfind("ucudnn ", 0), 0U) << version.output;
}

TEST(Usage, InfoSucceedsWithoutADevice) {
  const Outcome outcome =
      runTool("info", "CUDA_VISIBLE_DEVICES= UCUDNN_BATCH_SIZE_POLICY=all UCUDNN_LOG_LEVEL=loud");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("no CUDA device"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(
                "UCUDNN_BATCH_SIZE_POLICY        powerOfTwo                                  all"),
            std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("loud (refused: "), std::string::npos) << outcome.output;
}

// The loader finds neither: `ucudnn` itself is linked with none of them.
TEST(Usage, HelpInfoAndDatabasesNeedNoCudnn) {
  const TemporaryDirectory directory;
  const std::string tool = UCUDNN_TOOL;
  const std::string folder = tool.substr(0, tool.rfind('/'));
  for (const char* const name : {"ucudnn", "ucudnn-database"})
    std::filesystem::copy_file(folder + "/" + name, directory.file(name));
  std::ofstream(directory.file("ucudnn-commands"))
      << "#!/bin/sh\necho \"$0: error while loading shared libraries: libcudnn.so.9: cannot open "
         "shared object file\" >&2\nexit 127\n";
  std::filesystem::permissions(directory.file("ucudnn-commands"), std::filesystem::perms::all);
  const auto run = [&](const std::string& arguments) {
    const std::string out = directory.file("out");
    const int status =
        std::system((directory.file("ucudnn") + " " + arguments + " >" + out + " 2>&1").c_str());
    return std::make_pair(WEXITSTATUS(status), readFile(out));
  };
  for (const char* const help : {"--help", "-h", "--version", "bench -h", "plan --help", "db -h"})
    EXPECT_EQ(run(help).first, 0) << help;
  const auto [status, text] = run("info");
  EXPECT_EQ(status, 0);
  EXPECT_NE(text.find("not found: libcudnn.so.9: cannot open shared object file\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nUCUDNN_WORKSPACE_LIMIT"), std::string::npos) << text;
  EXPECT_EQ(run("bench " + kAlexNet + " --policy some").first, 2);
#if UCUDNN_HAVE_SQLITE
  EXPECT_NE(run("db list --database /nonexistent/a.db").second.find("/nonexistent/a.db"),
            std::string::npos);
#endif
}

TEST(Usage, InfoIsNoWiderThanATerminalAndExplainsWhenAsked) {
  const auto widest = [](const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  };
  const Outcome brief = runTool("info", "CUDA_VISIBLE_DEVICES=");
  EXPECT_LE(widest(brief.output), 100U) << brief.output;
  EXPECT_EQ(brief.output.find("Most workspace"), std::string::npos) << brief.output;
  const Outcome full = runTool("info --verbose", "CUDA_VISIBLE_DEVICES=");
  EXPECT_LE(widest(full.output), 101U) << full.output;  // "μ-cuDNN" has a byte more
  EXPECT_NE(full.output.find("Accepted: undivided, powerOfTwo or all."), std::string::npos);
}

TEST(Usage, BenchWithoutADeviceSaysSo) {
  const Outcome outcome = runTool("bench " + kAlexNet, "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("no CUDA device"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace ucudnn::test
