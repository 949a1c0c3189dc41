#include "problem/problem.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuda/cudnn.hpp"
#include "problem/activation.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kMostElements = std::numeric_limits<std::int32_t>::max();

static_assert(std::is_trivially_copyable_v<Problem>);
static_assert(std::has_unique_object_representations_v<Problem>, "a hash needs no padding");

const char* typeText(std::int32_t type) noexcept {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return "float";
    case CUDNN_DATA_HALF:
      return "half";
    case CUDNN_DATA_BFLOAT16:
      return "bfloat16";
    case CUDNN_DATA_DOUBLE:
      return "double";
    default:
      return "other";
  }
}

const char* mathText(std::int32_t math) noexcept {
  switch (math) {
    case CUDNN_DEFAULT_MATH:
      return "default";
    case CUDNN_TENSOR_OP_MATH:
      return "tensor";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION:
      return "tensor_conversion";
    case CUDNN_FMA_MATH:
      return "fma";
    default:
      return "other";
  }
}

/// Elements from the first to the last, gaps included.
std::size_t spanOf(const Problem::Sizes& sizes,
                   const Problem::Strides& strides,
                   int dimensions) noexcept {
  std::size_t last = 0;
  for (int i = 0; i < dimensions; ++i)
    last += static_cast<std::size_t>(sizes[i] - 1) * static_cast<std::size_t>(strides[i]);
  return last + 1;
}

std::size_t elementsOf(const Problem::Sizes& sizes, int dimensions) noexcept {
  std::size_t elements = 1;
  for (int i = 0; i < dimensions; ++i) elements *= static_cast<std::size_t>(sizes[i]);
  return elements;
}

/// Elements of a sample if they fill the memory up to the next sample; else 0.
std::int64_t packedElements(const Problem::Sizes& sizes,
                            const Problem::Strides& strides,
                            int dimensions) noexcept {
  std::int64_t all = 1;
  for (int i = 1; i < dimensions; ++i) all *= sizes[i];
  std::int64_t elements = 1;
  for (bool grows = true; grows;) {
    grows = false;
    for (int i = 1; i < dimensions; ++i)
      if (sizes[i] > 1 && strides[i] == elements) {
        elements *= sizes[i];
        grows = true;
      }
  }
  return elements == all && elements == strides[0] ? elements : 0;
}

bool readTensor(cudnnTensorDescriptor_t descriptor,
                std::int32_t& type,
                int& dimensions,
                Problem::Sizes& sizes,
                Problem::Strides& strides) noexcept {
  cudnnDataType_t dataType = CUDNN_DATA_FLOAT;
  int count = 0;
  Problem::Sizes narrow{};
  if (cudnn().getTensorNdDescriptor(
          descriptor, Problem::kMaxDimensions, &dataType, &count, sizes.data(), narrow.data()) !=
      CUDNN_STATUS_SUCCESS)
    return false;
  for (std::size_t i = 0; i < narrow.size(); ++i) strides[i] = narrow[i];
  type = dataType;
  dimensions = count;
  if (count < 3 || count > Problem::kMaxDimensions || elementBytes(dataType) == 0) return false;
  // A tensor whose samples overlap, or run backwards, can't be cut by the batch.
  return sizes[0] > 0 && narrow[0] > 0 &&
         std::all_of(narrow.begin(), narrow.begin() + count, [](int s) { return s >= 0; });
}

