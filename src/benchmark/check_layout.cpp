#include "benchmark/check_layout.hpp"

#include <algorithm>

#include "support/alignment.hpp"

namespace ucudnn {
namespace {

// A wrong kernel may write one tile too many, so a guard is as long as a row of a tile.
constexpr std::size_t kGuardBytes = 4096;
// Bytes that the other stream's work writes: some thread blocks on each multiprocessor, for 3 us.
constexpr std::size_t kOthersBytes = std::size_t{4} << 20;

}  // namespace

CheckLayout::CheckLayout(const Problem& problem,
                         std::size_t workspaceBytes,
                         bool knowsY,
                         bool repeats) {
  if (problem.xType == problem.wType && problem.xType == problem.yType) {
    random.bytes = kRandomBlockBytes;
    bytes = roundUpToAlignment(random.end());
  }
  bytes += kGuardBytes;
  const bool isFused = problem.operation == Operation::kBiasActivationForward;
  add(w, problem.wBytes());
  if (isFused) add(bias, static_cast<std::size_t>(problem.ySizes[1]) * elementBytes(problem.yType));
  add(x, problem.xBytes());
  add(y, problem.yBytes());
  if (isFused && problem.addsZ != 0) add(z, problem.yBytes());
  add(workspace, workspaceBytes);
  output = problem.operation == Operation::kBackwardData     ? x
           : problem.operation == Operation::kBackwardFilter ? w
                                                             : y;
  addPieces(problem, knowsY);
  if (repeats) add(others, kOthersBytes);
}

void CheckLayout::add(Region& region, std::size_t size) {
  region = {roundUpToAlignment(bytes), size};
  bytes = region.end() + kGuardBytes;
}

/// A kernel that writes beside a tensor changes a guard, or an end of the next one.
void CheckLayout::addPieces(const Problem& problem, bool knowsY) {
  struct Tensor {
    const Region& region;
    const char* name;
    std::optional<RandomTensor> numbers;
    std::int32_t type;
  };
  const auto isInput = [&](const Region& region) { return region.begin != output.begin; };
  const auto of = [&](const Region& region, RandomTensor tensor) {
    return isInput(region) ? std::optional(tensor) : std::nullopt;
  };
  const Tensor tensors[] = {
      {w, "the filter", of(w, RandomTensor::kW), problem.wType},
      {bias, "the bias", std::nullopt, problem.yType},
      {x, "x", of(x, RandomTensor::kX), problem.xType},
      {y, "y", knowsY ? of(y, RandomTensor::kY) : std::nullopt, problem.yType},
      {z, "z", RandomTensor::kY, problem.yType},
      {workspace, "its workspace", std::nullopt, 0}};
  const std::size_t before = w.begin - kGuardBytes;
  pieces.push_back({{before, kGuardBytes}, nullptr, std::nullopt});
  for (const Tensor& tensor : tensors) {
    const Region& region = tensor.region;
    if (region.begin == 0) continue;  // there is none
    if (tensor.numbers) {
      const std::size_t end = std::min(region.bytes, kGuardBytes);
      pieces.push_back({{region.begin, end}, tensor.name, tensor.numbers, tensor.type, 0});
      const std::size_t last = region.bytes - std::min(region.bytes - end, kGuardBytes);
      pieces.push_back({{region.begin + last, region.bytes - last},
                        tensor.name,
                        tensor.numbers,
                        tensor.type,
                        last});
    }
    pieces.push_back({{region.end(), kGuardBytes}, tensor.name, std::nullopt});
  }
  std::size_t keptBytes = 2 * kKeptOutputBytes;
  for (const Piece& piece : pieces) keptBytes += piece.region.bytes;
  add(kept, keptBytes);
}

}  // namespace ucudnn
