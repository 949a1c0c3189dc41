#include <algorithm>

#include "simulator/cudnn/elementwise.hpp"
#include "simulator/cudnn/pooling.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr const char* kKind = "cudnnPoolingDescriptor";

void setPooling(cudnnPoolingDescriptor_t pooling,
                cudnnPoolingMode_t mode,
                cudnnNanPropagation_t nanPropagation,
                int spatialRank,
                const int* window,
                const int* pad,
                const int* stride) {
  require(pooling != nullptr, "null descriptor");
  require(window != nullptr && pad != nullptr && stride != nullptr, "null array");
  require(mode >= CUDNN_POOLING_MAX && mode <= CUDNN_POOLING_MAX_DETERMINISTIC, "unknown mode");
  requireSupported(spatialRank == 2 || spatialRank == 3, "number of spatial dimensions");
  for (int d = 0; d < spatialRank; ++d) {
    require(window[d] > 0 && stride[d] > 0, "window or stride is not positive");
    require(pad[d] >= 0 && pad[d] < window[d], "padding is negative or not below the window");
  }
  pooling->mode = mode;
  pooling->nanPropagation = nanPropagation;
  pooling->spatialRank = spatialRank;
  std::copy_n(window, spatialRank, pooling->window.begin());
  std::copy_n(pad, spatialRank, pooling->pad.begin());
  std::copy_n(stride, spatialRank, pooling->stride.begin());
}

void outputDims(cudnnPoolingDescriptor_t pooling,
                cudnnTensorDescriptor_t input,
                int rank,
                int* dims) {
  require(pooling != nullptr && dims != nullptr, "null pointer");
  const TensorShape& x = scalarShape(input);
  require(x.rank == rank && pooling->spatialRank == rank - 2, "numbers of dimensions do not match");
  dims[0] = x.dims[0];
  dims[1] = x.dims[1];
  for (std::size_t d = 2; d < static_cast<std::size_t>(rank); ++d) {
    const std::int64_t room =
        x.dims[d] + std::int64_t{2} * pooling->pad[d - 2] - pooling->window[d - 2];
    require(room >= 0, "the window is larger than the padded input");
    const std::int64_t outputs = room / pooling->stride[d - 2] + 1;
    requireSupported(outputs <= INT32_MAX, "the output does not fit an int");
    dims[d] = static_cast<int>(outputs);
  }
}

