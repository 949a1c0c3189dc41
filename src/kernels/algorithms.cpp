#include "kernels/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

// The legacy convolution API is marked deprecated in cuDNN 9; it is what μ-cuDNN stands in for.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ucudnn {
namespace {

struct AlgorithmTraits {
  const char* name;
  bool deterministic;  ///< cuDNN developer guide, "Reproducibility (Determinism)"
  Transform transform = Transform::kNone;
};

// Indexed by cuDNN's enumerators.
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> kForwardAlgorithms = {{
    {"IMPLICIT_GEMM", true},
    {"IMPLICIT_PRECOMP_GEMM", true},
    {"GEMM", true},
    {"DIRECT", true},
    {"FFT", true, Transform::kFourier},
    {"FFT_TILING", true, Transform::kFourier},
    {"WINOGRAD", true, Transform::kWinograd},
    {"WINOGRAD_NONFUSED", true, Transform::kWinograd},
}};
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>
    kBackwardDataAlgorithms = {{
        {"ALGO_0", false},
        {"ALGO_1", true},
        {"FFT", true, Transform::kFourier},
        {"FFT_TILING", true, Transform::kFourier},
        {"WINOGRAD", true, Transform::kWinograd},
        {"WINOGRAD_NONFUSED", true, Transform::kWinograd},
    }};
constexpr std::array<AlgorithmTraits, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>
    kBackwardFilterAlgorithms = {{
        {"ALGO_0", false},
        {"ALGO_1", true},
        {"FFT", true, Transform::kFourier},
        {"ALGO_3", false},
        {"WINOGRAD", true, Transform::kWinograd},
        {"WINOGRAD_NONFUSED", true, Transform::kWinograd},
        {"FFT_TILING", true, Transform::kFourier},
    }};
// The name of an algorithm that a later cuDNN may have.
constexpr AlgorithmTraits kUnknownAlgorithm = {"", true, Transform::kWinograd};

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

const AlgorithmTraits& traitsOf(Operation operation, int algorithm) noexcept {
  const AlgorithmTable table = algorithmsOf(operation);
  return algorithm >= 0 && algorithm < table.count ? table.first[algorithm] : kUnknownAlgorithm;
}

bool isAllowed(const Problem& problem, int algorithm) noexcept {
  return problem.allows(traitsOf(problem.operation, algorithm).transform);
}

// Indexed by cudnnMathType_t.
constexpr const char* kMathNames[] = {"default", "tensor", "tensor_conversion", "fma"};

KernelOffer offerOf(const Problem& problem, int algorithm, std::size_t workspaceBytes) {
  return {{workspaceBytes,
           isDeterministic(problem.operation, algorithm),
           isAccurate(problem, algorithm)},
          {algorithm, problem.mathType, kAlgorithms}};
}

std::optional<KernelOffer> offeredAlgorithm(cudnnHandle_t handle,
                                            const Problem& problem,
                                            const ConvolutionDescriptors& descriptors,
                                            int algorithm,
                                            int* failures) {
  if (!mayHaveAlgorithms(problem, descriptors) || !mayRun(problem, algorithm)) return std::nullopt;
  std::size_t bytes = 0;
  const cudnnStatus_t status =
      nativeWorkspaceSize(handle, problem.operation, descriptors, algorithm, &bytes);
  if (status == CUDNN_STATUS_SUCCESS) return offerOf(problem, algorithm, bytes);
  if (failures != nullptr && !isRefusal(status)) ++*failures;
  return std::nullopt;
}

/// The algorithms that work according to cudnnGetConvolution*Algorithm_v7.
template <typename Performance>
std::vector<KernelOffer> thoseThatWork(const Problem& problem,
                                       const Performance* results,
                                       int count) {
  std::vector<KernelOffer> offers;
  for (int i = 0; i < count; ++i) {
    const Performance& result = results[i];
    const Kernel kernel{static_cast<std::int32_t>(result.algo), problem.mathType};
    if (result.status != CUDNN_STATUS_SUCCESS || !isAllowed(problem, kernel.id)) continue;
    const auto known = std::find_if(offers.begin(), offers.end(), [&](const KernelOffer& offer) {
      return offer.kernel == kernel;
    });
    if (known != offers.end())
      known->workspaceBytes = std::max(known->workspaceBytes, result.memory);
    else
      offers.push_back(offerOf(problem, kernel.id, result.memory));
  }
  return offers;
}

class BuiltAlgorithm final : public BuiltKernel {
 public:
  BuiltAlgorithm(Operation operation,
                 std::shared_ptr<const ProblemDescriptors> descriptors,
                 int algorithm) noexcept
      : operation_(operation), algorithm_(algorithm), descriptors_(std::move(descriptors)) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation* fused) const noexcept override {
    const ConvolutionDescriptors descriptors = descriptors_->get();
    if (fused == nullptr)
      return nativeConvolution(handle, operation_, descriptors, algorithm_, pointers, nullptr);
    BiasActivation described = *fused;
    described.zDescriptor = descriptors.y;
    return nativeConvolution(handle, operation_, descriptors, algorithm_, pointers, &described);
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t handle, std::size_t* bytes) const noexcept override {
    return nativeWorkspaceSize(handle, operation_, descriptors_->get(), algorithm_, bytes);
  }

 private:
  Operation operation_;
  int algorithm_;
  std::shared_ptr<const ProblemDescriptors> descriptors_;
};

