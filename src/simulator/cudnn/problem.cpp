#include "simulator/cudnn/problem.hpp"

namespace ucudnn::simulator {
namespace {

bool isInteger(cudnnDataType_t type) {
  return type == CUDNN_DATA_INT8 || type == CUDNN_DATA_UINT8 || vectorLength(type) > 1;
}

}  // namespace

void checkDims(const ConvolutionProblem& problem) {
  const TensorShape& x = problem.x;
  const TensorShape& w = problem.w;
  const TensorShape& y = problem.y;
  require(x.rank == w.rank && x.rank == y.rank, "numbers of dimensions do not match");
  require(problem.convolution.spatialRank == x.rank - 2,
          "the convolution's number of dimensions does not match the tensors'");
  requireSupported(x.rank == 4 || x.rank == 5, "tensors have neither 4 nor 5 dimensions");
  require(x.dims[1] == std::int64_t{w.dims[1]} * problem.groups(),
          "numbers of input channels do not match");
  require(w.dims[0] % problem.groups() == 0, "output channels are no multiple of the group count");
  require(x.dims[0] == y.dims[0], "batch sizes do not match");
  require(w.dims[0] == y.dims[1], "numbers of output channels do not match");
  for (std::size_t d = 2; d < static_cast<std::size_t>(x.rank); ++d) {
    const auto& convolution = problem.convolution;
    const std::int64_t span = std::int64_t{w.dims[d] - 1} * convolution.dilation[d - 2] + 1;
    const std::int64_t padded =
        std::int64_t{x.dims[d]} + convolution.pad[d - 2] + convolution.endPad[d - 2];
    requireSupported(padded <= INT32_MAX, "the padded input does not fit an int");
    require(span <= padded, "the filter is larger than the padded input");
    require(y.dims[d] == (padded - span) / convolution.stride[d - 2] + 1,
            "the output's size is not that of the convolution");
  }
}

void checkTypes(const ConvolutionProblem& problem) {
  const cudnnDataType_t x = problem.x.type;
  const cudnnDataType_t y = problem.y.type;
  const cudnnDataType_t compute = problem.convolution.computeType;
  requireSupported(problem.w.type == x || (isInteger(x) && isInteger(problem.w.type)),
                   "the filter's data type does not match the tensor's");
  if (isInteger(x)) {
    requireSupported(problem.operation == Operation::kForward, "integers have a forward pass only");
    requireSupported(compute == CUDNN_DATA_INT32, "integers compute in INT32");
    requireSupported(y == x || y == CUDNN_DATA_FLOAT, "integers produce integers or float");
    requireSupported(problem.groups() == 1, "integers are not grouped");
    return;
  }
  requireSupported(x == y, "input and output differ in data type");
  switch (x) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_BFLOAT16:
      return requireSupported(compute == CUDNN_DATA_FLOAT, "this data type computes in FLOAT");
    case CUDNN_DATA_DOUBLE:
      return requireSupported(compute == CUDNN_DATA_DOUBLE, "DOUBLE computes in DOUBLE");
    case CUDNN_DATA_HALF:
      return requireSupported(compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_HALF,
                              "HALF computes in FLOAT or HALF");
    default:
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "data type without convolutions");
  }
}

ConvolutionProblem makeProblem(Operation operation,
                               cudnnTensorDescriptor_t xDesc,
                               cudnnFilterDescriptor_t wDesc,
                               cudnnConvolutionDescriptor_t convDesc,
                               cudnnTensorDescriptor_t yDesc) {
  require(xDesc != nullptr && wDesc != nullptr && yDesc != nullptr, "null tensor or filter");
  require(convDesc != nullptr, "null convolution descriptor");
  require(xDesc->shape.rank != 0 && wDesc->shape.rank != 0 && yDesc->shape.rank != 0 &&
              convDesc->spatialRank != 0,
          "a descriptor has not been set");
  ConvolutionProblem problem;
  problem.operation = operation;
  problem.x = xDesc->shape;
  problem.w = wDesc->shape;
  problem.y = yDesc->shape;
  problem.filterFormat = wDesc->format;
  problem.convolution = *convDesc;
  checkDims(problem);
  checkTypes(problem);
  return problem;
}

}  // namespace ucudnn::simulator
