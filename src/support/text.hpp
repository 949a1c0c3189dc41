// Text from outside, made fit for a terminal, a log and a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ucudnn {

/// No message or log line is longer, its beginning included; in bytes.
constexpr std::size_t kMostMessageBytes = 500;

/// Whether `text` is UTF-8 without control characters and without what reorders or breaks a line.
bool isPrintable(std::string_view text);

/// `text` without what is blank at its ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// `text` with \xNN for each byte of what is not printable.
std::string printable(std::string_view text);

/// The same, cut to at most `most` bytes and then ending in "...": for what a message quotes.
std::string excerpt(std::string_view text, std::size_t most = 100);

}  // namespace ucudnn
