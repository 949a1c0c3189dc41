// A convolution along one of its spatial dimensions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "problem/problem.hpp"

namespace ucudnn {

/// In 64 bits, because a size may be the largest number of 32 bits.
struct SpatialLine {
  std::int64_t x, y, step, pad;
  std::int64_t reach;  ///< from the filter's first tap to its last

  SpatialLine(const Problem& problem, std::size_t spatial) noexcept
      : x(problem.xSizes[2 + spatial]),
        y(problem.ySizes[2 + spatial]),
        step(problem.strides[spatial]),
        pad(problem.pads[spatial]),
        reach((std::int64_t{problem.wSizes[2 + spatial]} - 1) * problem.dilations[spatial]) {}
};

}  // namespace ucudnn
