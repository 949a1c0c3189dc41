// The pages' settings against the table in the code.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/settings.hpp"

namespace ucudnn {
namespace {

std::string read(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// With one blank in place of blanks and line ends.
std::string unwrapped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool isBlank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!isBlank)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  return result;
}

int countOf(const std::string& part, const std::string& text) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SettingsPageTest, HasEverySettingInOrderItsValuesDefaultAndHelp) {
  const std::string page = unwrapped(read(UCUDNN_SETTINGS_PAGE));
  std::size_t before = 0;
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const std::string heading = std::string("### `") + variable.name + "` ";
    EXPECT_EQ(1, countOf(heading, page)) << variable.name;
    const auto begin = page.find(heading);
    if (begin == std::string::npos) continue;
    EXPECT_LT(before, begin) << variable.name << ": the table has another order";
    before = begin;
    const std::string section = page.substr(begin, page.find(" ## ", begin) - begin);
    const std::string own = section.substr(0, section.find(" ### "));
    for (const std::string& part : {std::string("- Values: ") + variable.type + " - ",
                                    std::string("- Default: ") + variable.defaultValue + " ",
                                    " " + unwrapped(variable.help) + "."})
      EXPECT_EQ(1, countOf(part, own)) << "in the section of " << variable.name << ": " << part;
  }
  EXPECT_EQ(static_cast<int>(environmentVariables().size()),
            countOf("### `UCUDNN_", page) + countOf("### `CUDNN_", page));
}

TEST(ReadmeTest, NamesEightEverydaySettingsAndTheirDefaults) {
  const std::string page = read(UCUDNN_README);
  int found = 0;
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const std::string begin = std::string("\n| `") + variable.name + "` | ";
    const auto at = page.find(begin);
    if (at == std::string::npos) continue;
    ++found;
    EXPECT_EQ(0u, page.substr(at).find(begin + variable.defaultValue + " | ")) << variable.name;
  }
  EXPECT_EQ(8, found);
  for (int i = 0; i < 8; ++i) {  // the table begins with them
    const std::string name = environmentVariables()[static_cast<std::size_t>(i)].name;
    EXPECT_EQ(1, countOf("\n| `" + name + "` | ", page)) << name;
  }
  EXPECT_EQ(found, countOf("\n| `UCUDNN_", page)) << "one is not known";
}

}  // namespace
}  // namespace ucudnn
