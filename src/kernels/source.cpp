#include "kernels/source.hpp"

#include <utility>

#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"

namespace ucudnn {
namespace {

using Sources = std::vector<std::unique_ptr<const KernelSource>>;

/// Never destroyed: handles are used in static destructors.
Sources& sources() {
  static Sources& all = *[] {
    auto* const made = new Sources;
    made->push_back(makeAlgorithmSource());
    made->push_back(makeEngineSource());
    return made;
  }();
  return all;
}

const KernelSource& sourceOf(Kernel kernel) {
  return *sources()[static_cast<std::size_t>(kernel.source)];
}

}  // namespace

void addKernelSource(std::unique_ptr<const KernelSource> source) {
  sources().push_back(std::move(source));
}

std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        bool withEngines,
                                        int* failures) {
  std::vector<KernelOffer> all;
  for (std::size_t i = 0; i < sources().size(); ++i) {
    if (i == kEngines && !withEngines) continue;
    for (KernelOffer& offer : sources()[i]->offers(handle, problem, descriptors, failures)) {
      offer.kernel.source = static_cast<std::int32_t>(i);
      all.push_back(offer);
    }
  }
  return all;
}

std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         const ConvolutionDescriptors& descriptors,
                                         Kernel kernel,
                                         int* failures) {
  auto offer = sourceOf(kernel).offer(handle, problem, descriptors, kernel, failures);
  if (offer) offer->kernel.source = kernel.source;
  return offer;
}

std::shared_ptr<const BuiltKernel> buildKernel(
    cudnnHandle_t handle,
    const Problem& problem,
    std::shared_ptr<const ProblemDescriptors> descriptors,
    Kernel kernel) {
  return sourceOf(kernel).build(handle, problem, std::move(descriptors), kernel);
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

}  // namespace ucudnn
