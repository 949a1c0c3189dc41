#include "kernels/tiles.hpp"

#include "kernels/engine_calls.hpp"

namespace ucudnn {

std::vector<Part> cutInTiles(const Problem& problem, int tiles) {
  if (tiles == 1) return {Part(problem)};
  const Direction direction = problem.groups > 1 ? Direction::kGroups : Direction::kFilters;
  if (tiles < 1 || sizeOf(problem, direction) % tiles != 0 ||
      problem.operation == Operation::kBiasActivationForward)
    return {};
  std::vector<Part> parts = cutEqually(Part(problem), direction, tiles);
  const Offsets& second = parts[1].offsets;
  if (!areForEngines(second) || (second.adds && isRounded(problem.xType))) parts.clear();
  return parts;
}

}  // namespace ucudnn
