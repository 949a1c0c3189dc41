// Workspace and time of the algorithms where nothing was recorded. The workspace formulas of
// FFT_TILING and WINOGRAD_NONFUSED reproduce misc/profiles/h200_legacy_algorithms.csv to the byte;
// efficiencies are fitted to AlexNet's layers there.
#include <algorithm>

#include "simulator/cudnn/algorithms.hpp"

namespace ucudnn::simulator {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kComplexBytes = 8;

// FFT_TILING's tile: 32 x 32 real numbers are 32 x 17 complex ones, by symmetry.
constexpr int kTile = 32;
constexpr double kTilePoints = kTile * (kTile / 2 + 1);
// 3-D tiles are half as long in each dimension, to stay of a size.
constexpr int kTile3d = 16;
constexpr double kTilePoints3d = kTile3d * kTile3d * (kTile3d / 2 + 1);

// WINOGRAD_NONFUSED pads small batches to this many samples.
constexpr int kWinogradSmallestBatch = 16;

double product(const TensorShape& shape, std::size_t first) {
  double result = 1;
  for (std::size_t d = first; d < static_cast<std::size_t>(shape.rank); ++d) {
    result *= shape.dims[d];
  }
  return result;
}

double ceilDivide(int a, int b) {
  return (a + b - 1) / b;
}

double powerOfTwoFrom(int value) {
  int power = 1;
  while (power < value) power *= 2;
  return power;
}

// Planes that are transformed: the input's and output's of every sample, and the filter's.
struct Planes {
  double data;
  double filter;
};

Planes planes(const ConvolutionProblem& problem, int smallestBatch) {
  const double batch = std::max(problem.batch(), smallestBatch);
  return {batch * (problem.channels() + problem.filters()),
          static_cast<double>(problem.filters()) * problem.w.dims[1]};
}

int paddedSize(const ConvolutionProblem& problem, std::size_t dimension) {
  const std::size_t d = dimension - 2;
  return problem.x.dims[dimension] + problem.convolution.pad[d] + problem.convolution.endPad[d];
}

// Complex points of one transformed image.
double fftPoints(const ConvolutionProblem& problem) {
  const double height = powerOfTwoFrom(paddedSize(problem, 2));
  const double width = powerOfTwoFrom(paddedSize(problem, 3));
  return height * (width / 2 + 1);
}

double tilePoints(const ConvolutionProblem& problem) {
  return problem.spatialRank() == 2 ? kTilePoints : kTilePoints3d;
}

// Tiles of one image: each yields kTile - filter + 1 outputs of the convolution at stride 1.
double tileCount(const ConvolutionProblem& problem) {
  const int tile = problem.spatialRank() == 2 ? kTile : kTile3d;
  double tiles = 1;
  for (std::size_t d = 2; d < static_cast<std::size_t>(problem.x.rank); ++d) {
    const int filter = problem.w.dims[d];
    const int output = paddedSize(problem, d) - filter + 1;
    tiles *= ceilDivide(output, tile - filter + 1);
  }
  return tiles;
}

// F(4x4, 3x3) has 6 x 6 points, F(9x9, 5x5) has 13 x 13.
int winogradOutputs(const ConvolutionProblem& problem) {
  return problem.w.dims[2] == 3 ? 4 : 9;
}

double winogradPoints(const ConvolutionProblem& problem) {
  const double side = winogradOutputs(problem) + problem.w.dims[2] - 1;
  return side * side;
}

double winogradTiles(const ConvolutionProblem& problem) {
  const int outputs = winogradOutputs(problem);
  return ceilDivide(problem.y.dims[2], outputs) * ceilDivide(problem.y.dims[3], outputs);
}

bool isHalf(const ConvolutionProblem& problem) {
  return problem.x.type == CUDNN_DATA_HALF || problem.x.type == CUDNN_DATA_BFLOAT16;
}

bool usesTensorCores(const ConvolutionProblem& problem) {
  return problem.convolution.mathType != CUDNN_FMA_MATH && problem.x.type != CUDNN_DATA_DOUBLE;
}

double precomputedBytes(const ConvolutionProblem& problem) {
  if (usesTensorCores(problem) && isPackedNchwSample(problem.x) && problem.x.dims[1] > 1) {
    // Copies of all three tensors with channels innermost.
    return tensorBytes(problem.x) + tensorBytes(problem.y) + tensorBytes(problem.w);
  }
  switch (problem.operation) {
    case Operation::kForward:
      return 1024;  // the table of offsets
    case Operation::kBackwardFilter:
      return product(problem.w, 0) * kFloatBytes;  // partial sums
    default:
      return 0;
  }
}

double explicitBytes(const ConvolutionProblem& problem) {
  const auto& convolution = problem.convolution;
  const bool plain = product(problem.w, 2) == 1 && convolution.stride[0] == 1 &&
                     convolution.stride[1] == 1 && paddedSize(problem, 2) == problem.x.dims[2] &&
                     paddedSize(problem, 3) == problem.x.dims[3];
  if (plain) return 0;  // the input is its own unfolding
  return problem.batch() * problem.channels() * product(problem.w, 2) * product(problem.y, 2) *
         static_cast<double>(elementBytes(problem.x.type));
}

// The work of a method's kernels: floating-point operations, the part of the peak that they reach,
// launches.
struct Effort {
  double operations;
  double efficiency;
  int launches;
  bool tensorCores;
};

Effort effortOf(const ConvolutionProblem& problem, Method method) {
  const double pairs = static_cast<double>(problem.batch()) * problem.filters() * problem.w.dims[1];
  const double direct = 2 * pairs * product(problem.w, 2) * product(problem.y, 2);
  const bool tensor = usesTensorCores(problem);
  switch (method) {
    case Method::kPrecomputedGemm:
      return tensor ? Effort{direct, 0.36, 3, true} : Effort{direct, 0.66, 1, false};
    case Method::kExplicitGemm:
      return {direct, 0.38, 2, false};
    case Method::kFft:  // a complex multiply-add is 8 operations
      return {8 * pairs * fftPoints(problem), 0.50, 4, false};
    case Method::kFftTiling:
      return {8 * pairs * tileCount(problem) * tilePoints(problem), 0.50, 4, false};
    case Method::kWinograd:  // F(2x2, 3x3): 16 products where there were 36
      return {direct * 16 / 36, 0.45, 2, false};
    case Method::kWinogradNonfused:
      return {2 * pairs * winogradTiles(problem) * winogradPoints(problem), 0.50, 4, false};
    default:
      return {direct, problem.operation == Operation::kBackwardData ? 0.50 : 0.38, 1, false};
  }
}

// Operations per millisecond of the units that are used.
double peakPerMs(const ConvolutionProblem& problem, bool tensorCores, const DeviceModel& device) {
  constexpr double kPerTera = 1e9;  // 1e12 a second
  if (tensorCores && device.tensorTeraflops > 0) {
    return device.tensorTeraflops * kPerTera * (isHalf(problem) ? 2 : 1);
  }
  const double ratio = problem.x.type == CUDNN_DATA_DOUBLE ? 0.5 : 1;
  return device.fmaTeraflops * kPerTera * ratio;
}

// How much of the device a batch of this size keeps busy: half of it when there is one tile of
// 128 x 64 outputs for every second multiprocessor.
double occupancy(const ConvolutionProblem& problem, const DeviceModel& device) {
  const double outputs =
      problem.batch() * static_cast<double>(problem.filters()) * product(problem.y, 2);
  const double tiles = std::max(1.0, outputs / (128 * 64));
  return tiles / (tiles + device.multiprocessorCount / 2.0);
}

}  // namespace

