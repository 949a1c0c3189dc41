#include "kernels/planes.hpp"

#include <algorithm>
#include <utility>

#include "cuda/block_copy.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/pixel_copies.hpp"
#include "kernels/planar_part.hpp"
#include "kernels/slices.hpp"

namespace ucudnn {
namespace {

// A kernel's id is its algorithm plus this times the place of its cut.
constexpr std::int32_t kOfCut = 256;
static_assert(kOfCut > CUDNN_CONVOLUTION_FWD_ALGO_COUNT);

const PlaneCut& cutOf(Kernel kernel) noexcept {
  return kPlaneCuts[kernel.id / kOfCut];
}
Kernel algorithmIn(Kernel kernel) noexcept {
  return {kernel.id % kOfCut, kernel.mathType, kAlgorithms};
}
Kernel inCut(Kernel kernel, const PlaneCut& cut) noexcept {
  kernel.id += kOfCut * static_cast<std::int32_t>(&cut - std::begin(kPlaneCuts));
  return kernel;
}

bool adds(const ConvolutionPointers& pointers) noexcept {
  return valueOf(pointers.beta, CUDNN_DATA_FLOAT) != 0;
}

/// Enqueues a part. The client's output is written last: until then nothing is lost.
cudnnStatus_t enqueuePart(const PlanarPart& part,
                          const BuiltKernel& algorithm,
                          cudnnHandle_t handle,
                          cudaStream_t stream,
                          const ConvolutionPointers& pointers) noexcept {
  const Problem& problem = part.problem();
  ConvolutionPointers planar = part.copies().in(pointers.workspace, pointers);
  planar.workspace = const_cast<void*>(advance(pointers.workspace, part.bytes()));
  planar.workspaceBytes = pointers.workspaceBytes - part.bytes();
  cudaError_t error = cudaSuccess;
  if (problem.operation != Operation::kBackwardData)
    error = toPlanes(part.x(pointers.x, planar.x), stream);
  if (problem.operation != Operation::kBackwardFilter && error == cudaSuccess)
    error = toPlanes(part.w(pointers.w, planar.w), stream);
  if (part.copies().hasY() && error == cudaSuccess)
    error = toPlanes(part.y(pointers.y, planar.y), stream);
  if (error != cudaSuccess) return statusOf(error);
  if (problem.operation != Operation::kForward) planar.beta = Factor::zero(problem).get();
  const cudnnStatus_t status = algorithm.enqueue(handle, planar, nullptr);
  if (status != CUDNN_STATUS_SUCCESS || problem.operation == Operation::kForward) return status;
  if (problem.operation == Operation::kBackwardFilter)
    return statusOf(fromPlanes(adding(part.w(pointers.w, planar.w), adds(pointers)), stream));
  const auto [written, others] = part.writtenAndNew(pointers.x, planar.x);
  if (written.height > 0) error = fromPlanes(adding(written, true), stream);
  if (others.height > 0 && error == cudaSuccess)
    error = fromPlanes(adding(others, adds(pointers)), stream);
  return statusOf(error);
}

/// Parts with one problem, and the algorithm that computes it.
template <typename Algorithm>
struct Run {
  std::vector<PlanarPart> parts;
  Algorithm algorithm;
};

class BuiltPlanes final : public BuiltKernel {
 public:
  using Runs = std::vector<Run<std::shared_ptr<const BuiltKernel>>>;

