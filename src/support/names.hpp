// Enumerators and their names, listed in the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>

namespace ucudnn {

template <typename Value, std::size_t kCount>
const char* nameOf(Value value, const char* const (&names)[kCount]) noexcept {
  const auto place = static_cast<std::size_t>(value);
  return place < kCount ? names[place] : "unknown";
}

/// Throws std::invalid_argument with the message `refusal`.
template <typename Value, std::size_t kCount>
Value named(const std::string& text, const char* const (&names)[kCount], const char* refusal) {
  const auto* const found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) throw std::invalid_argument(refusal);
  return static_cast<Value>(found - std::begin(names));
}

}  // namespace ucudnn
