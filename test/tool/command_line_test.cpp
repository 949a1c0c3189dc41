#include "tool/command_line.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tool/failure.hpp"
#include "tool/options.hpp"
#include "tool/run.hpp"

namespace ucudnn::tool {
namespace {

const char* const kAlexNet = UCUDNN_LAYERS "/alexnet.csv";

CommandLine parse(const std::vector<std::string>& arguments) {
  return parseCommandLine(arguments, [] { return Settings(); });
}

TEST(CommandLine, OneLineNamesWhatIsBad) {
  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } kCases[] = {
      {{}, "subcommand is required"},
      {{"bnech"}, "\"bnech\" is no command; there are bench plan shares check info db run"},
      {{"db"}, "subcommand is required"},
      {{"db", "lst"}, "\"lst\" is no command; there are list export import merge prune"},
      {{"bench"}, "LAYERS.csv"},
      {{"bench", kAlexNet, "--nonsense"}, "--nonsense"},
      {{"bench", kAlexNet, "--policy", "some"},
       "--policy: \"some\" is none of undivided, powerOfTwo, all"},
      {{"bench", kAlexNet, "--kernels", "fast"},
       "--kernels: \"fast\" is none of legacy, engines, all"},
      {{"bench", kAlexNet, "--max-error", "-1"}, "--max-error: \"-1\" is no number, as 1e-5"},
      {{"plan", kAlexNet, "--max-error", "1e-5x"}, "--max-error: \"1e-5x\" is no number, as 1e-5"},
      {{"plan", kAlexNet, "--max-error", "nan"}, "--max-error"},
      {{"bench", kAlexNet, "--accuracy"}, "--accuracy"},
      {{"bench", kAlexNet, "--replay", "maybe"}, "--replay: \"maybe\" is none of on, off"},
      {{"plan", kAlexNet, "--replay", "1"}, "--replay: \"1\" is none of on, off"},
      {{"bench", kAlexNet, "--data-type", "int8"},
       "--data-type: \"int8\" is none of float, half, bfloat16, double"},
      {{"bench", kAlexNet, "--math", "x"}, "--math: \"x\" is none of fma, tf32, tensor"},
      {{"bench", kAlexNet, "--layout", "x"}, "--layout: \"x\" is none of nchw, nhwc"},
      {{"bench", kAlexNet, "--arithmetic", "x"},
       "--arithmetic: \"x\" is none of auto, full, sampled, off"},
      {{"bench", kAlexNet, "--operations", "forward,backwards"},
       "--operations: \"backwards\" is none of forward, backward_data, backward_filter"},
      {{"bench", kAlexNet, "--limit", "64 XB"}, "--limit: \"64 XB\""},
      {{"bench", kAlexNet, "--workspace-limit", "-1"}, "--workspace-limit"},
      {{"bench", kAlexNet, "--limit", "1MiB,2XB"}, "--limit: \"2XB\""},
      {{"plan", kAlexNet, "--limit", "1MiB,2MiB"}, "--limit: \"1MiB,2MiB\""},
      {{"bench", kAlexNet, "--limit", "1MiB,2MiB", "--total-workspace", "1MiB"},
       "--limit: name one limit where there is a --total-workspace"},
      {{"bench", kAlexNet, "--repeats", "0"}, "--repeats"},
      {{"bench", kAlexNet, "--batch-size", "many"}, "--batch-size"},
      {{"bench", kAlexNet, "--device", "-1"}, "--device"},
      {{"plan", kAlexNet, "--repeats", "3"}, "--repeats"},
      {{"plan", kAlexNet, "--save", ""}, "--save: names no file"},
      {{"bench", kAlexNet, "--json", ""}, "--json: names no file"},
      {{"bench", kAlexNet, "--database", ""}, "--database: names no file"},
      {{"plan", kAlexNet, "--database", "a.db", "--no-database"}, "--no-database"},
      {{"plan", kAlexNet, "--lp", ""}, "--lp: names no file"},
      {{"bench", kAlexNet, "--devices", "0,1"}, "--data-parallel"},
      {{"bench", kAlexNet, "--data-parallel", "--devices", "0", "--device", "1"}, "--device"},
      {{"shares", kAlexNet, "--devices", "0,-1"}, "--devices"},
      {{"shares", kAlexNet, "--devices", "0,1", "--machine", "NVIDIA H200"}, "--machine"},
      {{"shares", kAlexNet, "--devices", "0,1", "--memory", "0"}, "--memory"},
      {{"shares", kAlexNet, "--devices", "0,1", "--total-workspace", "1MiB"}, "--total-workspace"},
      {{"db", "prune", "--older-than", "soon"}, "--older-than"},
      {{"db", "export"}, "FILE.json"},
  };
  for (const auto& test : kCases) {
    try {
      parse(test.arguments);
      ADD_FAILURE() << "accepted: " << test.part;
    } catch (const BadInput& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(test.part), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(CommandLine, SaysWhatIsAskedFor) {
  const CommandLine bench =
      parse({"bench", kAlexNet, "--limit", "1MiB,64MiB", "--database", "a/", "-v"});
  EXPECT_EQ(bench.task, Task::kBench);
  EXPECT_EQ(bench.bench.limitsBytes, (std::vector<std::size_t>{1 << 20, 64 << 20}));
  EXPECT_EQ(bench.bench.database, "a/");
  EXPECT_TRUE(bench.bench.verbose);
  EXPECT_EQ(bench.words,
            std::string("ucudnn bench ") + kAlexNet + " --limit 1MiB,64MiB --database a/ -v");
  const CommandLine plan = parse({"plan", kAlexNet, "--no-database"});
  EXPECT_EQ(plan.task, Task::kPlan);
  EXPECT_EQ(plan.plan.database, "");
  EXPECT_EQ(parse({"plan", kAlexNet}).plan.database, std::nullopt);
  // The former name, which recorded command lines have.
  EXPECT_EQ(parse({"plan", kAlexNet, "--workspace-limit", "8MiB"}).plan.limitBytes,
            std::size_t{8} << 20);
  EXPECT_EQ(parse({"info"}).task, Task::kInfo);
  const CommandLine shares =
      parse({"shares", kAlexNet, "--devices", "0,2", "--limit", "64MiB,8MiB", "--rest", "1,0.5"});
  EXPECT_EQ(shares.task, Task::kShares);
  EXPECT_EQ(shares.shares.devices, (std::vector<int>{0, 2}));
  EXPECT_EQ(shares.shares.rest, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(shares.shared.limitsBytes, (std::vector<std::size_t>{64 << 20, 8 << 20}));
  const CommandLine parallel = parse({"bench", kAlexNet, "--data-parallel", "--devices", "0,1"});
  EXPECT_EQ(parallel.task, Task::kBench);
  EXPECT_TRUE(parallel.shares.dataParallel);
  const CommandLine merge = parse({"db", "merge", "a.db", "b.db", "c.db"});
  EXPECT_EQ(merge.task, Task::kDatabase);
  EXPECT_EQ(merge.database.task, DatabaseTask::kMerge);
  EXPECT_EQ(merge.database.others, (std::vector<std::string>{"a.db", "b.db", "c.db"}));
}

TEST(CommandLine, HelpExplainsOptionsInGroupsAndFitsATerminal) {
  for (const char* const command : {"", "bench", "plan", "shares", "db", "info"}) {
    std::vector<std::string> arguments = {command, "-h"};
    if (arguments.front().empty()) arguments.erase(arguments.begin());
    const CommandLine line = parse(arguments);
    EXPECT_EQ(line.task, Task::kPrint);
    std::istringstream lines(line.text);
    for (std::string text; std::getline(lines, text);)
      EXPECT_LE(text.size(), 102U) << command;  // "μ-cuDNN" has a byte more
  }
  const std::string bench = parse({"bench", "--help"}).text;
  for (const char* const part : {"Planner (defaults: the UCUDNN_* settings):",
                                 "Development:",
                                 "source,W,H,C_in,N,C_out,kernel_w,kernel_h",
                                 "dilation_w,dilation_h,groups,data_type",
                                 "undivided  the fastest kernel",
                                 "--limit SIZE"})
    EXPECT_NE(bench.find(part), std::string::npos) << part << bench;
  EXPECT_EQ(bench.find("--workspace-limit SIZE"), std::string::npos) << bench;
}

TEST(Options, ParseTheirNames) {
  EXPECT_EQ(parseSizeOption("--workspace-limit", "64MiB"), std::size_t{64} << 20);
  EXPECT_EQ(parseSizeOption("--workspace-limit", "0"), 0U);
  EXPECT_EQ(parseOperations("backward_filter,forward,forward"),
            (std::vector<ucudnnOperation_t>{UCUDNN_BACKWARD_FILTER, UCUDNN_FORWARD}));
  EXPECT_EQ(parseMath("tf32"), CUDNN_DEFAULT_MATH);
  EXPECT_TRUE(parseReplay("on"));
  EXPECT_FALSE(parseReplay("off"));
  EXPECT_EQ(parseArithmetic("auto"), std::nullopt);
  EXPECT_EQ(parseArithmetic("off"), Arithmetic::kOff);
  EXPECT_THROW(parseOperations(""), BadInput);
}

}  // namespace
}  // namespace ucudnn::tool
