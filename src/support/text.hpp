// Makes text from outside fit for a terminal, a log and a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ucudnn {

/// Longest message or log line in bytes, its beginning included.
constexpr std::size_t kMostMessageBytes = 500;

/// Whether `text` is UTF-8 without control characters and without characters that reorder or break
/// a line.
bool isPrintable(std::string_view text);

/// `text` without the blanks at its ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// `text` with \xNN for each byte that is not part of a printable character.
std::string printable(std::string_view text);

/// The same, cut to at most `most` bytes; a cut text ends in "...". For quotes in messages.
std::string excerpt(std::string_view text, std::size_t most = 100);

}  // namespace ucudnn
