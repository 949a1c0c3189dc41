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
  auto descriptor = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensorNdDescriptor(descriptor.get(),
                                                   static_cast<cudnnDataType_t>(type),
                                                   dimensions,
                                                   sizes.data(),
                                                   strides.data()));
  return descriptor;
}

/// What cudnnGetConvolution*Algorithm_v7 says works.
template <typename Performance>
std::vector<KernelOffer> thoseThatWork(const Problem& problem,
                                       const Performance* results,
                                       int count) {
  std::vector<KernelOffer> offers;
  for (int i = 0; i < count; ++i) {
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
      w_(makeOwned<FilterDescriptor>(cudnn().createFilterDescriptor)),
      convolution_(makeOwned<ConvolutionDescriptor>(cudnn().createConvolutionDescriptor)),
      y_(makeTensor(problem.yType, problem.dimensions, problem.ySizes, problem.yStrides)) {
  UCUDNN_CHECK_CUDNN(
      cudnn().setFilterNdDescriptor(w_.get(),
                                    static_cast<cudnnDataType_t>(problem.wType),
                                    static_cast<cudnnTensorFormat_t>(problem.wFormat),
                                    problem.dimensions,
                                    problem.wSizes.data()));
  UCUDNN_CHECK_CUDNN(
      cudnn().setConvolutionNdDescriptor(convolution_.get(),
                                         problem.dimensions - 2,
                                         problem.pads.data(),
                                         problem.strides.data(),
                                         problem.dilations.data(),
                                         static_cast<cudnnConvolutionMode_t>(problem.mode),
                                         static_cast<cudnnDataType_t>(problem.computeType)));
  UCUDNN_CHECK_CUDNN(cudnn().setConvolutionGroupCount(convolution_.get(), problem.groups));
  UCUDNN_CHECK_CUDNN(cudnn().setConvolutionMathType(
      convolution_.get(), static_cast<cudnnMathType_t>(problem.mathType)));
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
                                       const ConvolutionDescriptors& descriptors) {
  return withNative(problem.operation, [&](auto row) {
    using Row = decltype(row);
    // cuDNN returns each with and without tensor cores.
    std::array<typename Row::Performance, std::size_t{2} * CUDNN_CONVOLUTION_FWD_ALGO_COUNT>
        results{};
    int count = 0;
    const cudnnStatus_t status = callNative(row,
                                            Row::kRank,
                                            handle,
                                            descriptors,
                                            static_cast<int>(results.size()),
                                            &count,
                                            results.data());
    return status == CUDNN_STATUS_SUCCESS ? thoseThatWork(problem, results.data(), count)
                                          : std::vector<KernelOffer>();
  });
}

cudnnStatus_t nativeWorkspaceSize(cudnnHandle_t handle,
                                  Operation operation,
                                  const ConvolutionDescriptors& descriptors,
                                  int algorithm,
                                  std::size_t* bytes) noexcept {
  return withNative(operation, [&](auto row) {
    using Row = decltype(row);
    return callNative(row,
                      Row::kWorkspaceSize,
                      handle,
                      descriptors,
                      static_cast<typename Row::Algorithm>(algorithm),
                      bytes);
  });
}

cudnnStatus_t nativeConvolution(cudnnHandle_t handle,
                                Operation operation,
                                const ConvolutionDescriptors& d,
                                int algorithm,
                                const ConvolutionPointers& p,
                                const BiasActivation* fused) noexcept {
  // One of x, w, y is the output, which the caller handed over as a pointer to non-const.
  if (operation == Operation::kBiasActivationForward)
    return cudnn().convolutionBiasActivationForward(
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
  return withNative(operation, [&](auto row) {
    using Row = decltype(row);
    return (cudnn().*Row::kConvolve)(handle,
                                     p.alpha,
                                     d.*Row::kFirstDescriptor,
                                     p.*Row::kFirst,
                                     d.*Row::kSecondDescriptor,
                                     p.*Row::kSecond,
                                     d.convolution,
                                     static_cast<typename Row::Algorithm>(algorithm),
                                     p.workspace,
                                     p.workspaceBytes,
                                     p.beta,
                                     d.*Row::kOutputDescriptor,
                                     const_cast<void*>(p.*Row::kOutput));
  });
}

}  // namespace ucudnn