bool readFilter(cudnnFilterDescriptor_t descriptor, int& dimensions, Problem& problem) noexcept {
  cudnnDataType_t dataType = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  if (cudnn().getFilterNdDescriptor(descriptor,
                                    Problem::kMaxDimensions,
                                    &dataType,
                                    &format,
                                    &dimensions,
                                    problem.wSizes.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  problem.wType = dataType;
  problem.wFormat = format;
  return elementBytes(dataType) != 0 && format != CUDNN_TENSOR_NCHW_VECT_C;
}

/// Reads all but the reorder type, which matters to INT8x32 filters only (cudnnReorderType_t).
bool readConvolution(cudnnConvolutionDescriptor_t descriptor, Problem& problem) noexcept {
  int length = 0;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  cudnnMathType_t mathType = CUDNN_DEFAULT_MATH;
  int groups = 1;
  if (cudnn().getConvolutionNdDescriptor(descriptor,
                                         Problem::kMaxSpatial,
                                         &length,
                                         problem.pads.data(),
                                         problem.strides.data(),
                                         problem.dilations.data(),
                                         &mode,
                                         &computeType) != CUDNN_STATUS_SUCCESS ||
      cudnn().getConvolutionMathType(descriptor, &mathType) != CUDNN_STATUS_SUCCESS ||
      cudnn().getConvolutionGroupCount(descriptor, &groups) != CUDNN_STATUS_SUCCESS)
    return false;
  problem.mode = mode;
  problem.computeType = computeType;
  problem.mathType = mathType;
  problem.groups = groups;
  return length == problem.dimensions - 2;
}

/// Clears the values behind the dimensions in use: cuDNN also returns what an earlier setting of
/// the descriptor left there. No loop: gcc would make eight fills of unknown length of it, and
/// every planned call waits for them.
void clearUnused(Problem& problem) noexcept {
  const auto clear = [&](std::size_t i) {
    problem.xSizes[i] = problem.ySizes[i] = problem.wSizes[i] = 0;
    problem.xStrides[i] = problem.yStrides[i] = 0;
    problem.pads[i - 2] = problem.strides[i - 2] = problem.dilations[i - 2] = 0;
  };
  static_assert(Problem::kMaxDimensions == 5);
  if (problem.dimensions < 5) clear(4);
  if (problem.dimensions < 4) clear(3);
}

}  // namespace

const char* toText(Operation operation) noexcept {
  switch (operation) {
    case Operation::kForward:
      return "forward";
    case Operation::kBackwardData:
      return "backward_data";
    case Operation::kBackwardFilter:
      return "backward_filter";
    case Operation::kBiasActivationForward:
      return "bias_activation_forward";
  }
  return "unknown";
}

std::size_t elementBytes(std::int32_t dataType) noexcept {
  switch (dataType) {
    case CUDNN_DATA_FLOAT:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_DOUBLE:
      return 8;
    default:
      return 0;
  }
}

std::size_t Problem::xBatchStrideBytes() const noexcept {
  return static_cast<std::size_t>(xStrides[0]) * elementBytes(xType);
}
std::size_t Problem::yBatchStrideBytes() const noexcept {
  return static_cast<std::size_t>(yStrides[0]) * elementBytes(yType);
}
std::size_t Problem::xBytes() const noexcept {
  return spanOf(xSizes, xStrides, dimensions) * elementBytes(xType);
}
std::size_t Problem::yBytes() const noexcept {
  return spanOf(ySizes, yStrides, dimensions) * elementBytes(yType);
}
std::size_t Problem::wBytes() const noexcept {
  return elementsOf(wSizes, dimensions) * elementBytes(wType);
}

std::int32_t Problem::outputType() const noexcept {
  return operation == Operation::kBackwardData     ? xType
         : operation == Operation::kBackwardFilter ? wType
                                                   : yType;
}
std::size_t Problem::outputBytes() const noexcept {
  return operation == Operation::kBackwardData     ? xBytes()
         : operation == Operation::kBackwardFilter ? wBytes()
                                                   : yBytes();
}

std::size_t Problem::overwrittenSampleBytes() const noexcept {
  std::int64_t elements = 0;
  if (operation == Operation::kForward) elements = packedElements(ySizes, yStrides, dimensions);
  if (operation == Operation::kBackwardData)
    elements = packedElements(xSizes, xStrides, dimensions);
  return static_cast<std::size_t>(elements) * elementBytes(outputType());
}

bool Problem::isLarge() const noexcept {
  return std::max({spanOf(xSizes, xStrides, dimensions),
                   spanOf(ySizes, yStrides, dimensions),
                   elementsOf(wSizes, dimensions)}) > kMostElements;
}

double Problem::multiplyAdds() const noexcept {
  double product = ySizes[0];
  for (int i = 0; i < dimensions; ++i) product *= wSizes[i];
  for (int i = 2; i < dimensions; ++i) product *= ySizes[i];
  return product;
}

std::size_t Problem::hash() const noexcept {
  // Multiplies and folds 64-bit words (the multiplier is 2^64 / golden ratio, as in Fibonacci
  // hashing). Every planned call waits for it: four lanes let the multiplications overlap.
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  constexpr std::size_t kRoundBytes = 4 * sizeof(std::uint64_t);
  constexpr std::size_t kRounds = (sizeof(Problem) + kRoundBytes - 1) / kRoundBytes;
  const auto fold = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * kMultiplier;
    return state ^ (state >> 29);
  };
  std::uint64_t words[kRounds][4] = {};
  std::memcpy(words, this, sizeof(Problem));
  std::uint64_t a = 0, b = 0, c = 0, d = 0;  // no array: they stay in registers
  for (const auto& round : words) {
    a = fold(a, round[0]);
    b = fold(b, round[1]);
    c = fold(c, round[2]);
    d = fold(d, round[3]);
  }
  const std::uint64_t state = fold(fold(fold(fold(0, a), b), c), d);
  return static_cast<std::size_t>(state);
}

