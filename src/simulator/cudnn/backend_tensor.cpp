// Tensor and convolution descriptors of the backend API.
#include <algorithm>

#include "simulator/cudnn/backend_operations.hpp"

namespace ucudnn::simulator {
namespace {

using ArrayMember = std::vector<std::int64_t> BackendConvolution::Value::*;

ArrayMember arrayMember(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_CONVOLUTION_DILATIONS:
      return &BackendConvolution::Value::dilations;
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES:
      return &BackendConvolution::Value::strides;
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
      return &BackendConvolution::Value::prePaddings;
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
      return &BackendConvolution::Value::postPaddings;
    default:
      refuseAttribute();
  }
}

}  // namespace

BackendTensor::Value BackendTensor::value() const {
  Value value = value_;
  value.finalized = finalized();
  return value;
}

void BackendTensor::setAttribute(cudnnBackendAttributeName_t name, const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      value_.type = input.scalar<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE);
      return;
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
      value_.dims = input.array<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_TENSOR_STRIDES:
      value_.strides = input.array<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
      value_.uid = input.scalar<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
      value_.alignment = input.scalar<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
      value_.isVirtual = input.scalar<bool>(CUDNN_TYPE_BOOLEAN);
      return;
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      value_.byValue = input.scalar<bool>(CUDNN_TYPE_BOOLEAN);
      return;
    case CUDNN_ATTR_TENSOR_VECTOR_COUNT:
      requireSupported(input.scalar<std::int64_t>(CUDNN_TYPE_INT64) == 1, "vectorized tensors");
      return;
    case CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION:
      requireSupported(input.scalar<std::int64_t>(CUDNN_TYPE_INT64) == -1, "vectorized tensors");
      return;
    case CUDNN_ATTR_TENSOR_REORDERING_MODE:
      requireSupported(input.scalar<cudnnBackendTensorReordering_t>(
                           CUDNN_TYPE_TENSOR_REORDERING_MODE) == CUDNN_TENSOR_REORDERING_NONE,
                       "reordered tensors");
      return;
    default:
      refuseAttribute();
  }
}

void BackendTensor::getAttribute(cudnnBackendAttributeName_t name,
                                 const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      return output.scalar(CUDNN_TYPE_DATA_TYPE, value_.type);
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
      return output.array(CUDNN_TYPE_INT64, value_.dims);
    case CUDNN_ATTR_TENSOR_STRIDES:
      return output.array(CUDNN_TYPE_INT64, value_.strides);
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
      return output.scalar(CUDNN_TYPE_INT64, value_.uid);
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
      return output.scalar(CUDNN_TYPE_BOOLEAN, value_.isVirtual);
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return output.scalar(CUDNN_TYPE_BOOLEAN, value_.byValue);
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:  // as cuDNN 9.19
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the alignment can't be read");
    default:
      refuseAttribute();
  }
}

void BackendTensor::complete() {
  const auto negative = [](std::int64_t number) { return number < 0; };
  require(isDataType(value_.type), "unknown data type");
  require(!value_.dims.empty(), "no dimensions");
  require(value_.dims.size() == value_.strides.size(), "numbers of dimensions and strides differ");
  require(std::none_of(value_.dims.begin(), value_.dims.end(), negative), "negative dimension");
  require(std::none_of(value_.strides.begin(), value_.strides.end(), negative), "negative stride");
  require(value_.alignment > 0 &&
              value_.alignment % static_cast<std::int64_t>(elementBytes(value_.type)) == 0,
          "the alignment is no multiple of the element's size");
}

BackendConvolution::Value BackendConvolution::value() const {
  Value value = value_;
  value.finalized = finalized();
  return value;
}

void BackendConvolution::setAttribute(cudnnBackendAttributeName_t name,
                                      const AttributeInput& input) {
  switch (name) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
      value_.computeType = input.scalar<cudnnDataType_t>(CUDNN_TYPE_DATA_TYPE);
      return;
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      value_.mode = input.scalar<cudnnConvolutionMode_t>(CUDNN_TYPE_CONVOLUTION_MODE);
      return;
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
      value_.spatialRank = input.scalar<std::int64_t>(CUDNN_TYPE_INT64);
      return;
    default:
      value_.*arrayMember(name) = input.array<std::int64_t>(CUDNN_TYPE_INT64);
  }
}

void BackendConvolution::getAttribute(cudnnBackendAttributeName_t name,
                                      const AttributeOutput& output) const {
  switch (name) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
      return output.scalar(CUDNN_TYPE_DATA_TYPE, value_.computeType);
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      return output.scalar(CUDNN_TYPE_CONVOLUTION_MODE, value_.mode);
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
      return output.scalar(CUDNN_TYPE_INT64, value_.spatialRank);
    default:
      output.array(CUDNN_TYPE_INT64, value_.*arrayMember(name));
  }
}

void BackendConvolution::complete() {
  const auto fits = [&](const std::vector<std::int64_t>& values, std::int64_t least) {
    return values.size() == static_cast<std::size_t>(value_.spatialRank) &&
           std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v >= least; });
  };
  require(value_.spatialRank > 0, "no spatial dimensions");
  // Paddings that were never set are zero.
  const std::vector<std::int64_t> none(static_cast<std::size_t>(value_.spatialRank), 0);
  if (value_.prePaddings.empty()) value_.prePaddings = none;
  if (value_.postPaddings.empty()) value_.postPaddings = none;
  require(fits(value_.dilations, 1), "dilations");
  require(fits(value_.strides, 1), "filter strides");
  require(fits(value_.prePaddings, 0) && fits(value_.postPaddings, 0), "paddings");
}

}  // namespace ucudnn::simulator
