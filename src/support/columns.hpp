// Texts for people, no wider than a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace ucudnn {

/// No line of a help text, a table or a report is wider; few terminals are narrower.
constexpr std::size_t kMostColumns = 100;

/// Columns on a terminal: UTF-8's continuation bytes take none.
std::size_t terminalWidth(const std::string& text);

/// The text with line breaks in place of spaces if lines would be wider. A word that is wider has
/// its own line.
std::string wrapped(const std::string& text, std::size_t columns);

/// The same with `indent` before each line, which fits kMostColumns with it.
std::string indented(const std::string& text, const std::string& indent);

}  // namespace ucudnn
