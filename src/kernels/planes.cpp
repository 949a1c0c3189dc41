#include "kernels/planes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cuda/block_copy.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/factor.hpp"
#include "kernels/pixel_copies.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

constexpr std::string_view kSuffix = "_planes";
constexpr std::size_t kSpatial = 2;

// Of fewer taps Winograd and FFT save less than the copies, and the products with 0, cost.
constexpr int kFewestTaps = 10;

/// Along one dimension, in planes. In 64 bits, as sizes may be the largest of 32.
struct Line {
  std::int64_t w, x;

  Line(const Problem& problem, std::size_t dimension) noexcept {
    const std::int64_t step = problem.strides[dimension];
    w = (problem.wSizes[2 + dimension] + step - 1) / step;
    x = problem.ySizes[2 + dimension] + w - 1;
  }
};

/// A problem and the same in planes.
class Planes {
 public:
  /// Of the problem's values alone. cuDNN has no descriptors of tensors of 2^31 elements.
  static bool fit(const Problem& problem) noexcept;
  /// REQUIRES: fit.
  explicit Planes(const Problem& problem) noexcept;

  const Problem& problem() const noexcept { return planar_; }
  // Of the workspace: x, w, and what the algorithm takes.
  std::size_t wPlace() const noexcept { return roundUpToAlignment(planar_.xBytes()); }
  std::size_t bytes() const noexcept { return wPlace() + roundUpToAlignment(planar_.wBytes()); }

  const BlockCopy& x() const noexcept { return x_; }
  const BlockCopy& w() const noexcept { return w_; }

 private:
  Problem planar_;
  BlockCopy x_, w_;
};

/// What the copies are for.
bool isOfFloats(const Problem& problem) noexcept {
  return problem.xType == CUDNN_DATA_FLOAT && problem.wType == CUDNN_DATA_FLOAT &&
         problem.yType == CUDNN_DATA_FLOAT && problem.computeType == CUDNN_DATA_FLOAT &&
         problem.dimensions == 2 + kSpatial && problem.groups == 1 &&
         problem.mode == CUDNN_CROSS_CORRELATION &&
         problem.operation != Operation::kBiasActivationForward;
}

/// Whether the filter steps, and some tap reads each pixel.
bool isStepping(const Problem& problem) noexcept {
  const auto& taps = problem.wSizes;
  const auto& steps = problem.strides;
  return std::int64_t{steps[0]} * steps[1] > 1 && problem.dilations[0] == 1 &&
         problem.dilations[1] == 1 && taps[2] >= steps[0] && taps[3] >= steps[1] &&
         std::int64_t{taps[2]} * taps[3] >= kFewestTaps;
}

bool Planes::fit(const Problem& problem) noexcept {
  if (!isOfFloats(problem) || !isStepping(problem)) return false;
  const auto& steps = problem.strides;
  const Line down(problem, 0), across(problem, 1);
  const std::int64_t perPixel = std::int64_t{steps[0]} * steps[1];
  const std::int64_t channels = problem.xSizes[1], planes = channels * perPixel;
  const bool fitDescriptors = fits(channels, perPixel) && fits(planes, down.x, across.x) &&
                              fits(problem.batch(), planes * down.x * across.x) &&
                              fits(planes, down.w, across.w);
  const bool fitCopies =
      fits(problem.batch(), channels, problem.xSizes[2] + down.x * steps[0]) &&
      fits(problem.wSizes[0], channels, down.w * steps[0]) &&
      fits(problem.xSizes[3] + across.x * steps[1], std::max(1, problem.xStrides[3]));
  return fitDescriptors && fitCopies;
}

Planes::Planes(const Problem& problem) noexcept : planar_(problem) {
  planar_.xSizes[1] = planar_.wSizes[1] =
      problem.xSizes[1] * problem.strides[0] * problem.strides[1];
  for (std::size_t i = 0; i < kSpatial; ++i) {
    const Line line(problem, i);
    planar_.xSizes[2 + i] = static_cast<std::int32_t>(line.x);
    planar_.wSizes[2 + i] = static_cast<std::int32_t>(line.w);
    planar_.strides[i] = 1;
    planar_.pads[i] = 0;
  }
  planar_.xStrides = channelsFirst(planar_.xSizes);
  planar_.wFormat = CUDNN_TENSOR_NCHW;
  x_ = copyOf(problem.xSizes, problem.xStrides, planar_.xSizes, sizeof(float));
  x_.padY = problem.pads[0];
  x_.padX = problem.pads[1];
  w_ = copyOf(problem.wSizes, filterStridesOf(problem), planar_.wSizes, sizeof(float));
  x_.rows = w_.rows = problem.strides[0];
  x_.columns = w_.columns = problem.strides[1];
}

class BuiltPlanes final : public BuiltKernel {
 public:
  BuiltPlanes(const Planes& planes, std::shared_ptr<const BuiltKernel> algorithm)
      : planes_(planes), algorithm_(std::move(algorithm)) {}

