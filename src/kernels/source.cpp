#include "kernels/source.hpp"

#include <utility>

#include "kernels/algorithms.hpp"
#include "kernels/blocks.hpp"
#include "kernels/built_engine.hpp"
#include "kernels/engines.hpp"
#include "kernels/errata.hpp"
#include "kernels/planes.hpp"

namespace ucudnn {
namespace {

using Sources = std::vector<std::unique_ptr<const KernelSource>>;

/// Never destroyed: handles are used in static destructors.
Sources& sources() {
  static Sources& all = *[] {
    auto* const made = new Sources;
    made->push_back(makeAlgorithmSource());
    made->push_back(makeEngineSource());
    made->push_back(makePlaneSource());
    return made;
  }();
  return all;
}

/// If tensor cores multiply blocks of pixels, no transform of planes is as fast: on an H200 0.57 ms
/// against 1.0 for AlexNet's first convolution.
bool areBlocksFaster(const Problem& problem) noexcept {
  return problem.mathType != CUDNN_FMA_MATH && Blocking::hasFewChannels(problem);
}

const KernelSource& sourceOf(Kernel kernel) {
  return *sources()[static_cast<std::size_t>(kernel.source)];
}

/// Whether an erratum bars kernels of the source for the problem. Engines decide by themselves,
/// because only they know which configuration cuDNN is given.
bool isBarredElsewhere(const Problem& problem, std::int32_t source) {
  return source != kEngines && isBarred(problem, nullptr, true);
}

std::optional<KernelOffer> offerOf(
    PreparedKernel& prepared, const Problem& problem, Kernel kernel, Calls calls, int* failures) {
  if (isBarredElsewhere(problem, kernel.source)) return std::nullopt;
  auto offer =
      calls == Calls::kAll ? prepared.offer(failures) : prepared.offerToOverwrite(failures);
  if (offer) offer->kernel.source = kernel.source;
  return offer;
}

}  // namespace

void addKernelSource(std::unique_ptr<const KernelSource> source) {
  sources().push_back(std::move(source));
}

bool isAsked(std::int32_t source, const Problem& problem, bool withEngines) noexcept {
  return withEngines ? source != kPlanes || !areBlocksFaster(problem) : source != kEngines;
}

bool mayBePlanned(const Problem& problem, Kernel kernel) {
  return !problem.isLarge() || sourceOf(kernel).divides(problem, kernel);
}

bool mayBeBarred(const Problem& problem, [[maybe_unused]] Kernel kernel) {
#if UCUDNN_HAS_ENGINES
  if (kernel.source == kEngines) try {
      const EngineConfiguration value = engineConfigurationOf(kernel.id);
      return isBarred(EnginePart(problem, value).problem, &value, true);
    } catch (const Error&) {  // there are no such parts
      return false;
    }
#endif
  return isBarred(problem, nullptr, true);
}

std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        bool withEngines,
                                        int* failures,
                                        Calls calls) {
  std::vector<KernelOffer> all;
  for (std::size_t i = 0; i < sources().size(); ++i) {
    const auto source = static_cast<std::int32_t>(i);
    if (!isAsked(source, problem, withEngines) || isBarredElsewhere(problem, source)) continue;
    const KernelSource& from = *sources()[i];
    for (KernelOffer& offer :
         calls == Calls::kAll ? from.offers(handle, problem, descriptors, failures)
                              : from.offersToOverwrite(handle, problem, descriptors, failures)) {
      offer.kernel.source = source;
      all.push_back(offer);
    }
  }
  return all;
}

namespace {

/// The first source's answer, by the source's member `offer`.
template <typename Offer>
std::optional<KernelOffer> firstOffer(Offer offer) {
  for (std::size_t i = 0; i < sources().size(); ++i)
    if (auto found = offer(*sources()[i])) {
      found->kernel.source = static_cast<std::int32_t>(i);
      return found;
    }
  return std::nullopt;
}

}  // namespace

std::optional<KernelOffer> offeredInBands(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const OfferBounds& bounds,
                                          int* failures) {
  return firstOffer([&](const KernelSource& source) {
    return source.offerInBands(handle, problem, bounds, failures);
  });
}

std::optional<KernelOffer> offeredFirst(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const OfferBounds& bounds,
                                        bool orNext,
                                        int* failures) {
  return firstOffer([&](const KernelSource& source) {
    return source.offerFirst(handle, problem, bounds, orNext, failures);
  });
}

bool copiesTensors(const Problem& problem, Kernel kernel, std::size_t workspaceBytes) {
  return sourceOf(kernel).copiesTensors(problem, kernel, workspaceBytes);
}

std::size_t copiedBytes(const Problem& problem, Kernel kernel) {
  return sourceOf(kernel).copiedBytes(problem, kernel);
}

