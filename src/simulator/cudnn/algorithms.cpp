#include "simulator/cudnn/algorithms.hpp"

#include <algorithm>

#include "simulator/cudnn/random_times.hpp"
#include "simulator/cudnn/recorded_profiles.hpp"

namespace ucudnn::simulator {
namespace {

constexpr Method kForward[] = {Method::kImplicitGemm,
                               Method::kPrecomputedGemm,
                               Method::kExplicitGemm,
                               Method::kNone,  // DIRECT: never implemented by cuDNN
                               Method::kFft,
                               Method::kFftTiling,
                               Method::kWinograd,
                               Method::kWinogradNonfused};
constexpr Method kBackwardData[] = {Method::kImplicitGemm,
                                    Method::kPrecomputedGemm,
                                    Method::kFft,
                                    Method::kFftTiling,
                                    Method::kWinograd,
                                    Method::kWinogradNonfused};
constexpr Method kBackwardFilter[] = {Method::kImplicitGemm,
                                      Method::kPrecomputedGemm,
                                      Method::kFft,
                                      Method::kSplitGemm,
                                      Method::kNone,  // WINOGRAD: never implemented by cuDNN
                                      Method::kWinogradNonfused,
                                      Method::kFftTiling};
static_assert(sizeof kForward / sizeof *kForward == CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
static_assert(sizeof kBackwardData / sizeof *kBackwardData ==
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
static_assert(sizeof kBackwardFilter / sizeof *kBackwardFilter ==
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);

// Limits that cuDNN documents for its FFT algorithms.
constexpr int kFftLargestImage = 256;
constexpr int kFftTilingLargestFilter = 32;
constexpr int kFftTilingLargestFilter3d = 16;
// Seen on an H200: FFT_TILING also runs at stride 2 (but not 4), for filters larger than 1x1.
constexpr int kFftTilingLargestStride = 2;

template <typename Predicate>
bool allSpatial(const ConvolutionProblem& problem, Predicate&& predicate) {
  for (int i = 0; i < problem.spatialRank(); ++i) {
    if (!predicate(static_cast<std::size_t>(i))) return false;
  }
  return true;
}

bool unitStride(const ConvolutionProblem& problem) {
  return allSpatial(problem, [&](std::size_t i) { return problem.convolution.stride[i] == 1; });
}

bool unitDilation(const ConvolutionProblem& problem) {
  return allSpatial(problem, [&](std::size_t i) { return problem.convolution.dilation[i] == 1; });
}

bool filterIs(const ConvolutionProblem& problem, int size) {
  return allSpatial(problem, [&](std::size_t i) { return problem.w.dims[i + 2] == size; });
}

bool isDepthwise(const ConvolutionProblem& problem) {
  return problem.groups() > 1 && problem.w.dims[1] == 1;
}

// Half tensors with sums in half: cuDNN's TRUE_HALF_CONFIG.
bool isTrueHalf(const ConvolutionProblem& problem) {
  return problem.convolution.computeType == CUDNN_DATA_HALF;
}

// The transforming methods want NCHW tensors and filters and floats (or halves that compute in
// float).
bool fitsTransform(const ConvolutionProblem& problem) {
  return (problem.x.type == CUDNN_DATA_FLOAT ||
          (problem.x.type == CUDNN_DATA_HALF && !isTrueHalf(problem))) &&
         problem.filterFormat == CUDNN_TENSOR_NCHW && isPackedNchwSample(problem.x) &&
         isPackedNchwSample(problem.y) && unitDilation(problem) && !isDepthwise(problem);
}

bool supportsFft(const ConvolutionProblem& problem) {
  return fitsTransform(problem) && problem.spatialRank() == 2 && unitStride(problem) &&
         allSpatial(problem, [&](std::size_t i) {
           const int pad = problem.convolution.pad[i];
           const int endPad = problem.convolution.endPad[i];
           return problem.x.dims[i + 2] + pad + endPad <= kFftLargestImage &&
                  problem.w.dims[i + 2] > std::max(pad, endPad);
         });
}

bool supportsFftTiling(const ConvolutionProblem& problem) {
  const int largest =
      problem.spatialRank() == 2 ? kFftTilingLargestFilter : kFftTilingLargestFilter3d;
  return fitsTransform(problem) && allSpatial(problem, [&](std::size_t i) {
           const int filter = problem.w.dims[i + 2];
           const int stride = problem.convolution.stride[i];
           return filter <= largest && filter > problem.convolution.pad[i] &&
                  (stride == 1 || (stride <= kFftTilingLargestStride && filter > 1));
         });
}

bool supportsWinograd(const ConvolutionProblem& problem) {
  return fitsTransform(problem) && problem.spatialRank() == 2 && unitStride(problem) &&
         filterIs(problem, 3);
}

// An H200 refuses a dy of some rows of a larger tensor (2026-11-24), but takes such a y.
bool hasGapsInSample(const TensorShape& shape) {
  std::int64_t last = 0, elements = 1;
  for (std::size_t d = 1; d < static_cast<std::size_t>(shape.rank); ++d) {
    last += (shape.dims[d] - 1) * shape.strides[d];
    elements *= shape.dims[d];
  }
  return last + 1 > elements;
}

bool supportsWinogradNonfused(const ConvolutionProblem& problem) {
  if (problem.operation == Operation::kBackwardData && hasGapsInSample(problem.y)) return false;
  if (problem.spatialRank() != 2 || !unitStride(problem) || !unitDilation(problem) ||
      isDepthwise(problem) || problem.x.type == CUDNN_DATA_DOUBLE ||
      problem.filterFormat != CUDNN_TENSOR_NCHW) {
    return false;
  }
  return filterIs(problem, 3) || (filterIs(problem, 5) && !isTrueHalf(problem));
}

bool isInteger(const ConvolutionProblem& problem) {
  return problem.convolution.computeType == CUDNN_DATA_INT32;
}

}  // namespace

int algorithmCount(Operation operation) {
  switch (operation) {
    case Operation::kForward:
      return CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    case Operation::kBackwardData:
      return CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    default:
      return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  }
}

Method methodOf(Operation operation, int algorithm) {
  if (algorithm < 0 || algorithm >= algorithmCount(operation)) return Method::kNone;
  switch (operation) {
    case Operation::kForward:
      return kForward[algorithm];
    case Operation::kBackwardData:
      return kBackwardData[algorithm];
    default:
      return kBackwardFilter[algorithm];
  }
}

bool isDeterministic(Operation operation, int algorithm) {
  const Method method = methodOf(operation, algorithm);
  return operation == Operation::kForward ||
         (method != Method::kImplicitGemm && method != Method::kSplitGemm);
}

bool isSupported(const ConvolutionProblem& problem, Method method) {
  if (isInteger(problem)) return method == Method::kPrecomputedGemm && unitDilation(problem);
  switch (method) {
    case Method::kNone:
      return false;
    case Method::kImplicitGemm:
      // ALGO_0 of both backward operations adds atomically, which cuDNN does not do in half.
      return problem.operation == Operation::kForward || !isTrueHalf(problem);
    case Method::kSplitGemm:
      return problem.filterFormat == CUDNN_TENSOR_NCHW && !isTrueHalf(problem);
    case Method::kPrecomputedGemm:
      // cuDNN documents dilation 1 for the forward algorithm only.
      return problem.operation != Operation::kForward || unitDilation(problem);
    case Method::kExplicitGemm:
      return problem.spatialRank() == 2 && problem.filterFormat == CUDNN_TENSOR_NCHW &&
             unitDilation(problem) && !isTrueHalf(problem) && problem.x.type != CUDNN_DATA_BFLOAT16;
    case Method::kFft:
      return supportsFft(problem);
    case Method::kFftTiling:
      return supportsFftTiling(problem);
    case Method::kWinograd:
      return supportsWinograd(problem);
    case Method::kWinogradNonfused:
      return supportsWinogradNonfused(problem);
  }
  return false;
}

namespace {

/// Copies of the tensors with channels in eights; none if they are.
std::size_t paddedBytes(const ConvolutionProblem& problem) {
  constexpr int kEights = 8;
  double bytes = 0;
  bool isPadded = false;
  for (const TensorShape* const shape : {&problem.x, &problem.w, &problem.y}) {
    const int channels = shape->dims[1];
    const int padded = (channels + kEights - 1) / kEights * kEights;
    bytes += tensorBytes(*shape) / channels * padded;
    isPadded = isPadded || padded != channels;
  }
  return isPadded ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace

bool expectedCost(const ConvolutionProblem& problem,
                  int algorithm,
                  const DeviceModel& device,
                  Cost* cost) {
  const Method method = methodOf(problem.operation, algorithm);
  if (method == Method::kNone) return false;
  switch (recordedProfiles().algorithms.find(problem, algorithm, cost)) {
    case Profile::Match::kAvailable:
      return true;
    case Profile::Match::kUnavailable:
      return false;
    case Profile::Match::kNone:
      break;
  }
  const std::size_t padded = oddChannels() == OddChannels::kComputed ? 0 : paddedBytes(problem);
  if (!isSupported(problem, method) || (padded > 0 && oddChannels() == OddChannels::kRefused))
    return false;
  if (device.tensorTeraflops > 0) {
    *cost = {modelTimeMs(problem, method, device), modelWorkspaceBytes(problem, method)};
  } else {
    ConvolutionProblem plain = problem;
    plain.convolution.mathType = CUDNN_FMA_MATH;
    *cost = {modelTimeMs(plain, method, device), modelWorkspaceBytes(plain, method)};
  }
  cost->workspaceBytes += padded;
  return true;
}

bool findCost(const ConvolutionProblem& problem,
              int algorithm,
              const DeviceModel& device,
              Cost* cost) {
  // Whoever times a call repeats it.
  struct Answer {
    ConvolutionProblem problem;
    int algorithm = 0;
    const DeviceModel* device = nullptr;  ///< null: none yet
    OddChannels odd{};
    std::uint64_t seed = 0;
    bool isFound = false;
    Cost cost;
  };
  thread_local Answer last;
  const std::uint64_t seed = randomTimesSeed();
  const OddChannels odd = oddChannels();
  if (last.device != &device || last.algorithm != algorithm || last.odd != odd ||
      last.seed != seed || !(last.problem == problem)) {
    last = {problem, algorithm, &device, odd, seed, false, {}};
    last.isFound = expectedCost(problem, algorithm, device, &last.cost);
    if (last.isFound && seed != 0) last.cost.timeMs *= randomTimeFactor(problem, algorithm, seed);
  }
  if (last.isFound) *cost = last.cost;
  return last.isFound;
}

}  // namespace ucudnn::simulator
