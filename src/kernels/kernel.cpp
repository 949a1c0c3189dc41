#include "kernels/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

// The legacy convolution API is marked deprecated in cuDNN 9; it is what μ-cuDNN stands in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

struct AlgorithmTraits {
  const char* name;
  bool deterministic;  ///< cuDNN developer guide, "Reproducibility (Determinism)"
};

// Indexed by cuDNN's enumerators.
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> kForwardAlgorithms = {{
    {"IMPLICIT_GEMM", true},
    {"IMPLICIT_PRECOMP_GEMM", true},
    {"GEMM", true},
    {"DIRECT", true},
    {"FFT", true},
    {"FFT_TILING", true},
    {"WINOGRAD", true},
    {"WINOGRAD_NONFUSED", true},
}};
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>
    kBackwardDataAlgorithms = {{
        {"ALGO_0", false},
        {"ALGO_1", true},
        {"FFT", true},
        {"FFT_TILING", true},
        {"WINOGRAD", true},
        {"WINOGRAD_NONFUSED", true},
    }};
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>
    kBackwardFilterAlgorithms = {{
        {"ALGO_0", false},
        {"ALGO_1", true},
        {"FFT", true},
        {"ALGO_3", false},
        {"WINOGRAD", true},
        {"WINOGRAD_NONFUSED", true},
        {"FFT_TILING", true},
    }};

struct AlgorithmTable {
  const AlgorithmTraits* first;
  int count;
};

AlgorithmTable algorithmsOf(Operation operation) noexcept {
  switch (operation) {
    case Operation::kBackwardData:
      return {kBackwardDataAlgorithms.data(), static_cast<int>(kBackwardDataAlgorithms.size())};
    case Operation::kBackwardFilter:
      return {kBackwardFilterAlgorithms.data(), static_cast<int>(kBackwardFilterAlgorithms.size())};
    default:
      return {kForwardAlgorithms.data(), static_cast<int>(kForwardAlgorithms.size())};
  }
}

// Indexed by cudnnMathType_t.
constexpr const char* kMathNames[] = {"default", "tensor", "tensor_conversion", "fma"};

TensorDescriptor makeTensor(std::int32_t type,
                            int dimensions,
                            const Problem::Sizes& sizes,
                            const Problem::Sizes& strides) {
  auto descriptor = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnnSetTensorNdDescriptor(descriptor.get(),
                                                static_cast<cudnnDataType_t>(type),
                                                dimensions,
                                                sizes.data(),
                                                strides.data()));
  return descriptor;
}

/// Runs one of cudnnGetConvolution*Algorithm_v7, which takes the last three of its parameters.
template <typename Performance, typename Get>
std::vector<KernelOffer> thoseThatWork(const Problem& problem, Get get) {
  // cuDNN returns each with and without tensor cores.
  std::array<Performance, std::size_t{2} * CUDNN_CONVOLUTION_FWD_ALGO_COUNT> results{};
  int count = 0;
  std::vector<KernelOffer> offers;
  if (get(static_cast<int>(results.size()), &count, results.data()) != CUDNN_STATUS_SUCCESS)
    return offers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Performance& result = results[i];
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    const Kernel kernel{static_cast<std::int32_t>(result.algo), problem.mathType};
    const auto known = std::find_if(offers.begin(), offers.end(), [&](const KernelOffer& offer) {
      return offer.kernel == kernel;
    });
    if (known != offers.end())
      known->workspaceBytes = std::max(known->workspaceBytes, result.memory);
    else
      offers.push_back({kernel,
                        result.memory,
                        isDeterministic(problem.operation, kernel.algorithm),
                        isAccurate(problem, kernel.algorithm)});
  }
  return offers;
}

}  // namespace

std::string toText(Operation operation, Kernel kernel) {
  const AlgorithmTable table = algorithmsOf(operation);
  const std::string name = kernel.algorithm >= 0 && kernel.algorithm < table.count
                               ? table.first[kernel.algorithm].name
                               : fmt::format("ALGORITHM_{}", kernel.algorithm);
  const bool named =
      kernel.mathType >= 0 && kernel.mathType < static_cast<int>(std::size(kMathNames));
  return name + "/" + (named ? kMathNames[kernel.mathType] : std::to_string(kernel.mathType));
}

