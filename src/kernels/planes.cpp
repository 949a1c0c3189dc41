#include "kernels/planes.hpp"

#include <algorithm>
#include <utility>

#include "cuda/block_copy.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/factor.hpp"
#include "kernels/pixel_copies.hpp"
#include "kernels/planar_part.hpp"

namespace ucudnn {
namespace {

// A kernel's id: its algorithm, and so much times its cut's place.
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

/// A part and its algorithm.
struct BuiltPart {
  PlanarPart planes;
  std::shared_ptr<const BuiltKernel> algorithm;

  /// The client's output is written last: until then nothing is lost.
  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        cudaStream_t stream,
                        const ConvolutionPointers& pointers,
                        int row) const noexcept;
};

cudnnStatus_t BuiltPart::enqueue(cudnnHandle_t handle,
                                 cudaStream_t stream,
                                 const ConvolutionPointers& pointers,
                                 int row) const noexcept {
  const Problem& problem = planes.problem();
  const BlockCopy x = planes.x(pointers, row), w = planes.w(pointers), y = planes.y(pointers, row);
  ConvolutionPointers planar = pointers;
  planar.x = x.blocks;
  planar.w = w.blocks;
  planar.y = y.blocks;
  planar.workspace = const_cast<void*>(advance(pointers.workspace, planes.bytes()));
  planar.workspaceBytes = pointers.workspaceBytes - planes.bytes();
  cudaError_t error = cudaSuccess;
  if (problem.operation != Operation::kBackwardData) error = toPlanes(x, stream);
  if (problem.operation != Operation::kBackwardFilter && error == cudaSuccess)
    error = toPlanes(w, stream);
  if (planes.copiesY() && error == cudaSuccess) error = toPlanes(y, stream);
  if (error != cudaSuccess) return statusOf(error);
  if (problem.operation != Operation::kForward) planar.beta = Factor::zero(problem).get();
  const cudnnStatus_t status = algorithm->enqueue(handle, planar, nullptr);
  if (status != CUDNN_STATUS_SUCCESS || problem.operation == Operation::kForward) return status;
  if (problem.operation == Operation::kBackwardFilter)
    return statusOf(fromPlanes(adding(w, adds(pointers)), stream));
  const auto [written, others] = planes.writtenAndNew(pointers, row);
  if (written.height > 0) error = fromPlanes(adding(written, true), stream);
  if (others.height > 0 && error == cudaSuccess)
    error = fromPlanes(adding(others, adds(pointers)), stream);
  return statusOf(error);
}

class BuiltPlanes final : public BuiltKernel {
 public:
  BuiltPlanes(const PlaneCut& cut, std::vector<BuiltPart> parts)
      : cut_(cut), parts_(std::move(parts)) {}