class PreparedAlgorithm final : public PreparedKernel {
 public:
  PreparedAlgorithm(cudnnHandle_t handle,
                    const Problem& problem,
                    std::shared_ptr<const ProblemDescriptors> descriptors,
                    int algorithm)
      : handle_(handle),
        problem_(problem),
        descriptors_(std::move(descriptors)),
        algorithm_(algorithm) {}

  std::optional<KernelOffer> offer(int* failures) override {
    return offeredAlgorithm(handle_, problem_, descriptors_->get(), algorithm_, failures);
  }
  std::shared_ptr<const BuiltKernel> build() override {
    return std::make_shared<const BuiltAlgorithm>(problem_.operation, descriptors_, algorithm_);
  }

 private:
  cudnnHandle_t handle_;
  Problem problem_;
  std::shared_ptr<const ProblemDescriptors> descriptors_;
  int algorithm_;
};

class AlgorithmSource final : public KernelSource {
 public:
  std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                  const Problem& problem,
                                  const ConvolutionDescriptors& descriptors,
                                  int* failures) const override {
    return offeredAlgorithms(handle, problem, descriptors, failures);
  }

  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t handle,
                                          const Problem& problem,
                                          std::shared_ptr<const ProblemDescriptors> descriptors,
                                          Kernel kernel) const override {
    return std::make_unique<PreparedAlgorithm>(handle, problem, std::move(descriptors), kernel.id);
  }

  /// cuDNN's name of the algorithm and the math type: "FFT_TILING/default".
  std::string text(Operation operation, Kernel kernel) const override {
    std::string name = traitsOf(operation, kernel.id).name;
    if (name.empty()) name = fmt::format("ALGORITHM_{}", kernel.id);
    const bool named =
        kernel.mathType >= 0 && kernel.mathType < static_cast<int>(std::size(kMathNames));
    return name + "/" + (named ? kMathNames[kernel.mathType] : std::to_string(kernel.mathType));
  }

  /// Names only kernels of the problem's own math type.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const AlgorithmTable table = algorithmsOf(problem.operation);
    const auto* const end = table.first + table.count;
    const auto* const traits = std::find_if(table.first, end, [&](const AlgorithmTraits& entry) {
      return entry.name == text.substr(0, slash);
    });
    const auto* const math =
        std::find(std::begin(kMathNames), std::end(kMathNames), text.substr(slash + 1));
    if (traits == end || math - std::begin(kMathNames) != problem.mathType) return std::nullopt;
    return offerOf(problem, static_cast<int>(traits - table.first), 0);
  }
};

}  // namespace

// cuDNN's manual: without an activation only IMPLICIT_PRECOMP_GEMM is fused with the bias.
bool mayRun(const Problem& problem, int algorithm) noexcept {
  if (isOfGraphs(problem) || !isAllowed(problem, algorithm)) return false;
  return problem.operation != Operation::kBiasActivationForward ||
         problem.activation != CUDNN_ACTIVATION_IDENTITY ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
}

std::unique_ptr<KernelSource> makeAlgorithmSource() {
  return std::make_unique<AlgorithmSource>();
}

bool isDeterministic(Operation operation, int algorithm) noexcept {
  return traitsOf(operation, algorithm).deterministic;
}

bool transforms(Operation operation, int algorithm) noexcept {
  return traitsOf(operation, algorithm).transform != Transform::kNone;
}

bool isWinogradAccurate(const Problem& problem) noexcept {
  const auto* const spatial = problem.wSizes.begin() + 2;
  return std::all_of(
      spatial, problem.wSizes.begin() + problem.dimensions, [](int size) { return size <= 3; });
}

bool isWinogradNonFused(Operation operation, int algorithm) noexcept {
  return traitsOf(operation, algorithm).name == std::string_view("WINOGRAD_NONFUSED");
}

bool isAccurate(const Problem& problem, int algorithm) noexcept {
  return !isWinogradNonFused(problem.operation, algorithm) || isWinogradAccurate(problem);
}

std::vector<KernelOffer> offeredAlgorithms(cudnnHandle_t handle,
                                           const Problem& problem,
                                           const ConvolutionDescriptors& descriptors,
                                           int* failures) {
  std::vector<KernelOffer> offers;
  for (int algorithm = 0; algorithm < algorithmsOf(problem.operation).count; ++algorithm)
    if (const auto offer = offeredAlgorithm(handle, problem, descriptors, algorithm, failures))
      offers.push_back(*offer);
  return offers;
}

bool isOfferedWithin(cudnnHandle_t handle,
                     const Problem& problem,
                     const ConvolutionDescriptors& descriptors,
                     std::size_t workspaceBytes,
                     bool deterministic) {
  for (int algorithm = 0; algorithm < algorithmsOf(problem.operation).count; ++algorithm) {
    if (deterministic && !isDeterministic(problem.operation, algorithm)) continue;
    const auto offer = offeredAlgorithm(handle, problem, descriptors, algorithm, nullptr);
    if (offer && offer->workspaceBytes <= workspaceBytes) return true;
  }
  return false;
}

std::vector<KernelOffer> rankedAlgorithms(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const ConvolutionDescriptors& descriptors) {
  if (!mayHaveAlgorithms(problem, descriptors)) return {};
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

}  // namespace ucudnn
