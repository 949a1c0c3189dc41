// Reference outputs for a kernel's error: the host computes them in double, from the random values
// that scratch memory holds.
#pragma once

#include <cuda_runtime_api.h>

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

/// With so many outputs the error repeats within 5 %.
constexpr int kMostOutputs = 256;

/// Some outputs of the problem, spread over all. There are enough of them for an error that repeats
/// within a fifth, and few enough for some 0.1 s of the host; a larger `most` takes longer in
/// proportion. Each tensor holds the values of fillRandom, and the bias is 0. alpha is 1. If there
/// is a z, it holds the same as y and its factor is 1; else beta is 0. REQUIRES: hasExactOutputs.
std::vector<ExactOutput> exactOutputs(const Problem& problem, int most = kMostOutputs);

/// Where a tensor of gradients is not 0: some neighbouring pixels of a sample, of all channels.
struct Window {
  std::int64_t sample = 0;
  std::int64_t begin = 0, end = 0;  ///< in the order of the image's pixels
};

/// The pixels of dy that are not 0 when a filter gradient is checked: so few that the host sums
/// them up soon. Empty: all are.
std::vector<Window> windowsOf(const Problem& problem);

/// Enqueues dy: 0, and in each window the numbers of RandomTensor::kY, from the first on. REQUIRES:
/// not empty. Throws Error.
void fillWindows(void* y,
                 const Problem& problem,
                 const std::vector<Window>& windows,
                 cudaStream_t stream);

/// Some outputs of the problem, to be looked at one by one, in some ms of the host: each channel in
/// turn, and often the last row, column and sample. The tensors hold the values of exactOutputs,
/// but y those of the windows, if there are any. REQUIRES: hasExactOutputs.
std::vector<ExactOutput> outputsToCheck(const Problem& problem, const std::vector<Window>& windows);

/// A kernel with this error is as useless as one whose result is noise of the outputs' size.
constexpr double kLargestError = 2;

/// ||result - exact|| / ||exact||, at most kLargestError, which it also is if a result is no
/// number.
double normalizedError(const std::vector<ExactOutput>& exact, const std::vector<double>& result);

/// A quarter of the type's unit roundoff: even outputs that are rounded once are further off.
double leastError(std::int32_t outputType) noexcept;

}  // namespace ucudnn
