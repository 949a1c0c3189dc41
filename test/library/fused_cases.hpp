// Random layers in random places, and what cuDNN makes of them.
#pragma once

#include <functional>
#include <memory>
#include <random>

#include "host_tensors.hpp"
#include "small_tensors.hpp"

namespace ucudnn::test {

using Bytes = std::vector<char>;

/// A random layer, its values, and what cuDNN makes of them.
class FusedCase {
 public:
  FusedCase(const ConvolutionCase& parameters, std::mt19937& random)
      : random_(random),
        convolution_(parameters),
        factors_(parameters.type, 1, 0),
        isTransposed_(pick(4) == 0) {
    const Geometry& y = convolution_.geometry(output());
    Sizes bias(y.sizes.size(), 1);
    bias[1] = y.sizes[1];
    bias_ = std::make_unique<SmallTensor>(parameters.type, bias, false, 0, 11);
    layer_.size = sizeof layer_;
    layer_.x = isTransposed_ ? convolution_.yDesc() : convolution_.xDesc();
    layer_.w = convolution_.wDesc();
    layer_.convolution = convolution_.convDesc();
    layer_.transposed = isTransposed_ ? 1 : 0;
    layer_.y = isTransposed_ ? convolution_.xDesc() : convolution_.yDesc();
    if (pick(4) != 0) layer_.bias = bias_->desc();
    EXPECT_CUDNN(cudnnCreateActivationDescriptor(&activation_));
    mode_ = pick(3) == 0 ? CUDNN_ACTIVATION_TANH : CUDNN_ACTIVATION_RELU;
    EXPECT_CUDNN(cudnnSetActivationDescriptor(activation_, mode_, CUDNN_NOT_PROPAGATE_NAN, 0));
    if (pick(4) != 0) layer_.activation = activation_;
    EXPECT_CUDNN(cudnnCreatePoolingDescriptor(&pooling_));
    EXPECT_CUDNN(cudnnSetPooling2dDescriptor(
        pooling_, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    if (y.sizes.size() != 4 || y.sizes[2] < 2 || y.sizes[3] < 2 || pick(2) == 0) return;
    pooled_ =
        std::make_unique<SmallTensor>(parameters.type,
                                      Sizes{y.sizes[0], y.sizes[1], y.sizes[2] / 2, y.sizes[3] / 2},
                                      false,
                                      0,
                                      12);
    layer_.pooling = pooling_;
    layer_.pooled = pooled_->desc();
  }
  ~FusedCase() {
    EXPECT_CUDNN(cudnnDestroyActivationDescriptor(activation_));
    EXPECT_CUDNN(cudnnDestroyPoolingDescriptor(pooling_));
  }
  FusedCase(const FusedCase&) = delete;
  FusedCase& operator=(const FusedCase&) = delete;

  const ucudnnFusedLayer_t& layer() const { return layer_; }
  ucudnnFusedLayer_t& layer() { return layer_; }
  bool hasPooling() const { return pooled_ != nullptr; }
  const SmallTensor& bias() const { return *bias_; }
  const Geometry& geometryOf(ucudnnOperation_t operation) const {
    return convolution_.geometry(operation);
  }
  ucudnnOperation_t output() const { return isTransposed_ ? UCUDNN_BACKWARD_DATA : UCUDNN_FORWARD; }
  ucudnnOperation_t input() const { return isTransposed_ ? UCUDNN_FORWARD : UCUDNN_BACKWARD_DATA; }
  Bytes x() { return randomValues(geometryOf(input()), 21); }
  Bytes w() { return randomValues(geometryOf(UCUDNN_BACKWARD_FILTER), 22); }
  Bytes garbage(ucudnnOperation_t operation) { return randomValues(geometryOf(operation), 23); }
  Bytes garbagePooled() const { return pooled_->values(); }
  Bytes dOutput() {
    return hasPooling() ? randomValues(pooled_->geometry(), 24)
                        : randomValues(geometryOf(output()), 24);
  }

  struct Outputs {
    Bytes y, pooled, dx, dw, db;
  };
  /// Returns false if cuDNN has no algorithm.
  bool compute(cudnnHandle_t native, Outputs& outputs) {
    return computeForward(native, outputs) && computeBackward(native, outputs);
  }

 private:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_()) % count; }

