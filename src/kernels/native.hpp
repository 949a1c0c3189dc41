// cuDNN's legacy convolution functions, a row for each operation: their names, their types, and the
// order of their parameters. The two inputs come first, then the convolution, the output last:
// the names x, w and y are those of cuDNN's forward convolution.
#pragma once

#include "cuda/cudnn.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The pointers of one convolution call. The output is x for backward data, w for backward filter,
/// else y.
struct ConvolutionPointers {
  const void* alpha = nullptr;
  const void* beta = nullptr;  ///< bias_activation_forward: alpha2, the factor of z
  const void* x = nullptr;
  const void* w = nullptr;
  const void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspaceBytes = 0;
  /// Where a kernel that runs on copies has that of its output; null: in the workspace.
  void* outputCopy = nullptr;

  /// Bytes of the workspace; 0 if there is none.
  std::size_t grantedBytes() const noexcept { return workspace != nullptr ? workspaceBytes : 0; }
};

inline const void* advance(const void* pointer, std::size_t bytes) noexcept {
  return static_cast<const char*>(pointer) + bytes;
}

/// The arguments that only bias_activation_forward has.
struct BiasActivation {
  cudnnTensorDescriptor_t zDescriptor = nullptr;
  const void* z = nullptr;
  cudnnTensorDescriptor_t biasDescriptor = nullptr;
  const void* bias = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
};

template <Operation operation>
struct Native;

template <>
struct Native<Operation::kForward> {
  static constexpr Operation kOperation = Operation::kForward;
  static constexpr const char* kName = "Forward";
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr auto kFirstDescriptor = &ConvolutionDescriptors::x;
  static constexpr auto kSecondDescriptor = &ConvolutionDescriptors::w;
  static constexpr auto kOutputDescriptor = &ConvolutionDescriptors::y;
  static constexpr auto kFirst = &ConvolutionPointers::x;
  static constexpr auto kSecond = &ConvolutionPointers::w;
  static constexpr auto kOutput = &ConvolutionPointers::y;
  static constexpr auto kConvolve = &Cudnn::convolutionForward;
  static constexpr auto kRank = &Cudnn::getConvolutionForwardAlgorithm_v7;
  static constexpr auto kFind = &Cudnn::findConvolutionForwardAlgorithm;
  static constexpr auto kFindEx = &Cudnn::findConvolutionForwardAlgorithmEx;
  static constexpr auto kWorkspaceSize = &Cudnn::getConvolutionForwardWorkspaceSize;
};

template <>
struct Native<Operation::kBackwardData> {
  static constexpr Operation kOperation = Operation::kBackwardData;
  static constexpr const char* kName = "BackwardData";
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr auto kFirstDescriptor = &ConvolutionDescriptors::w;
  static constexpr auto kSecondDescriptor = &ConvolutionDescriptors::y;
  static constexpr auto kOutputDescriptor = &ConvolutionDescriptors::x;
  static constexpr auto kFirst = &ConvolutionPointers::w;
  static constexpr auto kSecond = &ConvolutionPointers::y;
  static constexpr auto kOutput = &ConvolutionPointers::x;
  static constexpr auto kConvolve = &Cudnn::convolutionBackwardData;
  static constexpr auto kRank = &Cudnn::getConvolutionBackwardDataAlgorithm_v7;
  static constexpr auto kFind = &Cudnn::findConvolutionBackwardDataAlgorithm;
  static constexpr auto kFindEx = &Cudnn::findConvolutionBackwardDataAlgorithmEx;
  static constexpr auto kWorkspaceSize = &Cudnn::getConvolutionBackwardDataWorkspaceSize;
};

template <>
struct Native<Operation::kBackwardFilter> {
  static constexpr Operation kOperation = Operation::kBackwardFilter;
  static constexpr const char* kName = "BackwardFilter";
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr auto kFirstDescriptor = &ConvolutionDescriptors::x;
  static constexpr auto kSecondDescriptor = &ConvolutionDescriptors::y;
  static constexpr auto kOutputDescriptor = &ConvolutionDescriptors::w;
  static constexpr auto kFirst = &ConvolutionPointers::x;
  static constexpr auto kSecond = &ConvolutionPointers::y;
  static constexpr auto kOutput = &ConvolutionPointers::w;
  static constexpr auto kConvolve = &Cudnn::convolutionBackwardFilter;
  static constexpr auto kRank = &Cudnn::getConvolutionBackwardFilterAlgorithm_v7;
  static constexpr auto kFind = &Cudnn::findConvolutionBackwardFilterAlgorithm;
  static constexpr auto kFindEx = &Cudnn::findConvolutionBackwardFilterAlgorithmEx;
  static constexpr auto kWorkspaceSize = &Cudnn::getConvolutionBackwardFilterWorkspaceSize;
};

/// Calls `use` with the operation's row; bias_activation_forward has the forward one's queries.
template <typename Use>
auto withNative(Operation operation, Use use) {
  switch (operation) {
    case Operation::kBackwardData:
      return use(Native<Operation::kBackwardData>());
    case Operation::kBackwardFilter:
      return use(Native<Operation::kBackwardFilter>());
    default:
      return use(Native<Operation::kForward>());
  }
}

/// Calls one of the operation's functions that take the four descriptors behind the handle.
template <typename Row, typename Function, typename... Rest>
cudnnStatus_t callNative(
    Row, Function function, cudnnHandle_t handle, const ConvolutionDescriptors& d, Rest... rest) {
  return (cudnn().*function)(handle,
                             d.*Row::kFirstDescriptor,
                             d.*Row::kSecondDescriptor,
                             d.convolution,
                             d.*Row::kOutputDescriptor,
                             rest...);
}

/// False: ProblemDescriptors made none, so there is no algorithm. cuDNN must not be asked.
inline bool areThere(const ConvolutionDescriptors& descriptors) noexcept {
  return descriptors.x != nullptr && descriptors.y != nullptr;
}

/// Workspace that cuDNN wants for an algorithm.
cudnnStatus_t nativeWorkspaceSize(cudnnHandle_t handle,
                                  Operation operation,
                                  const ConvolutionDescriptors& descriptors,
                                  int algorithm,
                                  std::size_t* bytes) noexcept;

/// Enqueues the convolution. `fused` is used, and needed, by bias_activation_forward only.
cudnnStatus_t nativeConvolution(cudnnHandle_t handle,
                                Operation operation,
                                const ConvolutionDescriptors& descriptors,
                                int algorithm,
                                const ConvolutionPointers& pointers,
                                const BiasActivation* fused) noexcept;

/// Whether a status says that cuDNN does not have a kernel: NOT_SUPPORTED or BAD_PARAM. Any other
/// failure may be gone at the next call.
bool isRefusal(cudnnStatus_t status) noexcept;

/// Whether a kernel that could not be built for this status can't be built in this process: it is
/// refused, does not compile, or a library is missing that it needs.
bool isRefusalToBuild(cudnnStatus_t status) noexcept;

}  // namespace ucudnn
