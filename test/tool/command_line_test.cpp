#include "tool/command_line.hpp"

#include <gtest/gtest.h>

#include "tool/failure.hpp"
#include "tool/options.hpp"
#include "tool/run.hpp"

namespace ucudnn::tool {
namespace {

const char* const kAlexNet = UCUDNN_LAYERS "/alexnet.csv";

TEST(CommandLine, OneLineNamesWhatIsBad) {
  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } kCases[] = {
      {{}, "subcommand is required"},
      {{"bnech"}, "\"bnech\" is no command; there are bench plan info db run"},
      {{"db"}, "subcommand is required"},
      {{"db", "lst"}, "\"lst\" is no command; there are list export import merge prune"},
      {{"bench"}, "LAYERS.csv"},
      {{"bench", kAlexNet, "--nonsense"}, "--nonsense"},
      {{"bench", kAlexNet, "--policy", "some"},
       "--policy: \"some\" is none of undivided, powerOfTwo, all"},
      {{"bench", kAlexNet, "--kernels", "fast"},
       "--kernels: \"fast\" is none of legacy, engines, all"},
      {{"bench", kAlexNet, "--max-error", "0"}, "--max-error: \"0\" is no number above 0"},
      {{"plan", kAlexNet, "--max-error", "1e-5x"}, "--max-error: \"1e-5x\" is no number above 0"},
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
      {{"bench", kAlexNet, "--workspace-limit", "64 XB"}, "--workspace-limit: \"64 XB\""},
      {{"bench", kAlexNet, "--workspace-limit", "-1"}, "--workspace-limit"},
      {{"bench", kAlexNet, "--workspace-limit", "1MiB,2XB"}, "--workspace-limit: \"2XB\""},
      {{"plan", kAlexNet, "--workspace-limit", "1MiB,2MiB"}, "--workspace-limit: \"1MiB,2MiB\""},
      {{"bench", kAlexNet, "--workspace-limit", "1MiB,2MiB", "--total-workspace", "1MiB"},
       "--workspace-limit: of several none goes with --total-workspace"},
      {{"bench", kAlexNet, "--repeats", "0"}, "--repeats"},
      {{"bench", kAlexNet, "--batch-size", "many"}, "--batch-size"},
      {{"bench", kAlexNet, "--device", "-1"}, "--device"},
      {{"plan", kAlexNet, "--repeats", "3"}, "--repeats"},
      {{"plan", kAlexNet, "--save", ""}, "--save: names no file"},
      {{"bench", kAlexNet, "--json", ""}, "--json: names no file"},
      {{"bench", kAlexNet, "--csv", ""}, "--csv: names no file"},
      {{"plan", kAlexNet, "--lp", ""}, "--lp: names no file"},
      {{"db", "prune", "--older-than", "soon"}, "--older-than"},
      {{"db", "export"}, "FILE.json"},
  };
  for (const auto& test : kCases) {
    try {
      parseCommandLine(test.arguments);
      ADD_FAILURE() << "accepted: " << test.part;
    } catch (const BadInput& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(test.part), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(CommandLine, BadFilesAreFoundWhenTheCommandRuns) {
  EXPECT_THROW(parseCommandLine({"bench", "/nonexistent.csv"})(), BadInput);
  EXPECT_THROW(parseCommandLine({"bench", kAlexNet, "--layers", "fc*"})(), BadInput);
  EXPECT_THROW(parseCommandLine({"bench", kAlexNet, "--json", "/nonexistent/file.json"})(),
               BadInput);
  EXPECT_THROW(parseCommandLine({"plan", "/nonexistent.csv"})(), BadInput);
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
