#include "mutator.hpp"

#include <algorithm>

namespace ucudnn::fuzz {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 22;

const std::vector<std::string>& tokens() {
  static const std::vector<std::string> instance = {"0",
                                                    "-1",
                                                    "1e308",
                                                    "-1e-308",
                                                    "1e999",
                                                    "nan",
                                                    "inf",
                                                    "2147483648",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "18446744073709551616",
                                                    "null",
                                                    "true",
                                                    "{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    "[[[[[[[[",
                                                    "\"",
                                                    "\\",
                                                    "\\u0000",
                                                    "\\ud800",
                                                    ",",
                                                    ",,",
                                                    ":",
                                                    "\n",
                                                    "\r",
                                                    "\t",
                                                    "#",
                                                    "=",
                                                    " ",
                                                    "/fma",
                                                    "/default",
                                                    "asked all",
                                                    "K",
                                                    "MiB",
                                                    "all",
                                                    std::string("\0", 1),
                                                    "\x1b[2J",
                                                    "\x7f",
                                                    "\xff\xfe",
                                                    "\xc0\xaf",
                                                    "\xe2\x80\xa8",
                                                    "%s%n",
                                                    "{}",
                                                    "../",
                                                    "SQLite format 3"};
  return instance;
}

}  // namespace

void Mutator::mutateOnce(std::string& bytes, const std::string& other) {
  const std::size_t at = below(bytes.size() + 1);
  const std::size_t most = std::min<std::size_t>(bytes.size() - at, oneIn(4) ? 5000 : 40);
  const std::size_t length = below(most + 1);
  switch (below(10)) {
    case 0:  // one bit
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      break;
    case 1:  // one byte
      if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
      break;
    case 2: {  // a number of up to eight bytes, at its edge
      constexpr unsigned char kEdges[] = {0x00, 0xff, 0x7f, 0x80, 0x01};
      const std::size_t width =
          std::min<std::size_t>(std::size_t{1} << below(4), bytes.size() - at);
      for (std::size_t i = 0; i < width; ++i)
        bytes[at + i] = static_cast<char>(i == 0 ? kEdges[below(5)] : kEdges[below(2)]);
      break;
    }
    case 3:
      bytes.insert(at, pick(tokens()));
      break;
    case 4: {
      const std::string& token = pick(tokens());
      bytes.replace(at, std::min(token.size(), bytes.size() - at), token);
      break;
    }
    case 5:
      bytes.erase(at, length);
      break;
    case 6:  // once more, or often
      for (std::size_t times = oneIn(20) ? below(2000) : 1; times > 0 && bytes.size() < kMostBytes;
           --times)
        bytes.insert(at, bytes.substr(at, length));
      break;
    case 7: {
      const std::string piece = bytes.substr(at, length);
      bytes.replace(below(bytes.size() + 1), oneIn(2) ? 0 : length, piece);
      break;
    }
    case 8:
      if (!other.empty())
        bytes.replace(at, oneIn(2) ? 0 : length, other.substr(below(other.size()), length + 1));
      break;
    default:
      if (oneIn(8)) bytes.resize(at);
  }
}

std::string Mutator::mutate(std::string bytes, const std::string& other) {
  for (std::size_t times = 1 + below(oneIn(4) ? 40 : 5); times > 0; --times)
    mutateOnce(bytes, other);
  if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
  return bytes;
}

}  // namespace ucudnn::fuzz