  /// The client's output is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    const Operation operation = planes_.problem().operation;
    if (!areFactorsForEngines(planes_.problem(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    ConvolutionPointers planar = pointers;
    planar.x = pointers.workspace;
    planar.w = advance(pointers.workspace, planes_.wPlace());
    planar.workspace = const_cast<void*>(advance(pointers.workspace, planes_.bytes()));
    planar.workspaceBytes = pointers.workspaceBytes - planes_.bytes();
    cudaError_t error = cudaSuccess;
    if (operation != Operation::kBackwardData)
      error = toPlanes(between(planes_.x(), pointers.x, planar.x), stream);
    if (operation != Operation::kBackwardFilter && error == cudaSuccess)
      error = toPlanes(between(planes_.w(), pointers.w, planar.w), stream);
    if (error != cudaSuccess) return statusOf(error);
    if (operation != Operation::kForward) planar.beta = Factor::zero(planes_.problem()).get();
    status = algorithm_->enqueue(handle, planar, nullptr);
    if (status != CUDNN_STATUS_SUCCESS || operation == Operation::kForward) return status;
    const BlockCopy copy = operation == Operation::kBackwardData
                               ? between(planes_.x(), pointers.x, planar.x)
                               : between(planes_.w(), pointers.w, planar.w);
    const bool adds = valueOf(pointers.beta, CUDNN_DATA_FLOAT) != 0;
    return statusOf(fromPlanes(adding(copy, adds), stream));
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t handle, std::size_t* bytes) const noexcept override {
    const cudnnStatus_t status = algorithm_->workspaceSize(handle, bytes);
    if (status == CUDNN_STATUS_SUCCESS) *bytes += planes_.bytes();
    return status;
  }

 private:
  Planes planes_;
  std::shared_ptr<const BuiltKernel> algorithm_;
};

/// Of algorithms that transform: with a step cuDNN has no Winograd, and Fourier's only forward,
/// which computes what the step leaves out. Others multiply as much as before, and zeros besides.
/// Inaccurate ones are left out: with a step cuDNN has none.
std::optional<KernelOffer> inPlanes(const Planes& planes, std::optional<KernelOffer> offer) {
  if (!offer || !offer->accurate || !transforms(planes.problem().operation, offer->kernel.id))
    return std::nullopt;
  offer->workspaceBytes += planes.bytes();
  offer->anyCall = false;
  return offer;
}

class PreparedPlanes final : public PreparedKernel {
 public:
  PreparedPlanes(const Planes& planes, std::unique_ptr<PreparedKernel> algorithm)
      : planes_(planes), algorithm_(std::move(algorithm)) {}

  std::optional<KernelOffer> offer(int* failures) override {
    try {
      if (!hasBlockCopies()) return std::nullopt;
    } catch (const Error&) {  // it may pass
      if (failures != nullptr) ++*failures;
      return std::nullopt;
    }
    return inPlanes(planes_, algorithm_->offer(failures));
  }
  std::shared_ptr<const BuiltKernel> build() override {
    return std::make_shared<const BuiltPlanes>(planes_, algorithm_->build());
  }

 private:
  Planes planes_;
  std::unique_ptr<PreparedKernel> algorithm_;
};

/// Of a problem that doesn't fit.
class NoPlanes final : public PreparedKernel {
 public:
  std::optional<KernelOffer> offer(int*) override { return std::nullopt; }
  std::shared_ptr<const BuiltKernel> build() override {
    throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the problem has no planes");
  }
};

class PlaneSource final : public KernelSource {
 public:
  std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                  const Problem& problem,
                                  const ConvolutionDescriptors&,
                                  int* failures) const override {
    std::vector<KernelOffer> kept;
    if (!Planes::fit(problem)) return kept;
    const Planes planes(problem);
    try {
      if (!hasBlockCopies()) return kept;
      const ProblemDescriptors descriptors(planes.problem());
      for (const KernelOffer& offer :
           algorithms_->offers(handle, planes.problem(), descriptors.get(), failures))
        if (const auto planar = inPlanes(planes, offer)) kept.push_back(*planar);
    } catch (const Error&) {  // it may pass
      if (failures != nullptr) ++*failures;
    }
    return kept;
  }

  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t handle,
                                          const Problem& problem,
                                          std::shared_ptr<const ProblemDescriptors>,
                                          Kernel kernel) const override {
    if (!Planes::fit(problem)) return std::make_unique<NoPlanes>();
    const Planes planes(problem);
    auto descriptors = std::make_shared<const ProblemDescriptors>(planes.problem());
    return std::make_unique<PreparedPlanes>(
        planes,
        algorithms_->prepare(handle, planes.problem(), std::move(descriptors), algorithm(kernel)));
  }

  /// "WINOGRAD_NONFUSED/fma_planes"
  std::string text(Operation operation, Kernel kernel) const override {
    return algorithms_->text(operation, algorithm(kernel)).append(kSuffix);
  }

  /// Of any batch size: with fewer samples there may be planes.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const Problem sample = problem.withBatch(1);
    if (text.size() < kSuffix.size() || text.substr(text.size() - kSuffix.size()) != kSuffix ||
        !Planes::fit(sample))
      return std::nullopt;
    text.remove_suffix(kSuffix.size());
    const Planes planes(sample);
    return inPlanes(planes, algorithms_->parse(planes.problem(), text));
  }

 private:
  static Kernel algorithm(Kernel kernel) {
    kernel.source = kAlgorithms;
    return kernel;
  }

  std::unique_ptr<KernelSource> algorithms_ = makeAlgorithmSource();
};

}  // namespace

bool mayHavePlanes(const Problem& problem) noexcept {
  return Planes::fit(problem);
}

std::unique_ptr<KernelSource> makePlaneSource() {
  return std::make_unique<PlaneSource>();
}

}  // namespace ucudnn
