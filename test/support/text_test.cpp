#include "support/text.hpp"

#include <gtest/gtest.h>

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
