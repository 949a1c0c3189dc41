// UCUDNN_SIMULATOR_RANDOM_TIMES: kernel times that no model predicts, so that odd plans are chosen.
#pragma once

#include <cstdint>

#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {

/// Between 1/8 and 8, log-uniform: one number for each seed, problem, batch size, algorithm and
/// math (FMA or not). Same on all devices; blind to the batch stride and to strides of dimensions
/// of 1, which are not a kernel's business.
double randomTimeFactor(const ConvolutionProblem& problem, int algorithm, std::uint64_t seed);

/// The factor that tests have set for the time of an engine's configuration with this problem; 1 by
/// default. Thread-safe, as `scaleTime` is.
double scaledTime(const ConvolutionProblem& problem, int configuration);
void scaleTime(const ConvolutionProblem& problem, int configuration, double factor);

/// Another number whenever random or set factors change.
std::uint64_t timesVersion();

/// One number for each of them; of the problem it knows what randomTimeFactor knows.
std::uint64_t numberOf(const ConvolutionProblem& problem, int algorithm, std::uint64_t seed);

/// Hashes a number to one in [0, 1).
double unitOf(std::uint64_t number);

}  // namespace ucudnn::simulator
