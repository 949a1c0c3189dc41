#include <algorithm>

#include "simulator/cudnn/descriptors.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr const char* kKind = "cudnnConvolutionDescriptor";
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

// The output's dimensions; shared by the 2d and the Nd function.
void outputDims(cudnnConvolutionDescriptor_t convolution,
                cudnnTensorDescriptor_t input,
                cudnnFilterDescriptor_t filter,
                int rank,
                int* dims) {
  require(convolution != nullptr && input != nullptr && filter != nullptr, "null descriptor");
  require(dims != nullptr, "null dimensions");
  const TensorShape& x = input->shape;
  const TensorShape& w = filter->shape;
  require(x.rank == rank && w.rank == rank && convolution->spatialRank == rank - 2,
          "numbers of dimensions do not match");
  require(x.dims[1] == std::int64_t{w.dims[1]} * convolution->groups,
          "numbers of channels do not match");
  dims[0] = x.dims[0];
  dims[1] = w.dims[0];
  for (int dim = 2; dim < rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t span = std::int64_t{w.dims[d] - 1} * convolution->dilation[d - 2] + 1;
    const std::int64_t padded = x.dims[d] + std::int64_t{2} * convolution->pad[d - 2];
    requireSupported(padded <= INT32_MAX, "the padded input does not fit an int");
    require(span <= padded, "the filter is larger than the padded input");
    dims[dim] = static_cast<int>((padded - span) / convolution->stride[d - 2] + 1);
  }
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convDesc) {
  return createDescriptor(__func__, kKind, convDesc);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc) {
  return destroyDescriptor(__func__, kKind, convDesc);
}

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

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetConvolutionReorderType(
    cudnnConvolutionDescriptor_t convDesc, cudnnReorderType_t reorderType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr, "null descriptor");
    require(reorderType == CUDNN_DEFAULT_REORDER || reorderType == CUDNN_NO_REORDER,
            "unknown reorder type");
    convDesc->reorderType = reorderType;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGetConvolutionReorderType(
    cudnnConvolutionDescriptor_t convDesc, cudnnReorderType_t* reorderType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr && reorderType != nullptr, "null pointer");
    *reorderType = convDesc->reorderType;
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
cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                int* pad_h,
                                int* pad_w,
                                int* u,
                                int* v,
                                int* dilation_h,
                                int* dilation_w,
                                cudnnConvolutionMode_t* mode,
                                cudnnDataType_t* computeType) {
  return guarded(__func__, [&] {
    require(convDesc != nullptr, "null descriptor");
    require(convDesc->spatialRank == 2, "the convolution does not have 2 spatial dimensions");
    give(pad_h, convDesc->pad[0]);
    give(pad_w, convDesc->pad[1]);
    give(u, convDesc->stride[0]);
    give(v, convDesc->stride[1]);
    give(dilation_h, convDesc->dilation[0]);
    give(dilation_w, convDesc->dilation[1]);
    give(mode, convDesc->mode);
    give(computeType, convDesc->computeType);
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
cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                      const cudnnTensorDescriptor_t inputTensorDesc,
                                      const cudnnFilterDescriptor_t filterDesc,
                                      int* n,
                                      int* c,
                                      int* h,
                                      int* w) {
  return guarded(__func__, [&] {
    int dims[4];
    outputDims(convDesc, inputTensorDesc, filterDesc, 4, dims);
    give(n, dims[0]);
    give(c, dims[1]);
    give(h, dims[2]);
    give(w, dims[3]);
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
    outputDims(convDesc, inputTensorDesc, filterDesc, nbDims, tensorOuputDimA);
  });
}
