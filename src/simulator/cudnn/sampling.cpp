#include "simulator/cudnn/sampling.hpp"

#include <algorithm>
#include <numeric>

namespace ucudnn::simulator {
namespace {

// SplitMix64's finisher (Steele, Lea, Flood 2014): every bit of the input moves every bit of the
// output.
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// The index whose offset is `offset`, by taking the largest strides out first; false for a gap.
bool indexAt(const View& view, std::int64_t offset, std::array<int, 5>* index) {
  std::array<std::size_t, 5> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return view.strides[a] > view.strides[b];
  });
  for (const std::size_t dim : order) {
    (*index)[dim] = 0;
    if (view.dims[dim] == 1 || view.strides[dim] == 0) continue;
    const std::int64_t steps =
        std::min<std::int64_t>(offset / view.strides[dim], view.dims[dim] - 1);
    (*index)[dim] = static_cast<int>(steps);
    offset -= steps * view.strides[dim];
  }
  return offset == 0;
}

}  // namespace

void forEachSample(const View& view,
                   std::size_t firstByte,
                   std::size_t allocationBytes,
                   const std::function<void(const std::array<int, 5>&)>& f) {
  const auto bytes = static_cast<std::size_t>(view.bytes);
  const std::size_t scalars = allocationBytes / bytes;
  const std::size_t stratum = std::max<std::size_t>(1, scalars / kSamplesPerAllocation);
  const std::size_t begin = firstByte / bytes;
  std::size_t end = begin + 1;
  for (std::size_t dim = 0; dim < 5; ++dim) {
    end +=
        static_cast<std::size_t>(view.dims[dim] - 1) * static_cast<std::size_t>(view.strides[dim]);
  }
  for (std::size_t i = begin / stratum; i * stratum < end; ++i) {
    const std::size_t place = i * stratum + scramble(i) % stratum;
    if (place < begin || place >= end) continue;
    std::array<int, 5> index{};
    if (indexAt(view, static_cast<std::int64_t>(place - begin), &index)) f(index);
  }
}

}  // namespace ucudnn::simulator
