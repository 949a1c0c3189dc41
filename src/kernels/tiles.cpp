#include "kernels/tiles.hpp"

namespace ucudnn {
namespace {

Direction directionOf(const Problem& problem) noexcept {
  return problem.groups > 1 ? Direction::kGroups : Direction::kFilters;
}

}  // namespace

bool hasTiles(const Problem& problem, int tiles, std::size_t alignment) noexcept {
  const Direction direction = directionOf(problem);
  const std::int32_t size = sizeOf(problem, direction);
  if (tiles < 2 || size % tiles != 0 || problem.operation == Operation::kBiasActivationForward)
    return false;
  const Offsets second = cut(Part(problem), direction, {size / tiles, size / tiles}).offsets;
  return second.x % alignment == 0 && second.w % alignment == 0 && second.y % alignment == 0 &&
         !(second.adds && isRounded(problem.xType));
}

std::vector<Part> tilesOf(const Problem& problem, int tiles) {
  return cutEqually(Part(problem), directionOf(problem), tiles);
}

}  // namespace ucudnn