  explicit BuiltPlanes(Runs runs) : runs_(std::move(runs)) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    const PlanarPart& first = runs_.front().parts.front();
    if (!areFactorsForEngines(first.problem(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (const auto& [parts, algorithm] : runs_)
      for (const PlanarPart& part : parts) {
        status = enqueuePart(
            part, *algorithm, handle, stream, pointersOf(part.offsets(), part.problem(), pointers));
        // Earlier parts have been added and can't be added again, whoever runs the call instead.
        if (status != CUDNN_STATUS_SUCCESS)
          return &part != &first && adds(pointers) ? CUDNN_STATUS_EXECUTION_FAILED : status;
      }
    return CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t handle, std::size_t* bytes) const noexcept override {
    *bytes = 0;
    for (const auto& [parts, algorithm] : runs_) {
      std::size_t ofPart = 0;
      const cudnnStatus_t status = algorithm->workspaceSize(handle, &ofPart);
      if (status != CUDNN_STATUS_SUCCESS) return status;
      *bytes = std::max(*bytes, ofPart + parts.front().bytes());
    }
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  Runs runs_;
};

/// Keeps algorithms that transform. With a step cuDNN has no Winograd; it has Fourier's only
/// forward, and computes what the step leaves out too. Other algorithms multiply as much as without
/// planes, and zeros besides. Inaccurate ones are left out, because cuDNN has none with a step.
/// Bands are for Winograd's algorithms, whose workspace is at least that of 16 samples. Fourier's
/// algorithms take long to write to a part of y.
std::optional<KernelOffer> inPlanes(const PlanarPart& part,
                                    const PlaneCut& cut,
                                    std::optional<KernelOffer> offer) {
  if (!offer || !offer->accurate || !transforms(part.problem().operation, offer->kernel.id))
    return std::nullopt;
  if (cut.bands > 1 && !isWinogradNonFused(part.problem().operation, offer->kernel.id))
    return std::nullopt;
  offer->workspaceBytes += part.bytes();
  offer->kernel = inCut(offer->kernel, cut);
  offer->anyCall = false;
  return offer;
}

class PreparedPlanes final : public PreparedKernel {
 public:
  using Runs = std::vector<Run<std::unique_ptr<PreparedKernel>>>;

  PreparedPlanes(const PlaneCut& cut, Runs runs) : cut_(cut), runs_(std::move(runs)) {}

  std::optional<KernelOffer> offer(int* failures) override {
    try {
      if (!hasBlockCopies()) return std::nullopt;
    } catch (const Error&) {  // it may pass
      if (failures != nullptr) ++*failures;
      return std::nullopt;
    }
    std::optional<KernelOffer> all;
    for (const auto& [parts, algorithm] : runs_) {
      auto offer = inPlanes(parts.front(), cut_, algorithm->offer(failures));
      if (!offer) return std::nullopt;
      if (all) offer->workspaceBytes = std::max(offer->workspaceBytes, all->workspaceBytes);
      all = offer;
    }
    return all;
  }
  std::shared_ptr<const BuiltKernel> build() override {
    if (runs_.empty()) throw Error(CUDNN_STATUS_NOT_SUPPORTED, "the problem has no planes");
    BuiltPlanes::Runs built;
    for (const auto& [parts, algorithm] : runs_) built.push_back({parts, algorithm->build()});
    return std::make_shared<const BuiltPlanes>(std::move(built));
  }

 private:
  const PlaneCut& cut_;
  Runs runs_;
};

class PlaneSource final : public KernelSource {
 public:
  std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                  const Problem& problem,
                                  const ConvolutionDescriptors&,
                                  int* failures) const override {
    std::vector<KernelOffer> kept;
    if (!mayHavePlanes(problem)) return kept;
    try {
      if (!hasBlockCopies()) return kept;
      for (const PlaneCut& cut : kPlaneCuts) addOffers(handle, problem, cut, failures, kept);
    } catch (const Error&) {  // it may pass
      if (failures != nullptr) ++*failures;
    }
    return kept;
  }

  std::unique_ptr<PreparedKernel> prepare(cudnnHandle_t handle,
                                          const Problem& problem,
                                          std::shared_ptr<const ProblemDescriptors>,
                                          Kernel kernel) const override {
    const PlaneCut& cut = cutOf(kernel);
    PreparedPlanes::Runs prepared;
    for (auto& parts : runsOf(problem, cut)) {
      const Problem& planar = parts.front().problem();
      auto descriptors = std::make_shared<const ProblemDescriptors>(planar);
      auto algorithm =
          algorithms_->prepare(handle, planar, std::move(descriptors), algorithmIn(kernel));
      prepared.push_back({std::move(parts), std::move(algorithm)});
    }
    return std::make_unique<PreparedPlanes>(cut, std::move(prepared));
  }

  /// "WINOGRAD_NONFUSED/fma_planes", "FFT_TILING/fma_planes_tiles=2"
  std::string text(Operation operation, Kernel kernel) const override {
    return algorithms_->text(operation, algorithmIn(kernel)).append(cutOf(kernel).suffix);
  }

  /// Parses for one sample, so it serves any batch size: with fewer samples there may be planes.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const Problem sample = problem.withBatch(1);
    for (const PlaneCut& cut : kPlaneCuts) {
      const std::size_t size = cut.suffix.size();
      if (text.size() < size || text.substr(text.size() - size) != cut.suffix) continue;
      const auto runs = runsOf(sample, cut);
      if (runs.empty()) continue;
      const PlanarPart& part = runs.front().front();
      text.remove_suffix(size);
      return inPlanes(part, cut, algorithms_->parse(part.problem(), text));
    }
    return std::nullopt;
  }

 private:
  /// Adds the offers for the first part. cuDNN may refuse one of them for the last part.
  void addOffers(cudnnHandle_t handle,
                 const Problem& problem,
                 const PlaneCut& cut,
                 int* failures,
                 std::vector<KernelOffer>& kept) const {
    const auto runs = runsOf(problem, cut);
    if (runs.empty()) return;
    const PlanarPart& first = runs.front().front();
    const ProblemDescriptors descriptors(first.problem());
    for (const KernelOffer& offer :
         algorithms_->offers(handle, first.problem(), descriptors.get(), failures)) {
      const auto ofFirst = inPlanes(first, cut, offer);
      if (!ofFirst) continue;
      const auto ofAll = runs.size() == 1
                             ? ofFirst
                             : prepare(handle, problem, nullptr, ofFirst->kernel)->offer(failures);
      if (ofAll) kept.push_back(*ofAll);
    }
  }

  std::unique_ptr<KernelSource> algorithms_ = makeAlgorithmSource();
};

}  // namespace

bool mayHavePlanes(const Problem& problem) noexcept {
  return !problem.isLarge() &&
         std::any_of(std::begin(kPlaneCuts), std::end(kPlaneCuts), [&](const PlaneCut& cut) {
           return hasPlanes(problem, cut);
         });
}

std::unique_ptr<KernelSource> makePlaneSource() {
  return std::make_unique<PlaneSource>();
}

}  // namespace ucudnn
