#include "simulator/cudnn/descriptors.hpp"

using namespace ucudnn::simulator;

namespace {

// cuDNN's documents say 4; its own clients (and cuDNN) get by with 3.
constexpr int kMinimumRank = 3;

bool isFormat(cudnnTensorFormat_t format) {
  return format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC ||
         format == CUDNN_TENSOR_NCHW_VECT_C;
}

TensorShape makeShape(cudnnDataType_t type, int rank, const int* dims) {
  require(isDataType(type), "unknown data type");
  require(dims != nullptr, "null dimensions");
  require(rank >= kMinimumRank, "fewer than three dimensions");
  requireSupported(rank <= kMaximumRank, "more than CUDNN_DIM_MAX dimensions");
  TensorShape shape;
  shape.type = type;
  shape.rank = rank;
  for (int dim = 0; dim < rank; ++dim) {
    require(dims[dim] > 0, "a dimension is not positive");
    shape.dims[static_cast<std::size_t>(dim)] = dims[dim];
  }
  return shape;
}

/// As cuDNN 9.19, which counts gaps, too. Filters may be larger.
TensorShape requireExtent(TensorShape shape) {
  requireSupported(!isLarge(shape), "the tensor extends over 2^31 elements");
  return shape;
}

TensorShape makePacked(cudnnTensorFormat_t format,
                       cudnnDataType_t type,
                       int rank,
                       const int* dims) {
  require(isFormat(format), "unknown tensor format");
  TensorShape shape = makeShape(type, rank, dims);
  require((format == CUDNN_TENSOR_NCHW_VECT_C) == (vectorLength(type) > 1),
          "NCHW_VECT_C goes with vectorized data types, and only with them");
  require(shape.dims[1] % vectorLength(type) == 0, "channels are no multiple of the vector length");
  requireSupported(setPackedStrides(&shape, format), "a stride does not fit an int");
  return requireExtent(shape);
}

TensorShape makeStrided(cudnnDataType_t type, int rank, const int* dims, const int* strides) {
  require(strides != nullptr, "null strides");
  TensorShape shape = makeShape(type, rank, dims);
  for (int dim = 0; dim < rank; ++dim) {
    requireSupported(strides[dim] >= 0, "negative stride");
    require(strides[dim] > 0 || dims[dim] == 1, "a stride is 0");
    shape.strides[static_cast<std::size_t>(dim)] = strides[dim];
  }
  return requireExtent(shape);
}

}  // namespace

UCUDNN_SIMULATED_DESCRIPTOR(Tensor)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                                cudnnTensorFormat_t format,
                                                                cudnnDataType_t dataType,
                                                                int n,
                                                                int c,
                                                                int h,
                                                                int w) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr, "null descriptor");
    const int dims[] = {n, c, h, w};
    tensorDesc->shape = makePacked(format, dataType, 4, dims);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                             cudnnDataType_t dataType,
                             int n,
                             int c,
                             int h,
                             int w,
                             int nStride,
                             int cStride,
                             int hStride,
                             int wStride) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr, "null descriptor");
    const int dims[] = {n, c, h, w};
    const int strides[] = {nStride, cStride, hStride, wStride};
    tensorDesc->shape = makeStrided(dataType, 4, dims, strides);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                                cudnnDataType_t dataType,
                                                                int nbDims,
                                                                const int dimA[],
                                                                const int strideA[]) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr, "null descriptor");
    tensorDesc->shape = makeStrided(dataType, nbDims, dimA, strideA);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                             cudnnTensorFormat_t format,
                             cudnnDataType_t dataType,
                             int nbDims,
                             const int dimA[]) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr, "null descriptor");
    tensorDesc->shape = makePacked(format, dataType, nbDims, dimA);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                           int nbDimsRequested,
                           cudnnDataType_t* dataType,
                           int* nbDims,
                           int dimA[],
                           int strideA[]) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr, "null descriptor");
    // As many as there are, however many are asked for: even more than CUDNN_DIM_MAX.
    require(nbDimsRequested >= 0, "negative number of dimensions");
    const TensorShape& shape = tensorDesc->shape;
    give(dataType, shape.type);
    give(nbDims, shape.rank);
    for (int dim = 0; dim < nbDimsRequested && dim < shape.rank; ++dim) {
      const auto d = static_cast<std::size_t>(dim);
      if (dimA != nullptr) dimA[dim] = shape.dims[d];
      if (strideA != nullptr) strideA[dim] = static_cast<int>(shape.strides[d]);
    }
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t* size) {
  return guarded(__func__, [&] {
    require(tensorDesc != nullptr && size != nullptr, "null descriptor or size pointer");
    *size = tensorDesc->shape.rank == 0 ? 0 : extentBytes(tensorDesc->shape);
  });
}