bool Problem::operator==(const Problem& other) const noexcept {
  return std::memcmp(this, &other, sizeof(Problem)) == 0;
}

std::string Problem::text() const {
  const auto list = [](const auto& values, int first, int end) {
    return fmt::join(values.begin() + first, values.begin() + end, ",");
  };
  const int spatial = dimensions - 2;
  std::string result = fmt::format(
      FMT_COMPILE(
          "{} x={}:*,{}/{} w={}:{}/{} y={}:*,{}/{} pad={} stride={} dilation={} groups={} {} "
          "compute={} math={}"),
      toText(operation),
      typeText(xType),
      list(xSizes, 1, dimensions),
      list(xStrides, 0, dimensions),
      typeText(wType),
      list(wSizes, 0, dimensions),
      wFormat == CUDNN_TENSOR_NHWC ? "nhwc" : "nchw",
      typeText(yType),
      list(ySizes, 1, dimensions),
      list(yStrides, 0, dimensions),
      list(pads, 0, spatial),
      list(strides, 0, spatial),
      list(dilations, 0, spatial),
      groups,
      mode == CUDNN_CONVOLUTION ? "convolution" : "cross_correlation",
      typeText(computeType),
      mathText(mathType));
  if (operation == Operation::kBiasActivationForward)
    result += activationValue == 0
                  ? fmt::format(" activation={} adds_z={}", activation, addsZ)
                  : fmt::format(
                        " activation={}/{} adds_z={}", activation, activationValueOf(*this), addsZ);
  // Winograd is not written, because databases hold problems from before there were transforms.
  if (transform != Transform::kWinograd)
    result += transform == Transform::kFourier ? " transform=fourier" : " transform=none";
  if (reducedSums != 0) result += " sums=reduced";
  return result;
}

bool readProblem(Operation operation,
                 const ConvolutionDescriptors& descriptors,
                 Problem& problem) noexcept {
  // On success every member is written once: here, by a reader, or by clearUnused.
  problem.operation = operation;
  problem.activation = problem.addsZ = 0;
  problem.activationValue = 0;
  problem.transform = Transform::kWinograd;
  problem.reducedSums = 0;
  int xDimensions = 0;
  int yDimensions = 0;
  int wDimensions = 0;
  if (!readTensor(descriptors.x, problem.xType, xDimensions, problem.xSizes, problem.xStrides) ||
      !readTensor(descriptors.y, problem.yType, yDimensions, problem.ySizes, problem.yStrides) ||
      !readFilter(descriptors.w, wDimensions, problem))
    return false;
  problem.dimensions = xDimensions;
  if (yDimensions != xDimensions || wDimensions != xDimensions ||
      problem.xSizes[0] != problem.ySizes[0] || !readConvolution(descriptors.convolution, problem))
    return false;
  // cuDNN goes by the channels: on an H200, cuDNN 9.19 runs such calls as if there were one group.
  if (problem.wSizes[1] == problem.xSizes[1]) problem.groups = 1;
  clearUnused(problem);
  return true;
}

Problem::FilterStrides Problem::wStrides() const noexcept {
  FilterStrides packed{};
  std::size_t next = 1;
  const auto pack = [&](int i) {
    packed[i] = next;
    next *= static_cast<std::size_t>(wSizes[i]);
  };
  const bool isChannelsLast = wFormat == CUDNN_TENSOR_NHWC;
  if (isChannelsLast) pack(1);
  for (int i = dimensions - 1; i > 1; --i) pack(i);
  if (!isChannelsLast) pack(1);
  pack(0);
  return packed;
}

}  // namespace ucudnn