  cudnnStatus_t enqueue(cudnnHandle_t handle,
                        const ConvolutionPointers& pointers,
                        const BiasActivation*) const noexcept override {
    const BuiltPart& first = parts_.front();
    if (!areFactorsForEngines(first.planes.problem(), pointers)) return CUDNN_STATUS_NOT_SUPPORTED;
    cudaStream_t stream = nullptr;
    cudnnStatus_t status = cudnn().getStream(handle, &stream);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (int band = 0; band < cut_.bands; ++band) {
      const BuiltPart& part = band + 1 < cut_.bands ? first : parts_.back();
      const int row = band * first.planes.problem().ySizes[2];
      ConvolutionPointers tile = pointers;
      for (int i = 0; i < cut_.tiles; ++i) {
        status = part.enqueue(handle, stream, tile, row);
        // What has been added can't be added again, whoever runs the call instead.
        if (status != CUDNN_STATUS_SUCCESS)
          return band + i > 0 && adds(pointers) ? CUDNN_STATUS_EXECUTION_FAILED : status;
        part.planes.next(tile);
      }
    }
    return CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t workspaceSize(cudnnHandle_t handle, std::size_t* bytes) const noexcept override {
    *bytes = 0;
    for (const BuiltPart& part : parts_) {
      std::size_t ofPart = 0;
      const cudnnStatus_t status = part.algorithm->workspaceSize(handle, &ofPart);
      if (status != CUDNN_STATUS_SUCCESS) return status;
      *bytes = std::max(*bytes, ofPart + part.planes.bytes());
    }
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  const PlaneCut& cut_;
  std::vector<BuiltPart> parts_;
};

/// Of algorithms that transform: with a step cuDNN has no Winograd, and Fourier's only forward,
/// which computes what the step leaves out. Others multiply as much as before, and zeros besides.
/// Inaccurate ones are left out: with a step cuDNN has none. Bands are for Winograd's, whose
/// workspace is that of 16 samples at least; Fourier's take long to write to a part of y.
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
  struct Part {
    PlanarPart planes;
    std::unique_ptr<PreparedKernel> algorithm;
  };

  PreparedPlanes(const PlaneCut& cut, std::vector<Part> parts)
      : cut_(cut), parts_(std::move(parts)) {}

  std::optional<KernelOffer> offer(int* failures) override {
    try {
      if (!hasBlockCopies()) return std::nullopt;
    } catch (const Error&) {  // it may pass
      if (failures != nullptr) ++*failures;
      return std::nullopt;
    }
    std::optional<KernelOffer> all;
    for (const Part& part : parts_) {
      auto offer = inPlanes(part.planes, cut_, part.algorithm->offer(failures));
      if (!offer) return std::nullopt;
      if (all) offer->workspaceBytes = std::max(offer->workspaceBytes, all->workspaceBytes);
      all = offer;
    }
    return all;
  }
  std::shared_ptr<const BuiltKernel> build() override {
    std::vector<BuiltPart> built;
    for (const Part& part : parts_) built.push_back({part.planes, part.algorithm->build()});
    return std::make_shared<const BuiltPlanes>(cut_, std::move(built));
  }

 private:
  const PlaneCut& cut_;
  std::vector<Part> parts_;
};

/// Of a problem that has none.
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
    if (!hasPlanes(problem, cut)) return std::make_unique<NoPlanes>();
    std::vector<PreparedPlanes::Part> parts;
    for (const PlanarPart& part : partsOf(problem, cut)) {
      auto descriptors = std::make_shared<const ProblemDescriptors>(part.problem());
      parts.push_back({part,
                       algorithms_->prepare(
                           handle, part.problem(), std::move(descriptors), algorithmIn(kernel))});
    }
    return std::make_unique<PreparedPlanes>(cut, std::move(parts));
  }

  /// "WINOGRAD_NONFUSED/fma_planes", "FFT_TILING/fma_planes_tiles=2"
  std::string text(Operation operation, Kernel kernel) const override {
    return algorithms_->text(operation, algorithmIn(kernel)).append(cutOf(kernel).suffix);
  }

  /// Of any batch size: with fewer samples there may be planes.
  std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const override {
    const Problem sample = problem.withBatch(1);
    for (const PlaneCut& cut : kPlaneCuts) {
      const std::size_t size = cut.suffix.size();
      if (text.size() < size || text.substr(text.size() - size) != cut.suffix ||
          !hasPlanes(sample, cut))
        continue;
      text.remove_suffix(size);
      const PlanarPart part = partsOf(sample, cut).front();
      return inPlanes(part, cut, algorithms_->parse(part.problem(), text));
    }
    return std::nullopt;
  }

 private:
  /// Those of the first part, of which cuDNN may refuse one for the last.
  void addOffers(cudnnHandle_t handle,
                 const Problem& problem,
                 const PlaneCut& cut,
                 int* failures,
                 std::vector<KernelOffer>& kept) const {
    if (!hasPlanes(problem, cut)) return;
    const auto parts = partsOf(problem, cut);
    const ProblemDescriptors descriptors(parts.front().problem());
    for (const KernelOffer& offer :
         algorithms_->offers(handle, parts.front().problem(), descriptors.get(), failures)) {
      const auto ofFirst = inPlanes(parts.front(), cut, offer);
      if (!ofFirst) continue;
      const auto ofAll = parts.size() == 1
                             ? ofFirst
                             : prepare(handle, problem, nullptr, ofFirst->kernel)->offer(failures);
      if (ofAll) kept.push_back(*ofAll);
    }
  }

  std::unique_ptr<KernelSource> algorithms_ = makeAlgorithmSource();
};

}  // namespace

bool mayHavePlanes(const Problem& problem) noexcept {
  return std::any_of(std::begin(kPlaneCuts), std::end(kPlaneCuts), [&](const PlaneCut& cut) {
    return hasPlanes(problem, cut);
  });
}

std::unique_ptr<KernelSource> makePlaneSource() {
  return std::make_unique<PlaneSource>();
}

}  // namespace ucudnn
