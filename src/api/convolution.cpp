// The entry points of the convolutions: each unpacks its arguments and calls the context. A family
// of cuDNN's functions is one template; parameters are named as in kernels/native.hpp.
#include <ucudnn/convolution.h>
#include <ucudnn/removed.h>

#include "api/queries.hpp"
#include "context/host_call.hpp"

// The native functions are deprecated in cuDNN 9, but these entry points stand in for them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace ucudnn;

namespace {

/// The type of the member that a pointer to member names.
template <typename Member>
struct TypeOf;
template <typename Type>
struct TypeOf<Type ConvolutionDescriptors::*> {
  using type = Type;
};
template <auto member>
using Descriptor = typename TypeOf<std::remove_cv_t<decltype(member)>>::type;

template <Operation operation>
struct EntryPoints {
  using Row = Native<operation>;
  using Algorithm = typename Row::Algorithm;
  using Performance = typename Row::Performance;
  using First = Descriptor<Row::kFirstDescriptor>;
  using Second = Descriptor<Row::kSecondDescriptor>;
  using Output = Descriptor<Row::kOutputDescriptor>;

  static ConvolutionDescriptors descriptors(First first,
                                            Second second,
                                            cudnnConvolutionDescriptor_t convolution,
                                            Output output) noexcept {
    ConvolutionDescriptors d{};
    d.*Row::kFirstDescriptor = first;
    d.*Row::kSecondDescriptor = second;
    d.convolution = convolution;
    d.*Row::kOutputDescriptor = output;
    return d;
  }

  static cudnnStatus_t convolve(cudnnHandle_t handle,
                                const void* alpha,
                                First firstDesc,
                                const void* first,
                                Second secondDesc,
                                const void* second,
                                cudnnConvolutionDescriptor_t convDesc,
                                Algorithm algo,
                                void* workSpace,
                                size_t workSpaceSizeInBytes,
                                const void* beta,
                                Output outputDesc,
                                void* output,
                                ucudnnLayerId_t layer) noexcept {
    ConvolutionCall call{
        descriptors(firstDesc, secondDesc, convDesc, outputDesc), {}, nullptr, algo};
    call.pointers.alpha = alpha;
    call.pointers.beta = beta;
    call.pointers.*Row::kFirst = first;
    call.pointers.*Row::kSecond = second;
    call.pointers.*Row::kOutput = output;
    call.pointers.workspace = workSpace;
    call.pointers.workspaceBytes = workSpaceSizeInBytes;
    return ucudnn::convolve(activeContextOf(handle), handle, operation, call, layer);
  }

  /// Get*Algorithm_v7, or Find*Algorithm.
  template <bool kFinds>
  static cudnnStatus_t list(cudnnHandle_t handle,
                            First first,
                            Second second,
                            cudnnConvolutionDescriptor_t convDesc,
                            Output output,
                            int requested,
                            int* returned,
                            Performance* results,
                            ucudnnLayerId_t layer) noexcept {
    const Query query{handle,
                      operation,
                      descriptors(first, second, convDesc, output),
                      std::nullopt,
                      layer,
                      kFinds};
    return answerPerformances(query, nullptr, requested, returned, results, [&](auto... room) {
      constexpr auto kNative = kFinds ? Row::kFind : Row::kRank;
      return callNative(Row(), kNative, handle, query.descriptors, room...);
    });
  }

  static cudnnStatus_t findEx(cudnnHandle_t handle,
                              First firstDesc,
                              const void* first,
                              Second secondDesc,
                              const void* second,
                              cudnnConvolutionDescriptor_t convDesc,
                              Output outputDesc,
                              void* output,
                              int requested,
                              int* returned,
                              Performance* results,
                              void* workSpace,
                              size_t workSpaceSizeInBytes,
                              ucudnnLayerId_t layer) noexcept {
    const std::size_t bytes = workSpace != nullptr ? workSpaceSizeInBytes : 0;
    const Query query{handle,
                      operation,
                      descriptors(firstDesc, secondDesc, convDesc, outputDesc),
                      bytes,
                      layer,
                      true};
    ConvolutionPointers given;
    given.*Row::kFirst = first;
    given.*Row::kSecond = second;
    given.*Row::kOutput = output;
    const Context* const context = activeContextOf(handle);
    if (context != nullptr && HostCall::refuses(*context, given)) return CUDNN_STATUS_NOT_SUPPORTED;
    const TensorBuffers buffers{const_cast<void*>(given.x),
                                const_cast<void*>(given.w),
                                const_cast<void*>(given.y),
                                workSpace,
                                bytes};
    return answerPerformances(query, &buffers, requested, returned, results, [&](auto... room) {
      return (cudnn().*Row::kFindEx)(handle,
                                     firstDesc,
                                     first,
                                     secondDesc,
                                     second,
                                     convDesc,
                                     outputDesc,
                                     output,
                                     room...,
                                     workSpace,
                                     workSpaceSizeInBytes);
    });
  }

