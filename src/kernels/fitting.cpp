#include "kernels/fitting.hpp"

#include <algorithm>
#include <tuple>

namespace ucudnn {

bool fitsWorkspace(cudnnHandle_t handle,
                   Operation operation,
                   const ConvolutionDescriptors& descriptors,
                   int algorithm,
                   std::size_t workspaceBytes) noexcept {
  std::size_t bytes = 0;
  return algorithm >= 0 && areThere(descriptors) &&
         nativeWorkspaceSize(handle, operation, descriptors, algorithm, &bytes) ==
             CUDNN_STATUS_SUCCESS &&
         bytes <= workspaceBytes;
}

std::optional<KernelOffer> algorithmThatFits(cudnnHandle_t handle,
                                             const Problem& problem,
                                             const ConvolutionDescriptors& descriptors,
                                             std::size_t workspaceBytes,
                                             Determinism determinism) {
  std::vector<KernelOffer> offers = offeredAlgorithms(handle, problem, descriptors);
  const auto isOut = [&](const KernelOffer& offer) {
    return offer.workspaceBytes > workspaceBytes ||
           (determinism == Determinism::kRequired && !offer.deterministic);
  };
  offers.erase(std::remove_if(offers.begin(), offers.end(), isOut), offers.end());
  if (offers.empty()) return std::nullopt;
  const std::vector<KernelOffer> ranked = rankedAlgorithms(handle, problem, descriptors);
  const auto rank = [&](const KernelOffer& offer) {
    const auto place = std::find_if(ranked.begin(), ranked.end(), [&](const KernelOffer& picked) {
      return picked.kernel == offer.kernel;
    });
    return std::make_tuple(determinism == Determinism::kPreferred && !offer.deterministic,
                           !offer.accurate,
                           place - ranked.begin());
  };
  return *std::min_element(
      offers.begin(), offers.end(), [&](const KernelOffer& a, const KernelOffer& b) {
        return rank(a) < rank(b);
      });
}

std::size_t bytesToName(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionDescriptors& descriptors,
                        int algorithm,
                        std::size_t planBytes) noexcept {
  std::size_t bytes = 0;
  if (operation != Operation::kForward ||
      algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
      nativeWorkspaceSize(handle, operation, descriptors, algorithm, &bytes) !=
          CUDNN_STATUS_SUCCESS)
    return planBytes;
  return std::max(planBytes, bytes);
}

}  // namespace ucudnn
