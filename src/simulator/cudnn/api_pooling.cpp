#include "simulator/cudnn/elementwise.hpp"
#include "simulator/cudnn/pooling.hpp"

using namespace ucudnn::simulator;

namespace {

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

UCUDNN_SIMULATED_DESCRIPTOR(Pooling)

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
    require(poolingDesc != nullptr, "null descriptor");
    require(mode >= CUDNN_POOLING_MAX && mode <= CUDNN_POOLING_MAX_DETERMINISTIC, "unknown mode");
    const cudnnPoolingStruct pooling = {mode,
                                        maxpoolingNanOpt,
                                        2,
                                        {windowHeight, windowWidth},
                                        {verticalPadding, horizontalPadding},
                                        {verticalStride, horizontalStride}};
    for (std::size_t d = 0; d < 2; ++d) {
      require(pooling.window[d] > 0 && pooling.stride[d] > 0, "window or stride is not positive");
      require(pooling.pad[d] >= 0 && pooling.pad[d] < pooling.window[d],
              "padding is negative or not below the window");
    }
    *poolingDesc = pooling;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                  const cudnnTensorDescriptor_t inputTensorDesc,
                                  int* n,
                                  int* c,
                                  int* h,
                                  int* w) {
  return guarded(__func__, [&] {
    require(poolingDesc != nullptr, "null pointer");
    const TensorShape& x = scalarShape(inputTensorDesc);
    require(x.rank == 4 && poolingDesc->spatialRank == 2, "numbers of dimensions do not match");
    int sizes[2];
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t room =
          x.dims[d + 2] + std::int64_t{2} * poolingDesc->pad[d] - poolingDesc->window[d];
      require(room >= 0, "the window is larger than the padded input");
      const std::int64_t outputs = room / poolingDesc->stride[d] + 1;
      requireSupported(outputs <= INT32_MAX, "the output does not fit an int");
      sizes[d] = static_cast<int>(outputs);
    }
    give(n, x.dims[0]);
    give(c, x.dims[1]);
    give(h, sizes[0]);
    give(w, sizes[1]);
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
    submitMemory(handle, "poolingForward", {{from, x, "x"}, {to, y, "y", true}}, [=] {
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
    require(in.sameDims(inGradient) && in.sameStrides(inGradient) && in.type == inGradient.type,
            "x and dx do not match");
    require(out.sameDims(outGradient) && out.sameStrides(outGradient), "y and dy do not match");
    packedShape(inGradient);  // refuses here what poolBackward could not address
    const double scale = readFactor(alpha, inGradient.type);
    const double keep = readFactor(beta, inGradient.type);
    submitMemory(
        handle,
        "poolingBackward",
        {{in, x, "x"}, {out, y, "y"}, {outGradient, dy, "dy"}, {inGradient, dx, "dx", true}},
        [=] { poolBackward(pooling, in, x, outGradient, dy, inGradient, dx, scale, keep); });
  });
}
