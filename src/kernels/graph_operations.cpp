#include "kernels/graph_operations.hpp"

#if UCUDNN_HAS_ENGINES

#include <algorithm>

#include "problem/activation.hpp"

// The attribute for RELU's treatment of NaNs is marked deprecated, and nothing replaces it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {

const OperationNames& namesOf(Operation operation) noexcept {
  static constexpr OperationNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  static constexpr OperationNames kBackwardData{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  static constexpr OperationNames kBackwardFilter{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  return operation == Operation::kBackwardData     ? kBackwardData
         : operation == Operation::kBackwardFilter ? kBackwardFilter
                                                   : kForward;
}

std::vector<std::int64_t> filterStrides(const Problem& problem) {
  std::vector<std::size_t> order;  // fastest first
  const auto dimensions = static_cast<std::size_t>(problem.dimensions);
  if (problem.wFormat == CUDNN_TENSOR_NHWC) order.push_back(1);
  for (std::size_t i = dimensions - 1; i >= 2; --i) order.push_back(i);
  if (problem.wFormat != CUDNN_TENSOR_NHWC) order.push_back(1);
  order.push_back(0);
  std::vector<std::int64_t> strides(dimensions);
  std::int64_t stride = 1;
  for (const std::size_t dimension : order) {
    strides[dimension] = stride;
    stride *= problem.wSizes[dimension];
  }
  return strides;
}

namespace {

template <typename Values>
std::vector<std::int64_t> firstOf(const Values& values, int count) {
  return {values.begin(), values.begin() + count};
}

/// The largest power of two up to `most` that divides a sample's bytes.
std::int64_t alignmentOf(std::size_t sampleBytes, std::int64_t most) noexcept {
  return std::min(most, static_cast<std::int64_t>(sampleBytes & (~sampleBytes + 1)));
}

BackendDescriptor makeTensor(std::int64_t id,
                             std::int32_t type,
                             const std::vector<std::int64_t>& sizes,
                             const std::vector<std::int64_t>& strides,
                             std::int64_t alignment) {
  auto tensor = makeBackend(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  if (id >= kTensorVirtual) set(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, static_cast<cudnnDataType_t>(type));
  set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  set(tensor, CUDNN_ATTR_TENSOR_STRIDES, strides);
  finalize(tensor);
  return tensor;
}

BackendDescriptor makeConvolution(const Problem& problem) {
  const int spatial = problem.dimensions - 2;
  const auto pads = firstOf(problem.pads, spatial);
  auto convolution = makeBackend(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(convolution,
      CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
      static_cast<cudnnDataType_t>(problem.computeType));
  set(convolution,
      CUDNN_ATTR_CONVOLUTION_CONV_MODE,
      static_cast<cudnnConvolutionMode_t>(problem.mode));
  set(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(spatial));
  set(convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads);
  set(convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads);
  set(convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, firstOf(problem.strides, spatial));
  set(convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, firstOf(problem.dilations, spatial));
  finalize(convolution);
  return convolution;
}

void setFactors(const BackendDescriptor& operation,
                const OperationNames& names,
                const Problem& problem,
                double beta) {
  if (problem.xType == CUDNN_DATA_DOUBLE) {
    set(operation, names.alpha, 1.0);
    set(operation, names.beta, beta);
  } else {
    set(operation, names.alpha, 1.0F);
    set(operation, names.beta, static_cast<float>(beta));
  }
}

/// y, or another tensor of its shape.
BackendDescriptor makeY(std::int64_t id, const Problem& problem, std::int64_t alignment) {
  return makeTensor(id,
                    problem.yType,
                    firstOf(problem.ySizes, problem.dimensions),
                    firstOf(problem.yStrides, problem.dimensions),
                    alignmentOf(problem.yBatchStrideBytes(), alignment));
}

BackendDescriptor makeOperation(const Problem& problem,
                                const GraphTensors& tensors,
                                const BackendDescriptor& y,
                                double beta) {
  const OperationNames& names = namesOf(problem.operation);
  auto operation = makeBackend(names.type);
  set(operation, names.convolution, tensors.convolution);
  set(operation, names.x, tensors.x);
  set(operation, names.w, tensors.w);
  set(operation, names.y, y);
  setFactors(operation, names, problem, beta);
  finalize(operation);
  return operation;
}

void setActivation(const BackendDescriptor& pointwise, const Problem& problem) {
  const float value = activationValueOf(problem);
  if (problem.activation == kElu) {
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ELU_FWD);
    set(pointwise, CUDNN_ATTR_POINTWISE_ELU_ALPHA, double{value});
    return;
  }
  set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD);
  set(pointwise, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, nansOf(problem));
  if (problem.activation == kLeakyRelu)
    set(pointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, double{value});
  if (problem.activation == kClippedRelu)
    set(pointwise, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, double{value});
}

/// y = x + b; without a b, the activation.
BackendDescriptor makePointwise(const Problem& problem,
                                const BackendDescriptor& x,
                                const BackendDescriptor& b,
                                const BackendDescriptor& y) {
  const bool isSum = b != nullptr;
  const auto pointwise = makeBackend(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, static_cast<cudnnDataType_t>(problem.computeType));
  if (isSum)
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  else
    setActivation(pointwise, problem);
  finalize(pointwise);
  auto operation = makeBackend(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (isSum) set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finalize(operation);
  return operation;
}

/// The operands of what bias_activation_forward does after the convolution, in order; null for
/// the activation.
std::vector<BackendDescriptor> tailOf(const Problem& problem, std::int64_t alignment) {
  const int dimensions = problem.dimensions;
  std::vector<BackendDescriptor> tail;
  if (problem.addsZ != 0) tail.push_back(makeY(kTensorZ, problem, alignment));
  const Problem::Sizes sizes{1, problem.ySizes[1], 1, 1, 1};
  const Problem::Sizes strides{problem.ySizes[1], 1, 1, 1, 1};
  tail.push_back(makeTensor(kTensorBias,
                            problem.yType,
                            firstOf(sizes, dimensions),
                            firstOf(strides, dimensions),
                            static_cast<std::int64_t>(elementBytes(problem.yType))));
  if (activates(problem)) tail.emplace_back();
  return tail;
}

}  // namespace

GraphTensors::GraphTensors(const Problem& problem, std::int64_t alignment)
    : convolution(makeConvolution(problem)),
      x(makeTensor(kTensorX,
                   problem.xType,
                   firstOf(problem.xSizes, problem.dimensions),
                   firstOf(problem.xStrides, problem.dimensions),
                   alignmentOf(problem.xBatchStrideBytes(), alignment))),
      w(makeTensor(kTensorW,
                   problem.wType,
                   firstOf(problem.wSizes, problem.dimensions),
                   filterStrides(problem),
                   alignment)),
      y(makeY(kTensorY, problem, alignment)) {}

std::vector<BackendDescriptor> makeOperations(const Problem& problem,
                                              const GraphTensors& tensors,
                                              double beta,
                                              std::int64_t alignment) {
  std::vector<BackendDescriptor> tail;
  if (problem.operation == Operation::kBiasActivationForward) tail = tailOf(problem, alignment);
  Problem unrounded = problem;  // with the type of tensors between two operations
  unrounded.yType = problem.computeType;
  std::vector<BackendDescriptor> between;
  while (between.size() < tail.size()) {
    const auto place = static_cast<std::int64_t>(between.size());
    between.push_back(makeY(kTensorVirtual + place, unrounded, alignment));
  }
  const auto outputOf = [&](std::size_t place) -> const BackendDescriptor& {
    return place == between.size() ? tensors.y : between[place];
  };
  std::vector<BackendDescriptor> operations;
  operations.push_back(makeOperation(problem, tensors, outputOf(0), beta));
  for (std::size_t i = 0; i < tail.size(); ++i)
    operations.push_back(makePointwise(problem, outputOf(i), tail[i], outputOf(i + 1)));
  return operations;
}

}  // namespace ucudnn

#endif
