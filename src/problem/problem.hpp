// One convolution operation as a value: the contents of all its descriptors, no pointers.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ucudnn {

enum class Operation : std::int16_t {
  kForward,
  kBackwardData,
  kBackwardFilter,
  kBiasActivationForward,
};

/// "forward", "backward_data", "backward_filter", "bias_activation_forward".
const char* toText(Operation operation) noexcept;

/// How a kernel transforms its inputs before it multiplies. Later values are more exact. On an H200
/// with FMA math the non-fused Winograd is off by 1e-5, beyond 3x3 by 1e-3; Fourier's transforms
/// are off by 1e-6.
enum class Transform : std::int8_t {
  kWinograd,
  kFourier,
  kNone,
};

/// The descriptors of a convolution, in one order for all operations: x is x or dx, w is w or dw, y
/// is y or dy.
struct ConvolutionDescriptors {
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t y;
};

/// A convolution problem. Equality and hash run over its words, so all members are integers, unused
/// ones are 0, and there is no padding.
struct Problem {
  static constexpr int kMaxDimensions = 5;  ///< batch, channels, and up to three spatial dimensions
  static constexpr int kMaxSpatial = kMaxDimensions - 2;
  using Sizes = std::array<std::int32_t, kMaxDimensions>;
  using Strides = std::array<std::int64_t, kMaxDimensions>;
  using Spatial = std::array<std::int32_t, kMaxSpatial>;
  using FilterStrides = std::array<std::size_t, kMaxDimensions>;

  Operation operation = Operation::kForward;
  Transform transform = Transform::kWinograd;    ///< the least exact that a kernel may have
  std::int8_t reducedSums = 0;                   ///< 1: kernels may add up in less than computeType
  std::int32_t dimensions = 0;                   ///< of x, w and y: 3 to 5
  std::int32_t xType = 0, wType = 0, yType = 0;  ///< cudnnDataType_t
  std::int32_t wFormat = 0;                      ///< cudnnTensorFormat_t
  Strides xStrides{}, yStrides{};                ///< N, C, [D,] H, W
  Sizes xSizes{}, ySizes{};
  Sizes wSizes{};  ///< K, C/groups, [D,] H, W
  Spatial pads{}, strides{}, dilations{};
  std::int32_t mode = 0;         ///< cudnnConvolutionMode_t
  std::int32_t computeType = 0;  ///< cudnnDataType_t
  std::int32_t mathType = 0;     ///< cudnnMathType_t
  std::int32_t groups = 1;
  // Of bias_activation_forward only.
  std::int16_t activation = 0;       ///< activation.hpp
  std::int16_t addsZ = 0;            ///< 1: alpha2 != 0
  std::int32_t activationValue = 0;  ///< the bits of a float

  int batch() const noexcept { return xSizes[0]; }
  bool allows(Transform kernels) const noexcept { return kernels >= transform; }

  /// The same problem at another batch size. Its strides are the caller's, so it fits a slice of
  /// the tensors.
  Problem withBatch(int batch) const noexcept {
    Problem other = *this;
    other.xSizes[0] = other.ySizes[0] = batch;
    return other;
  }

  /// Strides of w, in elements. cuDNN takes no filter tensor with gaps.
  FilterStrides wStrides() const noexcept;
  /// Bytes from one sample to the next in x and y.
  std::size_t xBatchStrideBytes() const noexcept;
  std::size_t yBatchStrideBytes() const noexcept;
  /// Bytes that the tensor spans, from its first element to the end of its last.
  std::size_t xBytes() const noexcept;
  std::size_t wBytes() const noexcept;
  std::size_t yBytes() const noexcept;
  /// The output is x for backward data, w for backward filter, else y.
  std::int32_t outputType() const noexcept;
  std::size_t outputBytes() const noexcept;
  /// Bytes of each sample of the output, if a call that overwrites it writes all memory from its
  /// first element to its last, sample by sample. 0 if it does not (a filter's gradient, a tensor
  /// with gaps), or reads the output (bias_activation_forward, whose z may be there).
  std::size_t overwrittenSampleBytes() const noexcept;
  /// Whether x, w or y spans 2^31 elements or more. cuDNN's legacy API has no such tensors, and its
  /// fast engines are for smaller ones. Such a problem is computed in parts.
  bool isLarge() const noexcept;
  /// Multiply-adds of the whole problem.
  double multiplyAdds() const noexcept;

  std::size_t hash() const noexcept;
  bool operator==(const Problem& other) const noexcept;
  bool operator!=(const Problem& other) const noexcept { return !(*this == other); }

  /// Everything but the batch size, in words: the key of the benchmark database.
  std::string text() const;
};

struct ProblemHash {
  std::size_t operator()(const Problem& problem) const noexcept { return problem.hash(); }
};

/// Bytes of one element of the four types that are planned: float, half, bfloat16, double. 0 for
/// another type.
std::size_t elementBytes(std::int32_t dataType) noexcept;

/// Half or bfloat16: each addition to such a number is rounded.
constexpr bool isRounded(std::int32_t dataType) noexcept {
  return dataType == CUDNN_DATA_HALF || dataType == CUDNN_DATA_BFLOAT16;
}

/// Reads a problem from its descriptors. Returns false if μ-cuDNN doesn't know it (a vectorized or
/// integer type, too many dimensions, descriptors that do not belong together). cuDNN then gets the
/// call as it is, and `problem` means nothing.
bool readProblem(Operation operation,
                 const ConvolutionDescriptors& descriptors,
                 Problem& problem) noexcept;

}  // namespace ucudnn
