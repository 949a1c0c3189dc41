// Reference outputs for a kernel's error: the host computes them in double, from the random values
// that scratch memory holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/windows.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// One output of a convolution.
struct ExactOutput {
  std::size_t offset = 0;  ///< from the output's first element, in elements
  double value = 0;
};

/// False: an activation that is neither RELU nor none.
bool hasExactOutputs(const Problem& problem) noexcept;

/// With so many outputs the error repeats within 5 %.
constexpr int kMostOutputs = 256;

/// Some outputs of the problem, spread over all. There are enough of them for an error that repeats
/// within a fifth, and few enough for some 0.1 s of the host; a larger `most` takes longer in
/// proportion. Each tensor holds the values of fillRandom, and the bias is 0. alpha is 1. If there
/// is a z, it holds the same as y and its factor is 1; else beta is 0. REQUIRES: hasExactOutputs.
std::vector<ExactOutput> exactOutputs(const Problem& problem, int most = kMostOutputs);

/// Outputs at equal distances, so that one copy fetches them; in elements.
struct OutputLine {
  std::size_t first = 0, step = 0, count = 0;
};

struct OutputsToCheck {
  std::vector<Window> windows;       ///< those of y, if there are any (windowsOf)
  std::vector<OutputLine> lines;     ///< at most kMostOutputs
  std::vector<ExactOutput> outputs;  ///< theirs, one line after another; at most kMostOutputs
};

/// Some outputs of the problem, to be looked at one by one, in some ms of the host: each channel in
/// turn, and often the last row, column and sample. The tensors hold the values of exactOutputs,
/// but y those of the windows, if there are any. REQUIRES: hasExactOutputs.
OutputsToCheck outputsToCheck(const Problem& problem);

/// A kernel with this error is as useless as one whose result is noise of the outputs' size.
constexpr double kLargestError = 2;

/// ||result - exact|| / ||exact||; kLargestError if it is more, or if a result is no number.
double normalizedError(const std::vector<ExactOutput>& exact, const std::vector<double>& result);

/// A quarter of the type's unit roundoff: even outputs that are rounded once are further off.
double leastError(std::int32_t outputType) noexcept;

}  // namespace ucudnn
