// dlsym on cuDNN's own handle.
#include <gtest/gtest.h>

#include <string>

#include "preload/process.hpp"

namespace ucudnn::test {
namespace {

const std::string kClient = std::string(LOOKUP_CLIENT) + " ";

std::string answers(const std::string& cudnns) {
  return "constructor " + cudnns + "\nhandle " + cudnns +
         "\nanother libcudnn.so.9\nerror none\nmissing is said\nnext libc.so.6\nchild " + cudnns +
         "\n";
}
const std::string kOurs = answers("libucudnn_preload.so"), kCudnns = answers("libcudnn.so.9");
const std::string kFirst = "constructor libucudnn_preload.so\n";

std::string outputOf(const std::string& line) {
  const Outcome outcome = shell(line);
  EXPECT_EQ(0, outcome.status) << outcome.output << outcome.error;
  EXPECT_EQ("", outcome.error);
  return outcome.output;
}

TEST(LookUps, InCudnnsHandleFindOurs) {
  EXPECT_EQ(kCudnns, outputOf(kClient));
  EXPECT_EQ(kOurs, outputOf(preloading(UCUDNN_PRELOAD) + kClient));
}

TEST(LookUps, FindCudnnsWhereWeAreDisabled) {
  EXPECT_EQ(kCudnns, outputOf("UCUDNN_DISABLE=1 " + preloading(UCUDNN_PRELOAD) + kClient));
}

TEST(LookUps, FindOursUnderAnAudit) {
  const std::string audit = "LD_AUDIT=" AUDIT " ", told = "the audit was told\n";
  EXPECT_EQ(kCudnns + told, outputOf(audit + kClient));
  EXPECT_EQ(kOurs + told, outputOf(audit + preloading(UCUDNN_PRELOAD) + kClient));
  EXPECT_EQ(kFirst + "made and ended\n" + told,
            outputOf(audit + preloading(UCUDNN_PRELOAD) + kClient + "handles"));
}

TEST(LookUps, GoThroughAnotherPreloadBehindUs) {
  const std::string output = outputOf(preloading(UCUDNN_PRELOAD ":" OTHER_LOOKUPS) + kClient);
  EXPECT_EQ(0U, output.find(kFirst)) << output;
  EXPECT_NE(std::string::npos, output.find("the other: ")) << output;
}

TEST(LookUps, AreAnotherPreloadsInFrontOfUs) {
  const std::string output = outputOf(preloading(OTHER_LOOKUPS ":" UCUDNN_PRELOAD) + kClient);
  EXPECT_EQ(0U, output.find("constructor libcudnn.so.9\n")) << output;
}

// We call the other's function, and it one that it looks up.
TEST(LookUps, OfALibraryBetweenUsAndCudnnDoNotRecur) {
  const std::string handles = kClient + "handles";
  for (const char* const setting : {"", "UCUDNN_DISABLE=1 "}) {
    const std::string output =
        outputOf(setting + preloading(UCUDNN_PRELOAD ":" OTHER_LOOKUPS) + handles);
    EXPECT_NE(std::string::npos, output.find("made and ended\n")) << output;
    // Disabled, the client finds cuDNN's own.
    EXPECT_NE(std::string::npos, output.find(*setting == '\0' ? ", 1 handles\n" : ", 0 handles\n"))
        << output;
  }
}

TEST(LookUps, AMillionFindTheSame) {
  const std::string found =
      "cudnnConvolutionForward libucudnn_preload.so\n"
      "cudnnBackendExecute libucudnn_preload.so\n"
      "cudnnGetVersion libcudnn.so.9\n";
  // Of a forked child, and of its parent.
  EXPECT_EQ(kFirst + found + found, outputOf(preloading(UCUDNN_PRELOAD) + kClient + "million"));
  EXPECT_EQ(kFirst + found + found + "the audit was told\n",
            outputOf("LD_AUDIT=" AUDIT " " + preloading(UCUDNN_PRELOAD) + kClient + "million"));
  // One look-up of the program is one of the next dlsym.
  const std::string output =
      outputOf(preloading(UCUDNN_PRELOAD ":" OTHER_LOOKUPS) + kClient + "million");
  const std::string words = "the other: ";
  const std::size_t place = output.find(words);
  ASSERT_NE(std::string::npos, place) << output;
  const long lookUps = std::stol(output.substr(place + words.size()));
  EXPECT_LE(3000000, lookUps);
  EXPECT_GE(3001000, lookUps);  // what is found out once
}

TEST(LookUps, ChildrenForkedAmidThemDoNotHang) {
  EXPECT_EQ(kFirst + "no child hung\n", outputOf(preloading(UCUDNN_PRELOAD) + kClient + "forks"));
}

}  // namespace
}  // namespace ucudnn::test
