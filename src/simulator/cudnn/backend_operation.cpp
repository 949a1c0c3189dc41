// Convolution operations of the backend API.
#include <algorithm>
#include <climits>

#include "simulator/cudnn/backend_operations.hpp"

namespace ucudnn::simulator {
namespace {

enum class Field { kAlpha, kBeta, kConvolution, kX, kW, kY };

// The three operations number the same attributes differently.
Field fieldOf(Operation operation, cudnnBackendAttributeName_t name) {
  struct Row {
    cudnnBackendAttributeName_t names[3];
    Field field;
  };
  static constexpr Row kRows[] = {
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA},
       Field::kAlpha},
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
       Field::kBeta},
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
       Field::kConvolution},
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X},
       Field::kX},
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
       Field::kW},
      {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
       Field::kY},
  };
  for (const Row& row : kRows) {
    if (row.names[static_cast<int>(operation)] == name) return row.field;
  }
  refuseAttribute();
}

cudnnBackendDescriptorType_t descriptorType(Operation operation) {
  switch (operation) {
    case Operation::kForward:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    case Operation::kBackwardData:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    default:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  }
}

void giveFactor(const BackendFactor& factor, const AttributeOutput& output) {
  require(output.type() == factor.type, "alpha and beta are read as they were set");
  if (factor.type == CUDNN_TYPE_DOUBLE) return output.scalar(CUDNN_TYPE_DOUBLE, factor.value);
  output.scalar(CUDNN_TYPE_FLOAT, static_cast<float>(factor.value));
}

int narrow(std::int64_t value) {
  requireSupported(value <= INT_MAX, "a number does not fit an int");
  return static_cast<int>(value);
}

cudnnConvolutionStruct convolutionOf(const BackendConvolution::Value& given) {
  requireSupported(given.spatialRank <= kMaximumRank, "number of spatial dimensions");
  cudnnConvolutionStruct convolution;
  convolution.spatialRank = narrow(given.spatialRank);
  std::transform(
      given.prePaddings.begin(), given.prePaddings.end(), convolution.pad.begin(), narrow);
  std::transform(
      given.postPaddings.begin(), given.postPaddings.end(), convolution.endPad.begin(), narrow);
  std::transform(given.strides.begin(), given.strides.end(), convolution.stride.begin(), narrow);
  std::transform(
      given.dilations.begin(), given.dilations.end(), convolution.dilation.begin(), narrow);
  convolution.mode = given.mode;
  convolution.computeType = given.computeType;
  return convolution;
}

bool packedFilter(const TensorShape& filter) {
  return extentBytes(filter) == elementCount(filter) * elementBytes(filter.type);
}

/// With one tap both formats are the same memory; then the image's format counts.
cudnnTensorFormat_t filterFormat(const ConvolutionProblem& problem) {
  const TensorShape& w = problem.w;
  const bool hasOneTap = std::all_of(
      w.dims.begin() + 2, w.dims.begin() + w.rank, [](int extent) { return extent == 1; });
  const TensorShape& decides = hasOneTap ? problem.x : w;
  return decides.strides[1] == 1 && decides.dims[1] > 1 ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

ConvolutionProblem problemOf(Operation operation,
                             const BackendTensor::Value& x,
                             const BackendTensor::Value& w,
                             const BackendTensor::Value& y,
                             const BackendConvolution::Value& convolution) {
  ConvolutionProblem problem;
  problem.operation = operation;
  problem.x = shapeOf(x);
  problem.w = shapeOf(w);
  problem.y = shapeOf(y);
  problem.convolution = convolutionOf(convolution);
  require(problem.w.rank >= 3 && problem.x.rank == problem.w.rank,
          "numbers of dimensions do not match");
  require(packedFilter(problem.w), "the filter has gaps");
  require(problem.x.dims[1] % problem.w.dims[1] == 0, "numbers of channels do not match");
  problem.convolution.groups = problem.x.dims[1] / problem.w.dims[1];
  problem.filterFormat = filterFormat(problem);
  checkDims(problem);
  return problem;
}

}  // namespace

BackendFactor readBackendFactor(const AttributeInput& input) {
  if (input.type() == CUDNN_TYPE_DOUBLE) {
    return {input.scalar<double>(CUDNN_TYPE_DOUBLE), CUDNN_TYPE_DOUBLE};
  }
  require(input.type() == CUDNN_TYPE_FLOAT, "alpha and beta are FLOAT or DOUBLE");
  return {static_cast<double>(input.scalar<float>(CUDNN_TYPE_FLOAT)), CUDNN_TYPE_FLOAT};
}

TensorShape shapeOf(const BackendTensor::Value& tensor) {
  requireSupported(tensor.dims.size() <= kMaximumRank, "number of dimensions");
  TensorShape shape;
  shape.type = tensor.type;
  shape.rank = static_cast<int>(tensor.dims.size());
  std::transform(tensor.dims.begin(), tensor.dims.end(), shape.dims.begin(), narrow);
  std::copy(tensor.strides.begin(), tensor.strides.end(), shape.strides.begin());
  require(std::count(tensor.dims.begin(), tensor.dims.end(), 0) == 0, "a dimension is 0");
  return shape;
}

BackendOperation::BackendOperation(Operation operation)
    : BackendDescriptor(descriptorType(operation)), operation_(operation) {}

void BackendOperation::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (fieldOf(operation_, name)) {
    case Field::kAlpha:
      alpha_ = readBackendFactor(input);
      return;
    case Field::kBeta:
      beta_ = readBackendFactor(input);
      return;
    case Field::kConvolution:
      convolution_ = backendReference<BackendConvolution>(input).value();
      return;
    case Field::kX:
      x_ = backendReference<BackendTensor>(input).value();
      return;
    case Field::kW:
      w_ = backendReference<BackendTensor>(input).value();
      return;
    case Field::kY:
      y_ = backendReference<BackendTensor>(input).value();
      return;
  }
}

void BackendOperation::getAttribute(cudnnBackendAttributeName_t name,
                                    const AttributeOutput& output) const {
  switch (fieldOf(operation_, name)) {
    case Field::kAlpha:
      return giveFactor(alpha_, output);
    case Field::kBeta:
      return giveFactor(beta_, output);
    default:
      requireSupported(false, "the simulator does not give an operation's descriptors back");
  }
}

void BackendOperation::complete() {
  require(x_.finalized && w_.finalized && y_.finalized && convolution_.finalized,
          "a tensor or the convolution is missing or not finalized");
  const bool leads = operation_ == Operation::kForward;  // to other operations
  if (x_.isVirtual || w_.isVirtual || (y_.isVirtual && !leads) || x_.byValue || w_.byValue ||
      y_.byValue) {
    refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "virtual tensors and tensors by value");
  }
  graph_.problem = problemOf(operation_, x_, w_, y_, convolution_);
  graph_.alpha = alpha_.value;
  graph_.beta = beta_.value;
  graph_.x = {x_.uid, x_.alignment};
  graph_.w = {w_.uid, w_.alignment};
  graph_.y = {y_.uid, y_.alignment};
}

}  // namespace ucudnn::simulator