std::optional<Kernel> kernelFromText(Operation operation, std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view algorithm = text.substr(0, slash);
  const AlgorithmTable table = algorithmsOf(operation);
  const auto* const traits =
      std::find_if(table.first, table.first + table.count, [&](const AlgorithmTraits& entry) {
        return entry.name == algorithm;
      });
  const auto* const math =
      std::find(std::begin(kMathNames), std::end(kMathNames), text.substr(slash + 1));
  if (traits == table.first + table.count || math == std::end(kMathNames)) return std::nullopt;
  return Kernel{static_cast<std::int32_t>(traits - table.first),
                static_cast<std::int32_t>(math - std::begin(kMathNames))};
}

bool isDeterministic(Operation operation, int algorithm) noexcept {
  const AlgorithmTable table = algorithmsOf(operation);
  return algorithm < 0 || algorithm >= table.count || table.first[algorithm].deterministic;
}

bool isAccurate(const Problem& problem, int algorithm) noexcept {
  const AlgorithmTable table = algorithmsOf(problem.operation);
  if (algorithm < 0 || algorithm >= table.count ||
      std::string_view(table.first[algorithm].name) != "WINOGRAD_NONFUSED")
    return true;
  const auto* const spatial = problem.wSizes.begin() + 2;
  return std::all_of(
      spatial, problem.wSizes.begin() + problem.dimensions, [](int size) { return size <= 3; });
}

ProblemDescriptors::ProblemDescriptors(const Problem& problem)
    : x_(makeTensor(problem.xType, problem.dimensions, problem.xSizes, problem.xStrides)),
      w_(makeOwned<FilterDescriptor>(cudnnCreateFilterDescriptor)),
      convolution_(makeOwned<ConvolutionDescriptor>(cudnnCreateConvolutionDescriptor)),
      y_(makeTensor(problem.yType, problem.dimensions, problem.ySizes, problem.yStrides)) {
  UCUDNN_CHECK_CUDNN(cudnnSetFilterNdDescriptor(w_.get(),
                                                static_cast<cudnnDataType_t>(problem.wType),
                                                static_cast<cudnnTensorFormat_t>(problem.wFormat),
                                                problem.dimensions,
                                                problem.wSizes.data()));
  UCUDNN_CHECK_CUDNN(
      cudnnSetConvolutionNdDescriptor(convolution_.get(),
                                      problem.dimensions - 2,
                                      problem.pads.data(),
                                      problem.strides.data(),
                                      problem.dilations.data(),
                                      static_cast<cudnnConvolutionMode_t>(problem.mode),
                                      static_cast<cudnnDataType_t>(problem.computeType)));
  UCUDNN_CHECK_CUDNN(cudnnSetConvolutionGroupCount(convolution_.get(), problem.groups));
  UCUDNN_CHECK_CUDNN(cudnnSetConvolutionMathType(convolution_.get(),
                                                 static_cast<cudnnMathType_t>(problem.mathType)));
}

std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         const ConvolutionDescriptors& descriptors,
                                         int algorithm,
                                         int* failures) {
  // cuDNN's manual: without an activation only IMPLICIT_PRECOMP_GEMM is fused with the bias.
  if (problem.operation == Operation::kBiasActivationForward &&
      problem.activation == CUDNN_ACTIVATION_IDENTITY &&
      algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
    return std::nullopt;
  std::size_t bytes = 0;
  const cudnnStatus_t status =
      nativeWorkspaceSize(handle, problem.operation, descriptors, algorithm, &bytes);
  if (status != CUDNN_STATUS_SUCCESS) {
    if (failures != nullptr && !isRefusal(status)) ++*failures;
    return std::nullopt;
  }
  return KernelOffer{{algorithm, problem.mathType},
                     bytes,
                     isDeterministic(problem.operation, algorithm),
                     isAccurate(problem, algorithm)};
}

std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        int* failures) {
  std::vector<KernelOffer> offers;
  for (int algorithm = 0; algorithm < algorithmsOf(problem.operation).count; ++algorithm)
    if (const auto offer = offeredKernel(handle, problem, descriptors, algorithm, failures))
      offers.push_back(*offer);
  return offers;
}