double tensorBytes(const TensorShape& shape) {
  return static_cast<double>(elementCount(shape)) * static_cast<double>(elementBytes(shape.type));
}

double memoryTimeMs(double bytes, const DeviceModel& device) {
  constexpr double kReached = 0.8;  // of the peak bandwidth, by a plain copy
  return bytes / (device.memoryGigabytesPerSecond * 1e6 * kReached);
}

std::size_t modelWorkspaceBytes(const ConvolutionProblem& problem, Method method) {
  double bytes = 0;
  switch (method) {
    case Method::kPrecomputedGemm:
      bytes = precomputedBytes(problem);
      break;
    case Method::kExplicitGemm:
      bytes = explicitBytes(problem);
      break;
    case Method::kSplitGemm:
      bytes = product(problem.w, 0) * kFloatBytes;
      break;
    case Method::kFft: {
      const Planes count = planes(problem, 1);
      bytes = (count.data + count.filter) * fftPoints(problem) * kComplexBytes;
      break;
    }
    case Method::kFftTiling: {
      const Planes count = planes(problem, 1);
      bytes =
          (count.data * tileCount(problem) + count.filter) * tilePoints(problem) * kComplexBytes;
      break;
    }
    case Method::kWinograd:  // the transformed filters, 4 x 4 points each
      bytes = product(problem.w, 0) / 9 * 16 * kFloatBytes;
      break;
    case Method::kWinogradNonfused: {
      const Planes count = planes(problem, kWinogradSmallestBatch);
      bytes = (count.data * winogradTiles(problem) + count.filter) * winogradPoints(problem) *
              kFloatBytes;
      break;
    }
    default:
      break;
  }
  return static_cast<std::size_t>(bytes);
}

int launchCount(const ConvolutionProblem& problem, Method method) {
  return effortOf(problem, method).launches;
}

double modelTimeMs(const ConvolutionProblem& problem, Method method, const DeviceModel& device) {
  const Effort effort = effortOf(problem, method);
  const double rate = peakPerMs(problem, effort.tensorCores, device) * effort.efficiency *
                      occupancy(problem, device);
  const double tensors = tensorBytes(problem.x) + tensorBytes(problem.y) + tensorBytes(problem.w);
  // Workspace is written once and read once.
  const double moved = tensors + 2 * static_cast<double>(modelWorkspaceBytes(problem, method));
  return effort.launches * device.launchMs +
         std::max(effort.operations / rate, memoryTimeMs(moved, device));
}

}  // namespace ucudnn::simulator
