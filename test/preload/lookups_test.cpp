// dlsym on cuDNN's own handle.
#include <gtest/gtest.h>

#include <sstream>
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

TEST(LookUps, InCudnnsHandleFindOurs) {
  EXPECT_EQ(kCudnns, shell(kClient).output);
  EXPECT_EQ(kOurs, shell(preloading(UCUDNN_PRELOAD) + kClient).output);
}

TEST(LookUps, FindCudnnsWhereWeAreDisabled) {
  EXPECT_EQ(kCudnns, shell("UCUDNN_DISABLE=1 " + preloading(UCUDNN_PRELOAD) + kClient).output);
}

TEST(LookUps, GoThroughAnotherPreloadBehindUs) {
  const Outcome outcome = shell(preloading(UCUDNN_PRELOAD ":" OTHER_LOOKUPS) + kClient);
  EXPECT_EQ(0U, outcome.output.find("constructor libucudnn_preload.so\n")) << outcome.output;
  EXPECT_NE(std::string::npos, outcome.output.find("the other was called")) << outcome.output;
  EXPECT_EQ(0, outcome.status);
}

TEST(LookUps, InFrontOfUsAreTheOthers) {
  const Outcome outcome = shell(preloading(OTHER_LOOKUPS ":" UCUDNN_PRELOAD) + kClient);
  EXPECT_EQ(0U, outcome.output.find("constructor libcudnn.so.9\n")) << outcome.output;
  EXPECT_EQ(0, outcome.status);
}

// A million look-ups of each kind.
TEST(LookUps, TakeAtMost100NanosecondsMore) {
  std::istringstream times(shell(preloading(UCUDNN_PRELOAD) + kClient + "time").output);
  std::string constructors;
  std::getline(times, constructors);
  int count = 0;
  for (double more = 0; times >> more; ++count) EXPECT_LE(more, 100);
  EXPECT_EQ(3, count);
}

}  // namespace
}  // namespace ucudnn::test
