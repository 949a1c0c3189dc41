#include "support/text.hpp"

#include <gtest/gtest.h>

#include "support/problem_text.hpp"

namespace ucudnn {
namespace {

TEST(TextTest, PrintableTextStaysAsItIs) {
  for (const char* text : {"", "conv1", "a, \"b\" \\ ~", "μ-cuDNN", "層", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(isPrintable(text)) << text;
    EXPECT_EQ(text, printable(text));
  }
}

TEST(TextTest, WhatIsNotPrintableIsWrittenAsItsBytes) {
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\0", 1), "\\x00"},
      {"\x1b[31mred\n", "\\x1b[31mred\\x0a"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b", "\\xc2\\x9b"},           // a control character of Latin-1
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},  // right to left
      {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},  // a line's end
      {"a\xff", "a\\xff"},                  // no UTF-8 at all
      {"\xc3", "\\xc3"},                    // cut short
      {"\xc3(", "\\xc3("},                  // not continued
      {"\xc0\xaf", "\\xc0\\xaf"},           // longer than needed
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // half of a UTF-16 pair
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond Unicode
      {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_FALSE(isPrintable(text)) << expected;
    EXPECT_EQ(expected, printable(text));
    EXPECT_TRUE(isPrintable(printable(text)));
  }
}

TEST(TextTest, AProblemIsWrittenAsAPersonWould) {
  const std::string tensors =
      " x=float:*,64,27,27/46656,729,27,1 w=float:192,64,5,5/nchw "
      "y=float:*,192,27,27/139968,729,27,1";
  EXPECT_EQ("bwd filter 64x27x27 k192 5x5 pad 2x2 stride 1x1, float",
            shortProblemText("backward_filter" + tensors +
                             " pad=2,2 stride=1,1 dilation=1,1 groups=1 cross_correlation "
                             "compute=float math=default"));
  EXPECT_EQ(
      "forward 8x4x6x6 k16 1x3x3 pad 0x1x1 stride 1x2x2 dilation 1x1x2 groups 2, half, fma, "
      "nhwc, mirrored, transform=none",
      shortProblemText("forward x=half:*,8,4,6,6/1152,144,36,6,1 w=half:16,4,1,3,3/nhwc "
                       "y=half:*,16,4,3,3/576,36,9,3,1 pad=0,1,1 stride=1,2,2 "
                       "dilation=1,1,2 groups=2 convolution compute=float math=fma "
                       "transform=none"));
  for (const std::string& other :
       {std::string(), std::string("forward"), "forward" + tensors, std::string("a x=*,1/ w=:1/")})
    EXPECT_EQ(other, shortProblemText(other)) << "of another form";
}

TEST(TextTest, AnExcerptIsCutBetweenCharacters) {
  EXPECT_EQ("abcdef", excerpt("abcdef", 6));
  EXPECT_EQ("abc...", excerpt("abcdefg", 6));
  EXPECT_EQ("ab...", excerpt("ab\x1b\x1b", 6));
  EXPECT_EQ("a...", excerpt("aμμμ", 5));
  EXPECT_EQ("...", excerpt("abcdefg", 3));
  EXPECT_EQ("..", excerpt("abcdefg", 2));
  EXPECT_EQ("", excerpt("abcdefg", 0));
  EXPECT_EQ(100U, excerpt(std::string(20000000, 'a')).size());
}

}  // namespace
}  // namespace ucudnn
