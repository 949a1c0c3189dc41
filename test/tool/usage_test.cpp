// The whole tool where no device is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

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

TEST(Usage, MessagesAreBoundedAndPrintable) {
  const std::string longText(100000, 'a');
  expectRefused(runTool(longText), "\"" + std::string(97, 'a') + "...\" is no command");
  for (const std::string& arguments : {"bench " + longText,
                                       "bench " + kAlexNet + " --" + longText,
                                       "bench " + kAlexNet + " --policy " + longText,
                                       "bench " + kAlexNet + " --batch-size " + longText,
                                       "bench " + kAlexNet + " --layers " + longText,
                                       "bench " + kAlexNet + " --workspace-limit " + longText,
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
  EXPECT_NE(outcome.output.find("UCUDNN_BATCH_SIZE_POLICY        all"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("loud (refused: "), std::string::npos) << outcome.output;
}

TEST(Usage, BenchWithoutADeviceSaysSo) {
  const Outcome outcome = runTool("bench " + kAlexNet, "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("no CUDA device"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace ucudnn::test
