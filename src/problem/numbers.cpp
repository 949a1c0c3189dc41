#include "problem/numbers.hpp"

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "problem/problem.hpp"

namespace ucudnn {
namespace {

template <typename Number, typename Word>
double fromBits(Word word) noexcept {
  static_assert(sizeof(Number) == sizeof(Word));
  Number number = 0;
  std::memcpy(&number, &word, sizeof number);
  return static_cast<double>(number);
}

double halfToDouble(std::uint64_t bits) noexcept {
  const auto exponent = static_cast<int>(bits >> 10 & 0x1F);
  const auto mantissa = static_cast<double>(bits & 0x3FF);
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == 0x1F)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  return sign * std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, std::max(exponent, 1) - 25);
}

double toDouble(std::uint64_t bits, std::int32_t dataType) noexcept {
  switch (dataType) {
    case CUDNN_DATA_DOUBLE:
      return fromBits<double>(bits);
    case CUDNN_DATA_HALF:
      return halfToDouble(bits);
    case CUDNN_DATA_BFLOAT16:
      return fromBits<float>(static_cast<std::uint32_t>(bits << 16));
    default:
      return fromBits<float>(static_cast<std::uint32_t>(bits));
  }
}

template <typename Word, typename Number>
std::uint64_t wordOf(Number number) noexcept {
  static_assert(sizeof(Number) == sizeof(Word));
  Word word = 0;
  std::memcpy(&word, &number, sizeof word);
  return word;
}

std::uint64_t halfOf(float value) noexcept {
  constexpr int kLeastExponent = -14;  // smaller numbers have no leading one
  const int exponent = value != 0 ? std::max(std::ilogb(value), kLeastExponent) : kLeastExponent;
  // A mantissa that rounds up to the next power of two carries over into the exponent.
  const auto mantissa = std::lrint(std::ldexp(std::fabs(value), 10 - exponent));
  const auto bits = static_cast<std::uint64_t>(((exponent - kLeastExponent) << 10) + mantissa);
  return bits | (std::signbit(value) ? 0x8000 : 0);
}

std::uint64_t brainOf(float value) noexcept {
  const std::uint64_t word = wordOf<std::uint32_t>(value);
  return (word + 0x7FFF + (word >> 16 & 1)) >> 16;
}

}  // namespace

std::uint64_t bitsOf(float value, std::int32_t dataType) noexcept {
  switch (dataType) {
    case CUDNN_DATA_DOUBLE:
      return wordOf<std::uint64_t>(static_cast<double>(value));
    case CUDNN_DATA_HALF:
      return halfOf(value);
    case CUDNN_DATA_BFLOAT16:
      return brainOf(value);
    default:
      return wordOf<std::uint32_t>(value);
  }
}

std::vector<double> toDoubles(const void* memory, std::size_t count, std::int32_t dataType) {
  const std::size_t bytes = elementBytes(dataType);
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;  // GPUs and their hosts are little-endian
    std::memcpy(&bits, static_cast<const char*>(memory) + i * bytes, bytes);
    numbers[i] = toDouble(bits, dataType);
  }
  return numbers;
}

}  // namespace ucudnn
