#include "fused.hpp"

#include "../support/checked.hpp"

namespace ucudnn::test {
namespace {

Geometry biasGeometry(const Convolution& convolution) {
  Geometry geometry;
  geometry.type = convolution.parameters().type;
  geometry.sizes.assign(convolution.parameters().input.size() + 2, 1);
  geometry.sizes[1] = convolution.parameters().filters;
  geometry.strides.assign(geometry.sizes.size(), 1);
  geometry.strides[0] = geometry.sizes[1];
  return geometry;
}

}  // namespace

Fused::Fused(Convolution& convolution, cudnnActivationMode_t mode)
    : convolution_(convolution),
      z_(std::make_unique<DeviceBuffer>(convolution.y().bytes())),
      bias_(biasGeometry(convolution).bytes()) {
  const Geometry bias = biasGeometry(convolution);
  check(cudnnCreateTensorDescriptor(&biasDesc_));
  check(cudnnSetTensorNdDescriptor(biasDesc_,
                                   bias.type,
                                   static_cast<int>(bias.sizes.size()),
                                   bias.sizes.data(),
                                   bias.strides.data()));
  check(cudnnCreateActivationDescriptor(&activation_));
  check(cudnnSetActivationDescriptor(activation_, mode, CUDNN_NOT_PROPAGATE_NAN, 0));
  const Geometry& y = convolution.geometry(UCUDNN_FORWARD);
  check(cudnnCreateTensorDescriptor(&zDesc_));
  check(cudnnSetTensorNdDescriptor(
      zDesc_, y.type, static_cast<int>(y.sizes.size()), y.sizes.data(), y.strides.data()));
  bias_.write(randomValues(bias, 5));
  z_->write(randomValues(convolution.geometry(UCUDNN_FORWARD), 6));
}

Fused::~Fused() {
  cudnnDestroyTensorDescriptor(biasDesc_);
  cudnnDestroyTensorDescriptor(zDesc_);
  cudnnDestroyActivationDescriptor(activation_);
}

void Fused::setCoefficient(cudnnActivationMode_t mode, double coefficient) {
  check(cudnnSetActivationDescriptor(activation_, mode, CUDNN_NOT_PROPAGATE_NAN, coefficient));
}

void Fused::layOutZ(cudnnTensorFormat_t format) {
  const Geometry& y = convolution_.geometry(UCUDNN_FORWARD);
  check(cudnnSetTensor4dDescriptor(
      zDesc_, format, y.type, y.sizes[0], y.sizes[1], y.sizes[2], y.sizes[3]));
}

template <typename Handle>
cudnnStatus_t Fused::runOn(Handle handle,
                           int algorithm,
                           const Operands& operands,
                           double alpha1,
                           double alpha2,
                           Workspace workspace) {
  const bool isDouble = convolution_.parameters().type == CUDNN_DATA_DOUBLE;
  const double doubles[] = {alpha1, alpha2};
  const float floats[] = {static_cast<float>(alpha1), static_cast<float>(alpha2)};
  const auto factor = [&](int i) {
    return isDouble ? static_cast<const void*>(&doubles[i]) : &floats[i];
  };
  return cudnnConvolutionBiasActivationForward(
      handle,
      factor(0),
      convolution_.xDesc(),
      operands.x,
      convolution_.wDesc(),
      operands.w,
      convolution_.convDesc(),
      static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
      workspace.memory,
      workspace.bytes,
      factor(1),
      operands.z == operands.y ? convolution_.yDesc() : zDesc_,
      operands.z,
      biasDesc_,
      operands.bias,
      activation_,
      convolution_.yDesc(),
      operands.y);
}
template cudnnStatus_t Fused::runOn(cudnnHandle_t, int, const Operands&, double, double, Workspace);
template cudnnStatus_t Fused::runOn(
    UcudnnHandle_t, int, const Operands&, double, double, Workspace);

template <typename Handle>
cudnnStatus_t Fused::run(Handle handle,
                         int algorithm,
                         Workspace workspace,
                         double alpha1,
                         double alpha2,
                         bool zInPlace) {
  const Operands operands{convolution_.x().get(),
                          convolution_.w().get(),
                          convolution_.y().get(),
                          zInPlace ? convolution_.y().get() : z_->get(),
                          bias_.get()};
  return runOn(handle, algorithm, operands, alpha1, alpha2, workspace);
}
template cudnnStatus_t Fused::run(cudnnHandle_t, int, Workspace, double, double, bool);
template cudnnStatus_t Fused::run(UcudnnHandle_t, int, Workspace, double, double, bool);

}  // namespace ucudnn::test
