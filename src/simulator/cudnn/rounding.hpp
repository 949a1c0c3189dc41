// UCUDNN_SIMULATOR_ROUNDING: how far each method is off, as on a GPU.
#pragma once

#include "simulator/cudnn/algorithms.hpp"

namespace ucudnn::simulator {

/// The relative error of a method's sums (root of their mean square) where rounding is on, else 0.
/// As seen on an H200: TF32 3e-4, the non-fused Winograd of filters beyond 3x3 1e-3, other FMA
/// kernels 1e-7 to 1e-5, which grows as backward filter adds up more samples.
double relativeError(const ConvolutionProblem& problem, Method method);

/// The sum with such an error: the same for the same sum, so that a batch may be split.
double rounded(double sum, double relativeError);

}  // namespace ucudnn::simulator
