#include "support/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace ucudnn {
namespace {

constexpr std::string_view kCut = "...";

struct Character {
  std::size_t bytes;
  bool isPrintable;
};

bool isControl(std::uint32_t code) {
  const bool isC0OrC1 = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool breaksLine = code == 0x2028 || code == 0x2029;
  const bool reorders = code == 0x061c || code == 0x200e || code == 0x200f ||
                        (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return isC0OrC1 || breaksLine || reorders;
}

/// The first character of `text`, which is not empty. A byte that begins no character counts as
/// one.
Character firstOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first < 0x80             ? 1
                            : (first & 0xE0) == 0xC0 ? 2
                            : (first & 0xF0) == 0xE0 ? 3
                            : (first & 0xF8) == 0xF0 ? 4
                                                     : 0;
  if (bytes == 0 || bytes > text.size()) return {1, false};
  std::uint32_t code = bytes == 1 ? first : first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {1, false};
    code = code << 6 | (next & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeastCode = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeastCode[bytes] || isSurrogate || code > 0x10FFFF) return {1, false};
  return {bytes, !isControl(code)};
}

void appendEscaped(std::string& result, std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]};
  }
}

}  // namespace

bool isPrintable(std::string_view text) {
  while (!text.empty()) {
    const Character character = firstOf(text);
    if (!character.isPrintable) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  return excerpt(text, std::numeric_limits<std::size_t>::max());
}

std::string excerpt(std::string_view text, std::size_t most) {
  std::string result;
  std::size_t whole = 0;  // length that stays if the rest is cut
  while (!text.empty()) {
    const Character character = firstOf(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    if (character.isPrintable)
      result += bytes;
    else
      appendEscaped(result, bytes);
    if (result.size() > most) {
      result.resize(whole);
      return result.append(kCut.substr(0, std::min(most, kCut.size())));
    }
    if (result.size() + kCut.size() <= most) whole = result.size();
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace ucudnn