  DeviceBuffer& bufferOf(ucudnnOperation_t operation) { return convolution_.output(operation); }

  bool convolve(cudnnHandle_t native, ucudnnOperation_t operation, Bytes& result) {
    const auto found = inCoreIfAny(convolution_, native, operation, 1, 0);
    if (found) result = *found;
    return found.has_value();
  }

  bool computeForward(cudnnHandle_t native, Outputs& outputs) {
    bufferOf(input()).write(x());
    convolution_.w().write(w());
    bufferOf(output()).write(garbage(output()));
    Memory bias(Place::kDevice, bias_->values());
    const bool isFused = layer_.bias != nullptr && layer_.activation != nullptr &&
                         mode_ == CUDNN_ACTIVATION_RELU && !isTransposed_ &&
                         convolution_.parameters().type == CUDNN_DATA_FLOAT;
    if (isFused) {
      const DeviceBuffer workspace(std::size_t{1} << 20);
      if (cudnnConvolutionBiasActivationForward(native,
                                                factors_.alpha(),
                                                layer_.x,
                                                convolution_.x().get(),
                                                layer_.w,
                                                convolution_.w().get(),
                                                layer_.convolution,
                                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                workspace.get(),
                                                workspace.bytes(),
                                                factors_.beta(),
                                                layer_.y,
                                                convolution_.y().get(),
                                                layer_.bias,
                                                bias.get(),
                                                layer_.activation,
                                                layer_.y,
                                                convolution_.y().get()) != CUDNN_STATUS_SUCCESS)
        return false;
      outputs.y = convolution_.y().read();
    } else if (!convolve(native, output(), outputs.y)) {
      return false;
    }
    Memory y(Place::kDevice, outputs.y);
    if (!isFused && layer_.bias != nullptr) {
      EXPECT_CUDNN(cudnnAddTensor(
          native, factors_.alpha(), layer_.bias, bias.get(), factors_.alpha(), layer_.y, y.get()));
    }
    if (!isFused && layer_.activation != nullptr) {
      EXPECT_CUDNN(cudnnActivationForward(native,
                                          activation_,
                                          factors_.alpha(),
                                          layer_.y,
                                          y.get(),
                                          factors_.beta(),
                                          layer_.y,
                                          y.get()));
    }
    outputs.y = y.read();
    if (!hasPooling()) return true;
    Memory pooled(Place::kDevice, pooled_->values());
    EXPECT_CUDNN(cudnnPoolingForward(native,
                                     pooling_,
                                     factors_.alpha(),
                                     layer_.y,
                                     y.get(),
                                     factors_.beta(),
                                     layer_.pooled,
                                     pooled.get()));
    outputs.pooled = pooled.read();
    return true;
  }

  bool computeBackward(cudnnHandle_t native, Outputs& outputs) {
    Memory given(Place::kDevice, dOutput()), y(Place::kDevice, outputs.y);
    Memory dy(Place::kDevice, hasPooling() ? outputs.y : dOutput());
    Memory dz(Place::kDevice, outputs.y);
    if (hasPooling()) {
      Memory pooled(Place::kDevice, outputs.pooled);
      EXPECT_CUDNN(cudnnPoolingBackward(native,
                                        pooling_,
                                        factors_.alpha(),
                                        layer_.pooled,
                                        pooled.get(),
                                        layer_.pooled,
                                        given.get(),
                                        layer_.y,
                                        y.get(),
                                        factors_.beta(),
                                        layer_.y,
                                        dy.get()));
    }
    if (layer_.activation != nullptr) {
      EXPECT_CUDNN(cudnnActivationBackward(native,
                                           activation_,
                                           factors_.alpha(),
                                           layer_.y,
                                           y.get(),
                                           layer_.y,
                                           dy.get(),
                                           layer_.y,
                                           y.get(),
                                           factors_.beta(),
                                           layer_.y,
                                           dz.get()));
    } else {
      EXPECT_CUDA(cudaMemcpy(dz.get(), dy.get(), outputs.y.size(), cudaMemcpyDefault));
    }
    Memory db(Place::kDevice, bias_->values());
    EXPECT_CUDNN(cudnnConvolutionBackwardBias(
        native, factors_.alpha(), layer_.y, dz.get(), factors_.beta(), bias_->desc(), db.get()));
    outputs.db = db.read();
    bufferOf(input()).write(garbage(input()));
    bufferOf(output()).write(dz.read());
    if (!convolve(native, input(), outputs.dx)) return false;
    bufferOf(input()).write(x());
    bufferOf(output()).write(dz.read());
    return convolve(native, UCUDNN_BACKWARD_FILTER, outputs.dw);
  }