// cuDNN on an H200 takes any size in space (16 and 17 where the formula says 15): Caffe rounds up.
void requireOutput(cudnnPoolingDescriptor_t pooling,
                   cudnnTensorDescriptor_t input,
                   const TensorShape& y) {
  const TensorShape& x = input->shape;
  require(y.type == x.type, "the tensors differ in data type");
  require(x.rank == y.rank && pooling->spatialRank == x.rank - 2,
          "numbers of dimensions do not match");
  require(y.dims[0] == x.dims[0] && y.dims[1] == x.dims[1],
          "batch sizes or numbers of channels do not match");
}

}  // namespace

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* poolingDesc) {
  return createDescriptor(__func__, kKind, poolingDesc);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t poolingDesc) {
  return destroyDescriptor(__func__, kKind, poolingDesc);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                            cudnnPoolingMode_t mode,
                            cudnnNanPropagation_t maxpoolingNanOpt,
                            int windowHeight,
                            int windowWidth,
                            int verticalPadding,
                            int horizontalPadding,
                            int verticalStride,
                            int horizontalStride) {
  return guarded(__func__, [&] {
    const int window[] = {windowHeight, windowWidth};
    const int pad[] = {verticalPadding, horizontalPadding};
    const int stride[] = {verticalStride, horizontalStride};
    setPooling(poolingDesc, mode, maxpoolingNanOpt, 2, window, pad, stride);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
                            cudnnPoolingMode_t* mode,
                            cudnnNanPropagation_t* maxpoolingNanOpt,
                            int* windowHeight,
                            int* windowWidth,
                            int* verticalPadding,
                            int* horizontalPadding,
                            int* verticalStride,
                            int* horizontalStride) {
  return guarded(__func__, [&] {
    require(poolingDesc != nullptr, "null descriptor");
    require(poolingDesc->spatialRank == 2, "the pooling does not have 2 spatial dimensions");
    give(mode, poolingDesc->mode);
    give(maxpoolingNanOpt, poolingDesc->nanPropagation);
    give(windowHeight, poolingDesc->window[0]);
    give(windowWidth, poolingDesc->window[1]);
    give(verticalPadding, poolingDesc->pad[0]);
    give(horizontalPadding, poolingDesc->pad[1]);
    give(verticalStride, poolingDesc->stride[0]);
    give(horizontalStride, poolingDesc->stride[1]);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                            const cudnnPoolingMode_t mode,
                            const cudnnNanPropagation_t maxpoolingNanOpt,
                            int nbDims,
                            const int windowDimA[],
                            const int paddingA[],
                            const int strideA[]) {
  return guarded(__func__, [&] {
    setPooling(poolingDesc, mode, maxpoolingNanOpt, nbDims, windowDimA, paddingA, strideA);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
                            int nbDimsRequested,
                            cudnnPoolingMode_t* mode,
                            cudnnNanPropagation_t* maxpoolingNanOpt,
                            int* nbDims,
                            int windowDimA[],
                            int paddingA[],
                            int strideA[]) {
  return guarded(__func__, [&] {
    require(poolingDesc != nullptr, "null descriptor");
    require(nbDimsRequested >= 0, "negative number of dimensions");
    const int count = std::min(nbDimsRequested, poolingDesc->spatialRank);
    give(mode, poolingDesc->mode);
    give(maxpoolingNanOpt, poolingDesc->nanPropagation);
    give(nbDims, poolingDesc->spatialRank);
    if (windowDimA != nullptr) std::copy_n(poolingDesc->window.begin(), count, windowDimA);
    if (paddingA != nullptr) std::copy_n(poolingDesc->pad.begin(), count, paddingA);
    if (strideA != nullptr) std::copy_n(poolingDesc->stride.begin(), count, strideA);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                  const cudnnTensorDescriptor_t inputTensorDesc,
                                  int nbDims,
                                  int outputTensorDimA[]) {
  return guarded(__func__,
                 [&] { outputDims(poolingDesc, inputTensorDesc, nbDims, outputTensorDimA); });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                  const cudnnTensorDescriptor_t inputTensorDesc,
                                  int* n,
                                  int* c,
                                  int* h,
                                  int* w) {
  return guarded(__func__, [&] {
    int dims[4];
    outputDims(poolingDesc, inputTensorDesc, 4, dims);
    give(n, dims[0]);
    give(c, dims[1]);
    give(h, dims[2]);
    give(w, dims[3]);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle,
                                                         const cudnnPoolingDescriptor_t poolingDesc,
                                                         const void* alpha,
                                                         const cudnnTensorDescriptor_t xDesc,
                                                         const void* x,
                                                         const void* beta,
                                                         const cudnnTensorDescriptor_t yDesc,
                                                         void* y) {
  return guarded(__func__, [&] {
    require(handle != nullptr && poolingDesc != nullptr, "null handle or descriptor");
    const cudnnPoolingStruct pooling = *poolingDesc;
    const TensorShape from = scalarShape(xDesc);
    const TensorShape to = scalarShape(yDesc);
    requireOutput(poolingDesc, xDesc, to);
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    requireTensor(from, x, "x");
    requireTensor(to, y, "y");
    submitMemory(handle, "poolingForward", {{from, x, false}, {to, y, true}}, [=] {
      poolForward(pooling, from, x, to, y, scale, keep);
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnPoolingBackward(cudnnHandle_t handle,
                     const cudnnPoolingDescriptor_t poolingDesc,
                     const void* alpha,
                     const cudnnTensorDescriptor_t yDesc,
                     const void* y,
                     const cudnnTensorDescriptor_t dyDesc,
                     const void* dy,
                     const cudnnTensorDescriptor_t xDesc,
                     const void* x,
                     const void* beta,
                     const cudnnTensorDescriptor_t dxDesc,
                     void* dx) {
  return guarded(__func__, [&] {
    require(handle != nullptr && poolingDesc != nullptr, "null handle or descriptor");
    const cudnnPoolingStruct pooling = *poolingDesc;
    const TensorShape in = scalarShape(xDesc);
    const TensorShape out = scalarShape(yDesc);
    const TensorShape outGradient = scalarShape(dyDesc);
    const TensorShape inGradient = scalarShape(dxDesc);
    requireOutput(poolingDesc, xDesc, out);
    requireOutput(poolingDesc, xDesc, outGradient);
    require(in.sameDims(inGradient) && in.type == inGradient.type, "x and dx do not match");
    require(out.sameDims(outGradient), "y and dy do not match");
    packedShape(inGradient);  // refuses here what poolBackward could not address
    const double scale = readFactor(alpha, inGradient.type);
    const double keep = readFactor(beta, inGradient.type);
    requireTensor(in, x, "x");
    requireTensor(out, y, "y");
    requireTensor(outGradient, dy, "dy");
    requireTensor(inGradient, dx, "dx");
    submitMemory(
        handle,
        "poolingBackward",
        {{in, x, false}, {out, y, false}, {outGradient, dy, false}, {inGradient, dx, true}},
        [=] { poolBackward(pooling, in, x, outGradient, dy, inGradient, dx, scale, keep); });
  });
}
