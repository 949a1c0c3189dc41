#include "simulator/cudnn/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simulator/cudnn/random_times.hpp"

namespace ucudnn::simulator {
namespace {

constexpr double kTf32 = 3e-4;
constexpr double kLargeWinograd = 1e-3;

/// On ordinary units, in float, where the sums are of one sample.
double plainError(Method method) {
  switch (method) {
    case Method::kNone:
      return 0;
    case Method::kImplicitGemm:
    case Method::kSplitGemm:
      return 1e-7;
    case Method::kPrecomputedGemm:
    case Method::kExplicitGemm:
      return 2e-7;
    case Method::kFft:
    case Method::kFftTiling:
      return 1e-6;
    case Method::kWinograd:
      return 3e-6;
    case Method::kWinogradNonfused:
      return 1e-5;
  }
  return 0;
}

double unitInTheLastPlace(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return 0x1p-52;
    case CUDNN_DATA_HALF:
      return 0x1p-10;
    case CUDNN_DATA_BFLOAT16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace

double relativeError(const ConvolutionProblem& problem, Method method) {
  if (rounding() != Rounding::kMethods || problem.x.type == CUDNN_DATA_DOUBLE) return 0;
  const auto* const spatial = problem.w.dims.begin() + 2;
  const bool isLarge =
      std::any_of(spatial, spatial + problem.spatialRank(), [](int size) { return size > 3; });
  if (method == Method::kWinogradNonfused && isLarge) return kLargeWinograd;
  const bool isTf32 =
      problem.x.type == CUDNN_DATA_FLOAT && problem.convolution.mathType != CUDNN_FMA_MATH;
  if (isTf32 && (method == Method::kPrecomputedGemm || method == Method::kWinogradNonfused))
    return kTf32;
  const double samples = problem.operation == Operation::kBackwardFilter ? problem.batch() : 1;
  return plainError(method) * std::sqrt(samples);
}

double rounded(double sum, double relativeError) {
  if (relativeError == 0) return sum;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  const double between = 2 * unitOf(bits) - 1;  // uniform, of variance 1/3
  return sum * (1 + relativeError * std::sqrt(3.0) * between);
}

std::uint64_t bitsOf(const ConvolutionProblem& problem, std::uint64_t kernel) {
  if (rounding() != Rounding::kKernels) return 0;
  return numberOf(problem, 0, kernel) | 1U;  // 0 is no kernel's
}

double roundedBy(std::uint64_t kernelBits, double sum, cudnnDataType_t type) {
  if (kernelBits == 0) return sum;
  constexpr double kUnits = 4;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  const double between = 2 * unitOf(bits ^ kernelBits) - 1;
  return sum * (1 + kUnits * unitInTheLastPlace(type) * between);
}

}  // namespace ucudnn::simulator
