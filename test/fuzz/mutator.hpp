// Changes inputs at random, the same way for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ucudnn::fuzz {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) {
    return end < 2 ? 0 : std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  bool oneIn(std::size_t n) { return below(n) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  /// A few changes: bytes, numbers, tokens, pieces left out, repeated, moved, or taken from
  /// `other`.
  std::string mutate(std::string bytes, const std::string& other);

 private:
  void mutateOnce(std::string& bytes, const std::string& other);

  std::mt19937_64 random_;
};

}  // namespace ucudnn::fuzz
