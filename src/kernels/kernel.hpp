// The ways in which cuDNN can compute a problem: today the algorithms of its legacy convolution
// API.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/owners.hpp"
#include "kernels/native.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// One kernel of an operation: a value that knows no problem.
struct Kernel {
  std::int32_t algorithm = 0;  ///< cudnnConvolution{Fwd,BwdData,BwdFilter}Algo_t
  std::int32_t mathType = 0;   ///< cudnnMathType_t

  bool operator==(const Kernel& other) const noexcept {
    return algorithm == other.algorithm && mathType == other.mathType;
  }
};

/// cuDNN's name of the algorithm and the math type: "FFT_TILING/default".
std::string toText(Operation operation, Kernel kernel);
/// The reverse; empty for text that names no kernel of this operation.
std::optional<Kernel> kernelFromText(Operation operation, std::string_view text);

/// Whether cuDNN calls the algorithm deterministic; true for one that it does not know.
bool isDeterministic(Operation operation, int algorithm) noexcept;

/// Whether the algorithm rounds no worse than its math type makes any other. WINOGRAD_NONFUSED does
/// on filters beyond 3x3: 1e-3 for 5x5 on an H200, where TF32 itself has 3e-4 and the others 2e-5.
bool isAccurate(const Problem& problem, int algorithm) noexcept;

/// A kernel that cuDNN has for a problem, with what it needs.
struct KernelOffer {
  Kernel kernel;
  std::size_t workspaceBytes = 0;
  bool deterministic = true;
  bool accurate = true;
};

/// Owned descriptors with the values of a problem; immutable once made, so threads may share them.
class ProblemDescriptors {
 public:
  /// Throws Error.
  explicit ProblemDescriptors(const Problem& problem);

  ConvolutionDescriptors get() const noexcept {
    return {x_.get(), w_.get(), convolution_.get(), y_.get()};
  }

 private:
  TensorDescriptor x_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  TensorDescriptor y_;
};

/// What bias_activation_forward has besides.
struct BiasActivation {
  cudnnTensorDescriptor_t zDescriptor = nullptr;
  const void* z = nullptr;
  cudnnTensorDescriptor_t biasDescriptor = nullptr;
  const void* bias = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
};

/// Everything that cuDNN's legacy API has for the problem that the descriptors describe; empty
/// where it has nothing. Asks cuDNN on the host only; runs nothing. REQUIRES: descriptors have the
/// problem's values. `failures`, if not null, counts queries that failed otherwise than by saying
/// that cuDNN has no such kernel.
std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        int* failures = nullptr);

/// The same for one algorithm; empty where cuDNN does not have it.
std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         const ConvolutionDescriptors& descriptors,
                                         int algorithm,
                                         int* failures = nullptr);

/// Whether a status says that cuDNN does not have a kernel: NOT_SUPPORTED or BAD_PARAM. Any other
/// failure may be gone at the next call.
bool isRefusal(cudnnStatus_t status) noexcept;

/// What cuDNN's heuristics say works, best first: cudnnGetConvolution*Algorithm_v7. Runs nothing.
/// Empty where cuDNN has no answer. The first is what cuDNN picks without a workspace limit.
std::vector<KernelOffer> rankedKernels(cudnnHandle_t handle,
                                       const Problem& problem,
                                       const ConvolutionDescriptors& descriptors);

/// Workspace that cuDNN wants for an algorithm; the plain cuDNN call of the operation.
cudnnStatus_t nativeWorkspaceSize(cudnnHandle_t handle,
                                  Operation operation,
                                  const ConvolutionDescriptors& descriptors,
                                  int algorithm,
                                  std::size_t* bytes) noexcept;

/// Enqueues the convolution: the plain cuDNN call of the operation. `fused` is used, and needed, by
/// bias_activation_forward only.
cudnnStatus_t nativeConvolution(cudnnHandle_t handle,
                                Operation operation,
                                const ConvolutionDescriptors& descriptors,
                                int algorithm,
                                const ConvolutionPointers& pointers,
                                const BiasActivation* fused) noexcept;

}  // namespace ucudnn