bool isRefusal(cudnnStatus_t status) noexcept {
#if CUDNN_VERSION >= 90000
  // cuDNN 9 has sub-codes for each of its statuses (cudnn_graph.h, CUDNN_STATUS_CATEGORY).
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
#else
  return status == CUDNN_STATUS_NOT_SUPPORTED || status == CUDNN_STATUS_ARCH_MISMATCH ||
         status == CUDNN_STATUS_BAD_PARAM || status == CUDNN_STATUS_INVALID_VALUE;
#endif
}

std::vector<KernelOffer> rankedKernels(cudnnHandle_t handle,
                                       const Problem& problem,
                                       const ConvolutionDescriptors& d) {
  switch (problem.operation) {
    case Operation::kBackwardData:
      return thoseThatWork<cudnnConvolutionBwdDataAlgoPerf_t>(problem, [&](auto... results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, d.w, d.y, d.convolution, d.x, results...);
      });
    case Operation::kBackwardFilter:
      return thoseThatWork<cudnnConvolutionBwdFilterAlgoPerf_t>(problem, [&](auto... results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, d.x, d.y, d.convolution, d.w, results...);
      });
    default:
      return thoseThatWork<cudnnConvolutionFwdAlgoPerf_t>(problem, [&](auto... results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(
            handle, d.x, d.w, d.convolution, d.y, results...);
      });
  }
}

cudnnStatus_t nativeWorkspaceSize(cudnnHandle_t handle,
                                  Operation operation,
                                  const ConvolutionDescriptors& d,
                                  int algorithm,
                                  std::size_t* bytes) noexcept {
  switch (operation) {
    case Operation::kBackwardData:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle,
          d.w,
          d.y,
          d.convolution,
          d.x,
          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
          bytes);
    case Operation::kBackwardFilter:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle,
          d.x,
          d.y,
          d.convolution,
          d.w,
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
          bytes);
    default:
      return cudnnGetConvolutionForwardWorkspaceSize(
          handle,
          d.x,
          d.w,
          d.convolution,
          d.y,
          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
          bytes);
  }
}

cudnnStatus_t nativeConvolution(cudnnHandle_t handle,
                                Operation operation,
                                const ConvolutionDescriptors& d,
                                int algorithm,
                                const ConvolutionPointers& p,
                                const BiasActivation* fused) noexcept {
  // One of x, w, y is the output, which the caller handed over as a pointer to non-const.
  switch (operation) {
    case Operation::kForward:
      return cudnnConvolutionForward(handle,
                                     p.alpha,
                                     d.x,
                                     p.x,
                                     d.w,
                                     p.w,
                                     d.convolution,
                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                     p.workspace,
                                     p.workspaceBytes,
                                     p.beta,
                                     d.y,
                                     const_cast<void*>(p.y));
    case Operation::kBackwardData:
      return cudnnConvolutionBackwardData(handle,
                                          p.alpha,
                                          d.w,
                                          p.w,
                                          d.y,
                                          p.y,
                                          d.convolution,
                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                          p.workspace,
                                          p.workspaceBytes,
                                          p.beta,
                                          d.x,
                                          const_cast<void*>(p.x));
    case Operation::kBackwardFilter:
      return cudnnConvolutionBackwardFilter(handle,
                                            p.alpha,
                                            d.x,
                                            p.x,
                                            d.y,
                                            p.y,
                                            d.convolution,
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
                                            p.workspace,
                                            p.workspaceBytes,
                                            p.beta,
                                            d.w,
                                            const_cast<void*>(p.w));
    case Operation::kBiasActivationForward:
      return cudnnConvolutionBiasActivationForward(
          handle,
          p.alpha,
          d.x,
          p.x,
          d.w,
          p.w,
          d.convolution,
          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
          p.workspace,
          p.workspaceBytes,
          p.beta,
          fused->zDescriptor,
          fused->z,
          fused->biasDescriptor,
          fused->bias,
          fused->activation,
          d.y,
          const_cast<void*>(p.y));
  }
  return CUDNN_STATUS_BAD_PARAM;
}

}  // namespace ucudnn
