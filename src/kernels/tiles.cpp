#include "kernels/tiles.hpp"

#include "kernels/factor.hpp"

namespace ucudnn {
namespace {

/// Bytes of so many channels, each `stride` elements.
std::size_t bytesOf(std::int32_t channels, std::size_t stride, std::int32_t type) noexcept {
  return static_cast<std::size_t>(channels) * stride * elementBytes(type);
}

}  // namespace

Tiling::Tiling(const Problem& problem, int count) noexcept : tiles(count), tile(problem) {
  if (count == 1) return;
  tile.wSizes[0] /= count;
  tile.ySizes[1] /= count;
  wBytes = tile.wBytes();
  yBytes = bytesOf(tile.ySizes[1], static_cast<std::size_t>(problem.yStrides[1]), problem.yType);
  if (problem.groups == 1) return;
  tile.groups /= count;
  tile.xSizes[1] /= count;
  xBytes = bytesOf(tile.xSizes[1], static_cast<std::size_t>(problem.xStrides[1]), problem.xType);
}

bool Tiling::exists(const Problem& problem, int tiles, std::size_t alignment) noexcept {
  if (tiles == 1) return true;
  const std::int32_t parts = problem.groups > 1 ? problem.groups : problem.wSizes[0];
  if (tiles < 1 || parts % tiles != 0 || problem.operation == Operation::kBiasActivationForward)
    return false;
  const Tiling tiling(problem, tiles);
  return tiling.xBytes % alignment == 0 && tiling.wBytes % alignment == 0 &&
         tiling.yBytes % alignment == 0 && !(tiling.addsUp() && isRounded(problem.xType));
}

void Tiling::next(ConvolutionPointers& pointers) const noexcept {
  pointers.x = advance(pointers.x, xBytes);
  pointers.w = advance(pointers.w, wBytes);
  pointers.y = advance(pointers.y, yBytes);
  if (addsUp()) pointers.beta = Factor::one(tile).get();
}

}  // namespace ucudnn
