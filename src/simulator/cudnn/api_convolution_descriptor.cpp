#include <algorithm>

#include "simulator/cudnn/descriptors.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr int kMaximumSpatialRank = CUDNN_DIM_MAX - 2;

void setConvolution(cudnnConvolutionDescriptor_t convolution,
                    int spatialRank,
                    const int* pad,
                    const int* stride,
                    const int* dilation,
                    cudnnConvolutionMode_t mode,
                    cudnnDataType_t computeType) {
  require(convolution != nullptr, "null descriptor");
  require(pad != nullptr && stride != nullptr && dilation != nullptr, "null array");
  require(spatialRank >= 0, "negative number of spatial dimensions");
  requireSupported(spatialRank >= 1 && spatialRank <= kMaximumSpatialRank,
                   "number of spatial dimensions");
  require(mode == CUDNN_CONVOLUTION || mode == CUDNN_CROSS_CORRELATION, "unknown mode");
  require(isDataType(computeType), "unknown compute type");
  for (int dim = 0; dim < spatialRank; ++dim) {
    require(pad[dim] >= 0, "negative padding");
    require(stride[dim] > 0, "stride is not positive");
    require(dilation[dim] > 0, "dilation is not positive");
  }
  convolution->spatialRank = spatialRank;
  std::copy_n(pad, spatialRank, convolution->pad.begin());
  convolution->endPad = convolution->pad;
  std::copy_n(stride, spatialRank, convolution->stride.begin());
  std::copy_n(dilation, spatialRank, convolution->dilation.begin());
  convolution->mode = mode;
  convolution->computeType = computeType;
}

}  // namespace

UCUDNN_SIMULATED_DESCRIPTOR(Convolution)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr, "null descriptor");
    require(mathType >= CUDNN_DEFAULT_MATH && mathType <= CUDNN_FMA_MATH, "unknown math type");
    convDesc->mathType = mathType;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t* mathType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr && mathType != nullptr, "null pointer");
    *mathType = convDesc->mathType;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr, "null descriptor");
    require(groupCount > 0, "group count is not positive");
    convDesc->groups = groupCount;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int* groupCount) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr && groupCount != nullptr, "null pointer");
    *groupCount = convDesc->groups;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                int pad_h,
                                int pad_w,
                                int u,
                                int v,
                                int dilation_h,
                                int dilation_w,
                                cudnnConvolutionMode_t mode,
                                cudnnDataType_t computeType) {
  return guarded(__func__, [&] {
    const int pad[] = {pad_h, pad_w};
    const int stride[] = {u, v};
    const int dilation[] = {dilation_h, dilation_w};
    setConvolution(convDesc, 2, pad, stride, dilation, mode, computeType);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                int arrayLength,
                                const int padA[],
                                const int filterStrideA[],
                                const int dilationA[],
                                cudnnConvolutionMode_t mode,
                                cudnnDataType_t computeType) {
  return guarded(__func__, [&] {
    setConvolution(convDesc, arrayLength, padA, filterStrideA, dilationA, mode, computeType);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                int arrayLengthRequested,
                                int* arrayLength,
                                int padA[],
                                int strideA[],
                                int dilationA[],
                                cudnnConvolutionMode_t* mode,
                                cudnnDataType_t* computeType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr, "null descriptor");
    require(arrayLengthRequested >= 0, "negative array length");
    requireSupported(arrayLengthRequested <= CUDNN_DIM_MAX, "array length");
    const int count = std::min(arrayLengthRequested, convDesc->spatialRank);
    give(arrayLength, convDesc->spatialRank);
    if (padA != nullptr) std::copy_n(convDesc->pad.begin(), count, padA);
    if (strideA != nullptr) std::copy_n(convDesc->stride.begin(), count, strideA);
    if (dilationA != nullptr) std::copy_n(convDesc->dilation.begin(), count, dilationA);
    give(mode, convDesc->mode);
    give(computeType, convDesc->computeType);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                      const cudnnTensorDescriptor_t inputTensorDesc,
                                      const cudnnFilterDescriptor_t filterDesc,
                                      int nbDims,
                                      int tensorOuputDimA[]) {
  return guarded(__func__, [&] {
    require(nbDims >= 3 && nbDims <= kMaximumRank, "number of dimensions");
    require(convDesc != nullptr && inputTensorDesc != nullptr && filterDesc != nullptr,
            "null descriptor");
    require(tensorOuputDimA != nullptr, "null dimensions");
    const TensorShape& x = inputTensorDesc->shape;
    const TensorShape& w = filterDesc->shape;
    require(x.rank == nbDims && w.rank == nbDims && convDesc->spatialRank == nbDims - 2,
            "numbers of dimensions do not match");
    require(x.dims[1] == std::int64_t{w.dims[1]} * convDesc->groups,
            "numbers of channels do not match");
    tensorOuputDimA[0] = x.dims[0];
    tensorOuputDimA[1] = w.dims[0];
    for (std::size_t d = 2; d < static_cast<std::size_t>(nbDims); ++d) {
      const std::int64_t span = std::int64_t{w.dims[d] - 1} * convDesc->dilation[d - 2] + 1;
      const std::int64_t padded = x.dims[d] + std::int64_t{2} * convDesc->pad[d - 2];
      requireSupported(padded <= INT32_MAX, "the padded input does not fit an int");
      require(span <= padded, "the filter is larger than the padded input");
      tensorOuputDimA[d] = static_cast<int>((padded - span) / convDesc->stride[d - 2] + 1);
    }
  });
}
