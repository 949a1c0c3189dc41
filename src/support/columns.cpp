#include "support/columns.hpp"

#include <algorithm>
#include <sstream>

namespace ucudnn {

std::size_t terminalWidth(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits = used + 1 + terminalWidth(word) <= columns;
    if (!lines.empty()) lines += fits ? ' ' : '\n';
    used = (lines.empty() || !fits ? 0 : used + 1) + terminalWidth(word);
    lines += word;
  }
  return lines;
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string lines = indent + wrapped(text, kMostColumns - indent.size());
  for (std::size_t end = 0; (end = lines.find('\n', end)) != std::string::npos;)
    lines.insert(++end, indent);
  return lines;
}

}  // namespace ucudnn