  static cudnnStatus_t workspaceSize(cudnnHandle_t handle,
                                     First first,
                                     Second second,
                                     cudnnConvolutionDescriptor_t convDesc,
                                     Output output,
                                     Algorithm algo,
                                     size_t* sizeInBytes,
                                     ucudnnLayerId_t layer) noexcept {
    const Query query{
        handle, operation, descriptors(first, second, convDesc, output), std::nullopt, layer};
    return answerWorkspaceSize(query, algo, sizeInBytes);
  }

  template <typename Preference>
  static cudnnStatus_t algorithm(cudnnHandle_t handle,
                                 First first,
                                 Second second,
                                 cudnnConvolutionDescriptor_t convDesc,
                                 Output output,
                                 Preference preference,
                                 size_t memoryLimitInBytes,
                                 Algorithm* algo,
                                 ucudnnLayerId_t layer) noexcept {
    const Query query{
        handle, operation, descriptors(first, second, convDesc, output), std::nullopt, layer};
    return answerAlgorithm(Row(), query, static_cast<int>(preference), memoryLimitInBytes, algo);
  }
};

cudnnStatus_t convolveFused(cudnnHandle_t handle,
                            const void* alpha1,
                            cudnnTensorDescriptor_t xDesc,
                            const void* x,
                            cudnnFilterDescriptor_t wDesc,
                            const void* w,
                            cudnnConvolutionDescriptor_t convDesc,
                            cudnnConvolutionFwdAlgo_t algo,
                            void* workSpace,
                            size_t workSpaceSizeInBytes,
                            const void* alpha2,
                            cudnnTensorDescriptor_t zDesc,
                            const void* z,
                            cudnnTensorDescriptor_t biasDesc,
                            const void* bias,
                            cudnnActivationDescriptor_t activationDesc,
                            cudnnTensorDescriptor_t yDesc,
                            void* y,
                            ucudnnLayerId_t layer) noexcept {
  const BiasActivation fused{zDesc, z, biasDesc, bias, activationDesc};
  const ConvolutionCall call{{xDesc, wDesc, convDesc, yDesc},
                             {alpha1, alpha2, x, w, y, workSpace, workSpaceSizeInBytes},
                             &fused,
                             algo};
  return convolve(activeContextOf(handle), handle, Operation::kBiasActivationForward, call, layer);
}

#define UCUDNN_NAME_ENTRIES(NAME)                                                       \
  constexpr auto entryConvolution##NAME = EntryPoints<Operation::k##NAME>::convolve;    \
  constexpr auto entryGetConvolution##NAME##Algorithm_v7 =                              \
      EntryPoints<Operation::k##NAME>::list<false>;                                     \
  constexpr auto entryFindConvolution##NAME##Algorithm =                                \
      EntryPoints<Operation::k##NAME>::list<true>;                                      \
  constexpr auto entryFindConvolution##NAME##AlgorithmEx =                              \
      EntryPoints<Operation::k##NAME>::findEx;                                          \
  constexpr auto entryGetConvolution##NAME##WorkspaceSize =                             \
      EntryPoints<Operation::k##NAME>::workspaceSize;                                   \
  template <typename... Arguments>                                                      \
  cudnnStatus_t entryGetConvolution##NAME##Algorithm(Arguments... arguments) noexcept { \
    return EntryPoints<Operation::k##NAME>::algorithm(arguments...);                    \
  }
UCUDNN_NAME_ENTRIES(Forward)
UCUDNN_NAME_ENTRIES(BackwardData)
UCUDNN_NAME_ENTRIES(BackwardFilter)
#undef UCUDNN_NAME_ENTRIES
constexpr auto entryConvolutionBiasActivationForward = convolveFused;

}  // namespace

extern "C" {

#define UCUDNN_DOOR(NAME, PARAMETERS, ARGUMENTS)                                 \
  cudnnStatus_t ucudnn##NAME##Layer(                                             \
      cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS, ucudnnLayerId_t layerId) { \
    return entry##NAME(handle, UCUDNN_UNPACK ARGUMENTS, layerId);                \
  }                                                                              \
  cudnnStatus_t ucudnn##NAME(cudnnHandle_t handle, UCUDNN_UNPACK PARAMETERS) {   \
    return entry##NAME(handle, UCUDNN_UNPACK ARGUMENTS, UCUDNN_LAYER_ANY);       \
  }
UCUDNN_FOR_EACH_FUNCTION(UCUDNN_DOOR)
UCUDNN_FOR_EACH_REMOVED_FUNCTION(UCUDNN_DOOR)
#undef UCUDNN_DOOR

}  // extern "C"
