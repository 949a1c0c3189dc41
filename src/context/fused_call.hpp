// A layer of a network as one pass: convolution, bias, activation and pooling, and their gradients.
#pragma once

#include <functional>
#include <vector>

#include "context/host_pass.hpp"

namespace ucudnn {

/// The descriptors of a layer. Null: it has no such part.
struct FusedLayer {
  cudnnTensorDescriptor_t x = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  bool isTransposed = false;  ///< the convolution is the gradient of one from y to x
  cudnnTensorDescriptor_t bias = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
  cudnnTensorDescriptor_t y = nullptr;
  cudnnPoolingDescriptor_t pooling = nullptr;
  cudnnTensorDescriptor_t pooled = nullptr;
  cudnnActivationDescriptor_t xActivation = nullptr;  ///< that made x
};

/// Its tensors; gradients have the descriptors of what they are gradients of.
struct FusedTensors {
  const void *x = nullptr, *w = nullptr, *bias = nullptr;
  const void *y = nullptr, *pooled = nullptr;  ///< of backward, null: as in ucudnnFusedBackward
  const void* dOutput = nullptr;               ///< of pooled, or of y if there is no pooling
  void *dx = nullptr, *dw = nullptr, *db = nullptr;  ///< null: not wanted
};

/// One call. Its steps are calls of cuDNN's functions, and of our convolutions, on a part of the
/// samples. Throws Error.
class FusedCall {
 public:
  FusedCall(Context& context, const FusedLayer& layer);

  /// Writes y, unless it is null, and pooled. REQUIRES: UCUDNN_DEVICE_MEMORY is set.
  cudnnStatus_t forward(const FusedTensors& tensors);
  /// Writes the gradients that are wanted. REQUIRES: as above.
  cudnnStatus_t backward(const FusedTensors& tensors);

 private:
  using Step = std::function<cudnnStatus_t(const PassPart&)>;
  enum class Use { kRead, kWritten };

  /// Adds a tensor of N samples, or one that all samples share, and returns its index. Without a
  /// pointer it is the pass's own.
  std::size_t addSamples(cudnnTensorDescriptor_t descriptor, const void* pointer, Use use);
  std::size_t addShared(PassTensor tensor, const void* pointer, Use use);
  std::size_t addFilter(const void* pointer, Use use);

  /// The convolution's descriptors as those of cuDNN's forward function.
  ConvolutionDescriptors inOrder(cudnnTensorDescriptor_t x,
                                 cudnnTensorDescriptor_t y) const noexcept;
  /// Adds a step: the operation between a tensor like x and one like y.
  void convolve(Operation operation, std::size_t x, std::size_t w, std::size_t y);
  void addBiasAndActivation(std::size_t x, std::size_t w, std::size_t bias, std::size_t y);
  /// Adds the steps that turn the output's gradient into that of the convolution's output.
  std::size_t differentiateOutput(const FusedTensors& tensors);
  /// Adds the step of an activation's gradient, which follows from what it has written.
  void differentiate(cudnnActivationDescriptor_t activation,
                     std::size_t written,
                     std::size_t from,
                     std::size_t to);
  void addPooling(std::size_t y, std::size_t pooled);

  const void* one() const noexcept;
  const void* zero() const noexcept;
  cudnnStatus_t run(const char* name);

  Context& context_;
  FusedLayer layer_;  ///< without activations that are the identity
  Problem problem_;   ///< of the forward pass
  Pass pass_;
  std::vector<void*> pointers_;
  std::vector<Step> steps_;
};

}  // namespace ucudnn
