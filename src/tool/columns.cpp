#include "tool/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "support/text.hpp"

namespace ucudnn::tool {
namespace {

/// Where character `index` begins; the size if the text has fewer.
std::size_t offsetOf(const std::string& text, std::size_t index) {
  std::size_t offset = 0;
  for (; offset < text.size(); ++offset)
    if ((static_cast<unsigned char>(text[offset]) & 0xC0) != 0x80 && index-- == 0) break;
  return offset;
}

constexpr const char* kLeftOut = "...";

std::vector<std::size_t> widthsOf(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], terminalWidth(line[i]));
  }
  return widths;
}

constexpr std::size_t kGap = 2;  // between columns

}  // namespace

std::size_t columnsLeft(const std::vector<std::vector<std::string>>& cells) {
  constexpr std::size_t kLeast = 18;  // "12 x 128 + 10 more"
  std::size_t used = 0;
  for (const std::size_t columns : widthsOf(cells)) used += columns + kGap;
  return std::max(kMostColumns - std::min(kMostColumns, used), kLeast);
}

std::string shortened(const std::string& text, std::size_t columns) {
  const std::size_t all = terminalWidth(text);
  if (all <= columns) return text;
  const std::size_t kept = columns - std::strlen(kLeftOut);
  const std::size_t begin = (kept + 1) / 2;
  return text.substr(0, offsetOf(text, begin)) + kLeftOut +
         text.substr(offsetOf(text, all - (kept - begin)));
}

std::string milliseconds(const std::optional<double>& value) {
  constexpr double kManyDigits = 1000;  // no timing is known to a part in a million
  return !value ? "-" : fmt::format("{:.{}f}", *value, *value < kManyDigits ? 3 : 1);
}

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "-";
}

void writeColumns(std::ostream& stream,
                  const std::vector<std::vector<std::string>>& cells,
                  std::size_t leftColumns) {
  std::vector<std::vector<std::string>> lines = cells;
  // Names come from databases and from drivers, too.
  for (auto& line : lines)
    for (std::string& cell : line) cell = printable(cell);
  const std::vector<std::size_t> widths = widthsOf(lines);
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - terminalWidth(line[i]), ' ');
      const bool left = i < leftColumns || i + 1 == widths.size();
      text += std::string(i == 0 ? 0 : kGap, ' ') + (left ? line[i] + padding : padding + line[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    stream << text << '\n';
  }
}

}  // namespace ucudnn::tool
