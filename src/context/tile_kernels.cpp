#include "context/tile_kernels.hpp"

#include <algorithm>

#include "host/division.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/descriptors.hpp"

namespace ucudnn {
namespace {

// Estimates of an H100's kernels, until times are known.
constexpr double kMultiplyAddsPerMs = 2e10, kTensorMultiplyAddsPerMs = 1.3e11;
constexpr double kKernelBytesPerMs = 1.5e9;
constexpr double kLeastKernelMs = 0.01;
// What a workspace smaller than the tensors costs.
constexpr double kShortWorkspace = 1.5;

double bytesOf(const Problem& tile) noexcept {
  return static_cast<double>(tile.xBytes() + tile.wBytes() + tile.yBytes());
}

}  // namespace

double tileMs(const Problem& tile) noexcept {
  const bool isPlain = tile.mathType == CUDNN_FMA_MATH || tile.computeType == CUDNN_DATA_DOUBLE;
  const double rate = isPlain ? kMultiplyAddsPerMs : kTensorMultiplyAddsPerMs;
  double products = tile.multiplyAdds();
  // Rows of dy beyond a band of dx are multiplied with zeros, which kernels leave out.
  const auto rows = [](const Problem::Sizes& sizes) { return static_cast<double>(sizes[2]); };
  if (tile.operation == Operation::kBackwardData && tile.strides[0] == 1)
    products *= std::min(1.0, rows(tile.xSizes) / rows(tile.ySizes));
  return kLeastKernelMs + std::max(products / rate, bytesOf(tile) / kKernelBytesPerMs);
}

double tileMs(const Problem& tile, std::size_t workspaceBytes) noexcept {
  const bool isShort = static_cast<double>(workspaceBytes) < bytesOf(tile);
  return tileMs(tile) * (isShort ? kShortWorkspace : 1);
}

std::size_t leastTileWorkspace(cudnnHandle_t handle,
                               const Settings& settings,
                               const Problem& tile) {
  const ProblemDescriptors descriptors(tile);
  if (!mayHaveAlgorithms(tile, descriptors.get())) return 0;
  std::size_t least = kNoWorkspace;
  int failures = 0;
  for (const KernelOffer& offer : offeredAlgorithms(handle, tile, descriptors.get(), &failures))
    if (offer.deterministic || !settings.deterministic)
      least = std::min(least, offer.workspaceBytes);
  if (failures > 0) throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what it has");
  return least;
}

}  // namespace ucudnn
