// cudnnConvolutionBiasActivationForward on the buffers of a Convolution.
#pragma once

#include "fixture.hpp"

namespace ucudnn::test {

/// The further operands: a random bias, and a z of y's shape.
class Fused {
 public:
  Fused(Convolution& convolution, cudnnActivationMode_t mode);
  ~Fused();
  Fused(const Fused&) = delete;
  Fused& operator=(const Fused&) = delete;

  DeviceBuffer& z() { return *z_; }
  /// Puts another buffer in z's place, and the former in the other's.
  void exchangeZ(std::unique_ptr<DeviceBuffer>& other) { z_.swap(other); }
  DeviceBuffer& bias() { return bias_; }

  /// Changes the activation's descriptor in place.
  void setCoefficient(cudnnActivationMode_t mode, double coefficient);

  /// z in a layout of its own, packed. REQUIRES: two image dimensions.
  void layOutZ(cudnnTensorFormat_t format);

  /// On other memory than the convolution's.
  struct Operands {
    void *x, *w, *y, *z, *bias;
  };
  template <typename Handle>
  cudnnStatus_t runOn(Handle handle,
                      int algorithm,
                      const Operands& operands,
                      double alpha1,
                      double alpha2,
                      Workspace workspace = {});

  /// With z in place, z is y.
  template <typename Handle>
  cudnnStatus_t run(Handle handle,
                    int algorithm,
                    Workspace workspace,
                    double alpha1,
                    double alpha2,
                    bool zInPlace);

 private:
  Convolution& convolution_;
  cudnnTensorDescriptor_t biasDesc_ = nullptr;
  cudnnActivationDescriptor_t activation_ = nullptr;
  cudnnTensorDescriptor_t zDesc_ = nullptr;
  std::unique_ptr<DeviceBuffer> z_;
  DeviceBuffer bias_;
};

}  // namespace ucudnn::test
