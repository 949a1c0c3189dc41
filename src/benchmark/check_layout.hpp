// Where tensors lie when a kernel is checked, and what it must leave as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "benchmark/exact_outputs.hpp"
#include "benchmark/random_values.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The bytes in `kept` for the outputs of one run.
constexpr std::size_t kKeptOutputBytes = kMostOutputs * sizeof(double);

struct Region {
  std::size_t begin = 0, bytes = 0;
  std::size_t end() const noexcept { return begin + bytes; }
};

/// Tensors in one block, one behind the other, a guard before and behind each. The workspace comes
/// last: only what follows it depends on its size.
struct CheckLayout {
  CheckLayout() = default;
  /// `knowsY`: y is an input that holds random numbers.
  CheckLayout(const Problem& problem, std::size_t workspaceBytes, bool knowsY, bool repeats);

  /// A kernel must leave it as it is: a guard, or an end of an input.
  struct Piece {
    Region region;
    const char* name;                    ///< of the tensor, or the one before the guard
    std::optional<RandomTensor> tensor;  ///< empty: a guard, all NaNs
    std::int32_t type = 0;
    std::size_t offset = 0;  ///< in the tensor
  };

  Region random;  ///< a copy of the block that fillRandom takes; empty if there is more than one
  Region w, bias, x, y, z, workspace;
  Region output;  ///< one of these
  /// One behind the other, but for gaps within tensors.
  std::vector<Piece> pieces;
  Region kept;    ///< copies of outputs, twice, and of all pieces, to be read at once
  Region others;  ///< another stream's, if there is a second run
  std::size_t bytes = 0;

 private:
  void add(Region& region, std::size_t size);
  void addPieces(const Problem& problem, bool knowsY);
};

}  // namespace ucudnn
