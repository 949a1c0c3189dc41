// What a kernel's error is measured against: outputs of a convolution that the host computes in
// double, from the random values that scratch memory holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace ucudnn {

/// One output of a convolution.
struct ExactOutput {
  std::size_t offset = 0;  ///< from the output's first element, in elements
  double value = 0;
};

/// False: an activation that is neither RELU nor none.
bool hasExactOutputs(const Problem& problem) noexcept;

/// The error of so many outputs repeats within 5 %.
constexpr int kMostOutputs = 256;

/// Some outputs of the problem, spread over all: enough for an error that repeats within a fifth,
/// few enough for some 0.1 s of the host, or as much longer as more are asked for. Each tensor
/// holds the values of fillRandom, bias is 0, alpha is 1, and so is the factor of a z that holds
/// what y does; else beta is 0. REQUIRES: hasExactOutputs.
std::vector<ExactOutput> exactOutputs(const Problem& problem, int most = kMostOutputs);

/// What is further off than noise of the outputs' own size is of no more use.
constexpr double kLargestError = 2;

/// ||result - exact|| / ||exact||, at most kLargestError: so much too where a result is no number.
double normalizedError(const std::vector<ExactOutput>& exact, const std::vector<double>& result);

/// A quarter of the type's unit roundoff: even outputs that are rounded once are further off.
double leastError(std::int32_t outputType) noexcept;

}  // namespace ucudnn
