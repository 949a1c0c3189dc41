// Which source element each filter tap meets at each destination position.
#pragma once

#include <array>
#include <vector>

#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {

/// For each spatial dimension a table: at(dim, tap, position) is the source coordinate that filter
/// tap `tap` meets at destination coordinate `position`, or -1 where it meets padding (or,
/// backward, falls between two strides). Forward and backward filter go from x (source) to y
/// (destination), backward data from y to x.
struct Taps {
  std::array<int, 3> filter{1, 1, 1};
  std::array<int, 3> source{1, 1, 1};
  std::array<int, 3> destination{1, 1, 1};
  std::array<std::vector<int>, 3> table;

  explicit Taps(const ConvolutionProblem& problem);

  int at(std::size_t dim, int tap, int position) const {
    return table[dim][static_cast<std::size_t>(tap * destination[dim] + position)];
  }
  int filterSize() const { return filter[0] * filter[1] * filter[2]; }
  int sourceSize() const { return source[0] * source[1] * source[2]; }
  int destinationSize() const { return destination[0] * destination[1] * destination[2]; }
};

}  // namespace ucudnn::simulator
