// The README's table of settings against the one in the code.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/settings.hpp"

namespace ucudnn {
namespace {

std::vector<std::string> tableRows() {
  std::ifstream readme(UCUDNN_README);
  EXPECT_TRUE(readme) << UCUDNN_README;
  std::vector<std::string> rows;
  for (std::string line; std::getline(readme, line);) {
    if (!line.empty() && line[0] == '|') rows.push_back(line);
  }
  return rows;
}

TEST(ReadmeTest, TableNamesEverySettingItsDefaultAndItsHelp) {
  const auto rows = tableRows();
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const std::string begin = "| `" + std::string(variable.name) + "` |";
    const std::string row =
        begin + " " + variable.type + " | " + variable.defaultValue + " | " + variable.help + " |";
    int found = 0;
    for (const std::string& line : rows) {
      if (line.compare(0, begin.size(), begin) != 0) continue;
      ++found;
      EXPECT_EQ(row, line);
    }
    EXPECT_EQ(1, found) << "rows for this setting; expected:\n" << row;
  }
}

}  // namespace
}  // namespace ucudnn
