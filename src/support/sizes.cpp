#include "support/sizes.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "support/text.hpp"

namespace ucudnn {
namespace {

[[noreturn]] void refuse(const std::string& text, const char* why) {
  throw std::invalid_argument(fmt::format("\"{}\" is not a size: {}", excerpt(text), why));
}

/// Bytes in a unit, whatever its case: "", "B"; "K", "KiB" (1024), "KB" (1000); so on to T. 0: no
/// unit.
std::uint64_t bytesInUnit(std::string_view unit) {
  std::string upper;
  for (const char c : unit) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper.empty() || upper == "B") return 1;
  const auto power = std::string_view("KMGT").find(upper[0]);
  if (power == std::string_view::npos) return 0;
  const std::string rest = upper.substr(1);
  if (rest != "" && rest != "IB" && rest != "B") return 0;
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= rest == "B" ? 1000 : 1024;
  return bytes;
}

/// Computes 0.DIGITS times `unit`, exactly. Returns false if that is not a whole number.
bool fractionOf(std::uint64_t unit, std::string_view digits, std::uint64_t& bytes) {
  while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1);
  constexpr std::size_t kMostDigits =
      18;  // 10^18 is the largest power of ten whose sums fit 64 bits
  if (digits.size() > kMostDigits) return false;
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  for (const char digit : digits) {
    numerator = numerator * 10 + static_cast<std::uint64_t>(digit - '0');
    denominator *= 10;
  }
  const std::uint64_t common = std::gcd(unit, denominator);
  if (numerator % (denominator / common) != 0) return false;
  bytes = numerator / (denominator / common) * (unit / common);
  return true;
}

}  // namespace

std::size_t parseSize(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789";
  std::string_view rest = trimmed(text);
  if (rest.empty()) refuse(text, "it is empty");
  if (rest[0] == '-') refuse(text, "it is negative");

  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), whole);
  if (error == std::errc::invalid_argument) refuse(text, "it does not begin with a number");
  if (error == std::errc::result_out_of_range) refuse(text, "it is too large");
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));

  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = rest.substr(0, rest.find_first_not_of(kDigits));
    if (fraction.empty()) refuse(text, "no digit follows the point");
    rest.remove_prefix(fraction.size());
  }

  const std::uint64_t unit = bytesInUnit(trimmed(rest));
  if (unit == 0)
    refuse(text, "its unit is none of B, KiB, MiB, GiB, TiB, K, M, G, T, KB, MB, GB, TB");
  std::uint64_t bytes = 0;
  if (!fractionOf(unit, fraction, bytes)) refuse(text, "it has a fraction of a byte");
  if (whole > (std::numeric_limits<std::size_t>::max() - bytes) / unit)
    refuse(text, "it is too large");
  return whole * unit + bytes;
}

std::string doubtOfSize(const std::string& text) {
  // Below this a number without a unit is doubted: so few bytes help no convolution, and as MiB it
  // would be much of a GPU's memory.
  constexpr std::uint64_t kLeastMeantAsBytes = 64 << 10;
  const std::string_view number = trimmed(text);
  const char* const end = number.data() + number.size();
  std::uint64_t bytes = 0;
  const auto [rest, error] = std::from_chars(number.data(), end, bytes);
  if (error != std::errc() || rest != end || bytes == 0 || bytes >= kLeastMeantAsBytes) return "";
  return fmt::format("{0} means {0} bytes: write {0}MiB, or {0}B if that is meant", bytes);
}

std::string formatSize(std::size_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 KiB would be printed as "1024.0 KiB", so it is printed in the next unit.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const double tenths = std::round(value * 10);
  const bool isWhole = std::fmod(tenths, 10) == 0;
  return fmt::format("{:.{}f} {}", tenths / 10, isWhole ? 0 : 1, kUnits[unit]);
}

}  // namespace ucudnn
