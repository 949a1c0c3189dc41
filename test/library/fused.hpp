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

  DeviceBuffer& z() { return z_; }

  /// z in a layout of its own, packed. REQUIRES: two image dimensions.
  void layOutZ(cudnnTensorFormat_t format);

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
  DeviceBuffer z_;
  DeviceBuffer bias_;
};

}  // namespace ucudnn::test
