#include "simulator/cudnn/activation.hpp"
#include "simulator/cudnn/elementwise.hpp"

using namespace ucudnn::simulator;

UCUDNN_SIMULATED_DESCRIPTOR(Activation)

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                             cudnnActivationMode_t mode,
                             cudnnNanPropagation_t reluNanOpt,
                             double coef) {
  return guarded(__func__, [&] {
    require(activationDesc != nullptr, "null descriptor");
    require(mode >= CUDNN_ACTIVATION_SIGMOID && mode <= CUDNN_ACTIVATION_SWISH, "unknown mode");
    require(reluNanOpt == CUDNN_NOT_PROPAGATE_NAN || reluNanOpt == CUDNN_PROPAGATE_NAN,
            "unknown NaN propagation");
    activationDesc->mode = mode;
    activationDesc->nanPropagation = reluNanOpt;
    activationDesc->coefficient = coef;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activationDesc,
                             cudnnActivationMode_t* mode,
                             cudnnNanPropagation_t* reluNanOpt,
                             double* coef) {
  return guarded(__func__, [&] {
    require(activationDesc != nullptr, "null descriptor");
    give(mode, activationDesc->mode);
    give(reluNanOpt, activationDesc->nanPropagation);
    give(coef, activationDesc->coefficient);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnActivationForward(cudnnHandle_t handle,
                       cudnnActivationDescriptor_t activationDesc,
                       const void* alpha,
                       const cudnnTensorDescriptor_t xDesc,
                       const void* x,
                       const void* beta,
                       const cudnnTensorDescriptor_t yDesc,
                       void* y) {
  return guarded(__func__, [&] {
    require(handle != nullptr && activationDesc != nullptr, "null handle or descriptor");
    const cudnnActivationStruct activation = *activationDesc;
    const TensorShape from = scalarShape(xDesc);
    const TensorShape to = scalarShape(yDesc);
    require(from.sameDims(to) && from.type == to.type, "x and y do not match");
    const double scale = readFactor(alpha, to.type);
    const double keep = readFactor(beta, to.type);
    submitMemory(handle, "activationForward", {{from, x, "x"}, {to, y, "y", true}}, [=] {
      writeElements(to, y, keep, [&](const auto& index) {
        return scale * activate(loadAt(from, x, index), activation);
      });
    });
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t
cudnnActivationBackward(cudnnHandle_t handle,
                        cudnnActivationDescriptor_t activationDesc,
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
    require(handle != nullptr && activationDesc != nullptr, "null handle or descriptor");
    const cudnnActivationStruct activation = *activationDesc;
    const TensorShape out = scalarShape(yDesc);
    const TensorShape outGradient = scalarShape(dyDesc);
    const TensorShape in = scalarShape(xDesc);
    const TensorShape inGradient = scalarShape(dxDesc);
    for (const TensorShape* shape : {&out, &outGradient, &in}) {
      require(shape->sameDims(inGradient) && shape->type == inGradient.type,
              "the tensors do not match");
    }
    requireSupported(in.sameStrides(inGradient) && out.sameStrides(outGradient),
                     "a gradient's strides are not its tensor's");
    const double scale = readFactor(alpha, inGradient.type);
    const double keep = readFactor(beta, inGradient.type);
    submitMemory(
        handle,
        "activationBackward",
        {{out, y, "y"}, {outGradient, dy, "dy"}, {in, x, "x"}, {inGradient, dx, "dx", true}},
        [=] {
          writeElements(inGradient, dx, keep, [&](const auto& index) {
            const double slope =
                activationSlope(loadAt(in, x, index), loadAt(out, y, index), activation);
            return scale * slope * loadAt(outGradient, dy, index);
          });
        });
  });
}
