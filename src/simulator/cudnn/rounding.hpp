// UCUDNN_SIMULATOR_ROUNDING: how far each method is off, as on a GPU, or which kernel has run.
#pragma once

#include "simulator/cudnn/algorithms.hpp"

namespace ucudnn::simulator {

/// The relative error of a method's sums (root of their mean square) where rounding is on, else 0.
/// As seen on an H200: TF32 3e-4, the non-fused Winograd of filters beyond 3x3 1e-3, other FMA
/// kernels 1e-7 to 1e-5, which grows as backward filter adds up more samples.
double relativeError(const ConvolutionProblem& problem, Method method);

/// The sum with such an error: the same for the same sum, so that a batch may be split.
double rounded(double sum, double relativeError);

/// A number that tells a kernel's results from those of another kernel, or of another batch: the
/// last bits of each sum depend on it. 0 if the bits shall not tell.
std::uint64_t bitsOf(const ConvolutionProblem& problem, std::uint64_t kernel);

/// The sum, of up to four units in the type's last place more or less.
double roundedBy(std::uint64_t kernelBits, double sum, cudnnDataType_t type);

}  // namespace ucudnn::simulator
