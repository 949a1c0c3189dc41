#include "simulator/cudnn/descriptors.hpp"

using namespace ucudnn::simulator;

namespace {

void setFilter(cudnnFilterDescriptor_t filter,
               cudnnDataType_t type,
               cudnnTensorFormat_t format,
               int rank,
               const int* dims) {
  require(filter != nullptr && dims != nullptr, "null descriptor or dimensions");
  require(isDataType(type), "unknown data type");
  require(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC ||
              format == CUDNN_TENSOR_NCHW_VECT_C,
          "unknown filter format");
  require(rank >= 3, "fewer than three dimensions");
  requireSupported(rank <= kMaximumRank, "more than CUDNN_DIM_MAX dimensions");
  TensorShape shape;
  shape.type = type;
  shape.rank = rank;
  for (int dim = 0; dim < rank; ++dim) {
    require(dims[dim] > 0, "a dimension is not positive");
    shape.dims[static_cast<std::size_t>(dim)] = dims[dim];
  }
  require(shape.dims[1] % vectorLength(type) == 0, "channels are no multiple of the vector length");
  requireSupported(setPackedStrides(&shape, format), "a stride does not fit an int");
  filter->shape = shape;
  filter->format = format;
}

}  // namespace

UCUDNN_SIMULATED_DESCRIPTOR(Filter)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                                cudnnDataType_t dataType,
                                                                cudnnTensorFormat_t format,
                                                                int k,
                                                                int c,
                                                                int h,
                                                                int w) {
  return guarded(__func__, [&] {
    const int dims[] = {k, c, h, w};
    setFilter(filterDesc, dataType, format, 4, dims);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                                cudnnDataType_t dataType,
                                                                cudnnTensorFormat_t format,
                                                                int nbDims,
                                                                const int filterDimA[]) {
  return guarded(__func__, [&] { setFilter(filterDesc, dataType, format, nbDims, filterDimA); });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
                           int nbDimsRequested,
                           cudnnDataType_t* dataType,
                           cudnnTensorFormat_t* format,
                           int* nbDims,
                           int filterDimA[]) {
  return guarded(__func__, [&] {
    require(filterDesc != nullptr, "null descriptor");
    require(nbDimsRequested >= 0, "negative number of dimensions");
    requireSupported(nbDimsRequested <= kMaximumRank, "more than CUDNN_DIM_MAX dimensions");
    const TensorShape& shape = filterDesc->shape;
    give(dataType, shape.type);
    give(format, filterDesc->format);
    give(nbDims, shape.rank);
    for (int dim = 0; dim < nbDimsRequested && dim < shape.rank; ++dim) {
      if (filterDimA != nullptr) filterDimA[dim] = shape.dims[static_cast<std::size_t>(dim)];
    }
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t* size) {
  return guarded(__func__, [&] {
    require(filterDesc != nullptr && size != nullptr, "null descriptor or size pointer");
    *size = filterDesc->shape.rank == 0 ? 0 : extentBytes(filterDesc->shape);
  });
}
