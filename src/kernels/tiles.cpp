#include "kernels/tiles.hpp"

namespace ucudnn {

std::vector<Part> tilesOf(const Problem& problem, int tiles, std::size_t alignment) {
  const Direction direction = problem.groups > 1 ? Direction::kGroups : Direction::kFilters;
  if (tiles < 2 || sizeOf(problem, direction) % tiles != 0 ||
      problem.operation == Operation::kBiasActivationForward)
    return {};
  std::vector<Part> parts = cutEqually(Part(problem), direction, tiles);
  const Offsets& second = parts[1].offsets;
  const bool exist = second.x % alignment == 0 && second.w % alignment == 0 &&
                     second.y % alignment == 0 && !(second.adds && isRounded(problem.xType));
  return exist ? parts : std::vector<Part>();
}

}  // namespace ucudnn
