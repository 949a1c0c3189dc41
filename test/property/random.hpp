// Random choices that are the same with every standard library: a seed replays anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ucudnn::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

  int between(int first, int last) {
    return first + static_cast<int>(next() % static_cast<std::uint64_t>(last - first + 1));
  }

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

  template <typename Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[below(values.size())];
  }

  template <typename Value>
  const Value& pick(const std::vector<Value>& values) {
    return values[below(values.size())];
  }

  /// An independent sequence, for a thread or a part whose number of choices varies.
  Random split() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace ucudnn::test
