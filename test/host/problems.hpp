// Problems with packed tensors.
#pragma once

#include <algorithm>
#include <random>

#include "host/tiling.hpp"

namespace ucudnn::test {

/// Packs x and y, and computes y's sizes from all else.
inline void complete(Problem& problem) {
  problem.dimensions = std::max(problem.dimensions, 4);
  problem.ySizes = {problem.xSizes[0], problem.wSizes[0]};
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(problem.dimensions); ++i) {
    const std::int32_t reach = (problem.wSizes[2 + i] - 1) * problem.dilations[i];
    problem.ySizes[2 + i] =
        (problem.xSizes[2 + i] + 2 * problem.pads[i] - reach - 1) / problem.strides[i] + 1;
  }
  const auto pack = [&](const Problem::Sizes& sizes, Problem::Strides& strides) {
    std::int64_t stride = 1;
    for (auto i = static_cast<std::size_t>(problem.dimensions); i-- > 0;) {
      strides[i] = stride;
      stride *= sizes[i];
    }
  };
  pack(problem.xSizes, problem.xStrides);
  pack(problem.ySizes, problem.yStrides);
}

/// One sample of so many channels and filters, 3x3, with padding.
inline Problem planeProblem(Operation operation, std::int32_t channels, std::int32_t size) {
  Problem problem;
  problem.operation = operation;
  problem.xSizes = {1, channels, size, size};
  problem.wSizes = {channels, channels, 3, 3};
  problem.pads = problem.strides = problem.dilations = {1, 1};
  problem.xType = problem.wType = problem.yType = CUDNN_DATA_FLOAT;
  complete(problem);
  return problem;
}

}  // namespace ucudnn::test