std::size_t outputCopyBytes(const Problem& problem, Kernel kernel) {
  return sourceOf(kernel).outputCopyBytes(problem, kernel);
}

std::vector<KernelOffer> firstOffers(cudnnHandle_t handle,
                                     const Problem& problem,
                                     std::size_t limitBytes,
                                     std::size_t most,
                                     Calls calls,
                                     int* failures) {
  std::vector<KernelOffer> all;
  for (std::size_t i = 0; i < sources().size(); ++i)
    for (KernelOffer& offer :
         sources()[i]->firstOffers(handle, problem, limitBytes, most, calls, failures)) {
      offer.kernel.source = static_cast<std::int32_t>(i);
      all.push_back(offer);
    }
  return all;
}

std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         std::shared_ptr<const ProblemDescriptors> descriptors,
                                         Kernel kernel,
                                         int* failures,
                                         Calls calls) {
  const auto prepared = sourceOf(kernel).prepare(handle, problem, std::move(descriptors), kernel);
  return offerOf(*prepared, problem, kernel, calls, failures);
}

std::shared_ptr<const BuiltKernel> buildKernel(
    cudnnHandle_t handle,
    const Problem& problem,
    std::shared_ptr<const ProblemDescriptors> descriptors,
    Kernel kernel,
    Calls calls) {
  const auto prepared = sourceOf(kernel).prepare(handle, problem, std::move(descriptors), kernel);
  return calls == Calls::kAll ? prepared->build() : prepared->buildToOverwrite();
}

std::vector<std::vector<Kernel>> variantsOf(cudnnHandle_t handle,
                                            const Problem& problem,
                                            Kernel kernel) {
  auto all = sourceOf(kernel).variants(handle, problem, kernel);
  for (std::vector<Kernel>& choice : all)
    for (Kernel& variant : choice) variant.source = kernel.source;
  return all;
}

Kernel kindOf(Kernel kernel) {
  return {sourceOf(kernel).kind(kernel), kernel.mathType, kernel.source};
}

std::string toText(Operation operation, Kernel kernel) {
  return sourceOf(kernel).text(operation, kernel);
}

std::optional<KernelOffer> parseKernel(const Problem& problem, std::string_view text) {
  for (std::size_t i = 0; i < sources().size(); ++i)
    if (auto found = sources()[i]->parse(problem, text)) {
      found->kernel.source = static_cast<std::int32_t>(i);
      return found;
    }
  return std::nullopt;
}

PreparedKernels::Place& PreparedKernels::placeOf(int batch, Kernel kernel) {
  Place& place = places_[{batch, kernel}];
  if (place.prepared) return place;
  // An engine's graph is made of others.
  const auto descriptors = kernel.source == kEngines ? nullptr : descriptorsOf(batch);
  place.prepared =
      sourceOf(kernel).prepare(handle_, problem_.withBatch(batch), descriptors, kernel);
  return place;
}

const std::shared_ptr<const ProblemDescriptors>& PreparedKernels::descriptorsOf(int batch) {
  auto& descriptors = descriptors_[batch];
  if (!descriptors)
    descriptors = std::make_shared<const ProblemDescriptors>(problem_.withBatch(batch));
  return descriptors;
}

std::optional<KernelOffer> PreparedKernels::offer(int batch,
                                                  Kernel kernel,
                                                  Calls calls,
                                                  int* failures) {
  const Problem part = problem_.withBatch(batch);
  return offerOf(*placeOf(batch, kernel).prepared, part, kernel, calls, failures);
}

std::shared_ptr<const BuiltKernel> PreparedKernels::build(int batch, Kernel kernel, Calls calls) {
  Place& place = placeOf(batch, kernel);
  auto& built = place.built[calls];
  if (!built)
    built = calls == Calls::kAll ? place.prepared->build() : place.prepared->buildToOverwrite();
  return built;
}

std::optional<KernelOffer> PreparedKernels::offerOnCopies(int batch,
                                                          std::optional<Kernel> own,
                                                          const OfferBounds& bounds) {
  const auto ask = [&](Kernel kernel, int* failures) {
    return offer(batch, kernel, bounds.calls, failures);
  };
  return firstOffer([&](const KernelSource& source) {
    return source.offerOnCopies(handle_, problem_.withBatch(batch), own, bounds, ask);
  });
}

const std::vector<KernelOffer>& PreparedKernels::ranked() {
  if (!ranked_) {
    const ConvolutionDescriptors descriptors = descriptorsOf(problem_.batch())->get();
    ranked_ = rankedAlgorithms(handle_, problem_, descriptors);
  }
  return *ranked_;
}

}  // namespace ucudnn