  std::mt19937& random_;
  Convolution convolution_;
  const Factors factors_;
  const bool isTransposed_;
  std::unique_ptr<SmallTensor> bias_, pooled_;
  cudnnActivationDescriptor_t activation_ = nullptr;
  cudnnActivationMode_t mode_ = CUDNN_ACTIVATION_RELU;
  cudnnPoolingDescriptor_t pooling_ = nullptr;
  ucudnnFusedLayer_t layer_{};
};

/// A layer's tensors in places.
class PlacedFused {
 public:
  PlacedFused(FusedCase& layer,
              const FusedCase::Outputs& known,
              const std::function<Place()>& place)
      : layer_(layer),
        x_(place(), layer.x()),
        w_(place(), layer.w()),
        bias_(place(), layer.bias().values()),
        y_(place(), layer.garbage(layer.output())),
        pooled_(place(), layer.hasPooling() ? layer.garbagePooled() : Bytes(4)),
        knownY_(place(), known.y),
        knownPooled_(place(), layer.hasPooling() ? known.pooled : Bytes(4)),
        dOutput_(place(), layer.dOutput()),
        dx_(place(), layer.garbage(layer.input())),
        dw_(place(), layer.garbage(UCUDNN_BACKWARD_FILTER)),
        db_(place(), layer.bias().values()) {}

  cudnnStatus_t forward(UcudnnHandle_t handle, bool keepsY = true) {
    return ucudnnFusedForward(handle,
                              &layer_.layer(),
                              x_.get(),
                              w_.get(),
                              layer_.layer().bias != nullptr ? bias_.get() : nullptr,
                              keepsY ? y_.get() : nullptr,
                              layer_.hasPooling() ? pooled_.get() : nullptr);
  }
  cudnnStatus_t backward(UcudnnHandle_t handle, bool readsPooled = true) {
    return ucudnnFusedBackward(handle,
                               &layer_.layer(),
                               x_.get(),
                               w_.get(),
                               knownY_.get(),
                               readsPooled ? knownPooled_.get() : nullptr,
                               dOutput_.get(),
                               dx_.get(),
                               dw_.get(),
                               layer_.layer().bias != nullptr ? db_.get() : nullptr);
  }

  void expectForward(const FusedCase::Outputs& known, bool keepsY = true) {
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    if (keepsY) expectSame(layer_.output(), known.y, y_.read());
    if (!layer_.hasPooling()) return;
    if (onSimulator()) {
      EXPECT_EQ(known.pooled, pooled_.read());
    }
  }
  void expectBackward(const FusedCase::Outputs& known, const ConvolutionCase& parameters) {
    EXPECT_CUDA(cudaStreamSynchronize(nullptr));
    expectSame(layer_.input(), known.dx, dx_.read());
    EXPECT_LE(distance(layer_.geometryOf(UCUDNN_BACKWARD_FILTER), dw_.read(), known.dw),
              onSimulator() ? tolerance(parameters) : toleranceBetweenAlgorithms());
    if (layer_.layer().bias == nullptr) return;
    EXPECT_LE(distance(layer_.bias().geometry(), db_.read(), known.db),
              onSimulator() ? tolerance(parameters) : toleranceBetweenAlgorithms());
  }
  Memory& y() { return y_; }

 private:
  void expectSame(ucudnnOperation_t operation, const Bytes& expected, const Bytes& found) {
    if (onSimulator()) {
      EXPECT_EQ(0, distance(layer_.geometryOf(operation), found, expected));
    } else {
      EXPECT_LE(distance(layer_.geometryOf(operation), found, expected),
                toleranceBetweenAlgorithms());
    }
  }

  FusedCase& layer_;
  Memory x_, w_, bias_, y_, pooled_, knownY_, knownPooled_, dOutput_, dx_, dw_, db_;
};

}  // namespace ucudnn::test
