#include "host/rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ucudnn {
namespace {

// What all GPUs answer for cudaDevAttrMaxPitch.
constexpr std::size_t kMostPitch = std::numeric_limits<std::int32_t>::max();

struct Dimension {
  std::size_t count, tensorStep, slotStep;  ///< in bytes
};

/// The bytes of an element, then the dimensions of several elements, the slot's innermost first.
/// Neighbouring dimensions that are contiguous in both layouts are joined.
std::vector<Dimension> mergedDimensions(const Problem::Sizes& sizes,
                                        const Layout& tensor,
                                        const Problem::Strides& slotStrides) {
  std::vector<Dimension> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dimensions); ++i)
    if (sizes[i] > 1)
      all.push_back({static_cast<std::size_t>(sizes[i]),
                     static_cast<std::size_t>(tensor.strides[i]) * tensor.elementBytes,
                     static_cast<std::size_t>(slotStrides[i]) * tensor.elementBytes});
  std::sort(all.begin(), all.end(), [](const Dimension& a, const Dimension& b) {
    return a.slotStep < b.slotStep;
  });
  std::vector<Dimension> merged = {{tensor.elementBytes, 1, 1}};
  for (const Dimension& next : all) {
    Dimension& last = merged.back();
    if (next.tensorStep == last.count * last.tensorStep &&
        next.slotStep == last.count * last.slotStep)
      last.count *= next.count;
    else
      merged.push_back(next);
  }
  return merged;
}

}  // namespace

bool Layout::overlaps() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, size
  for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions); ++i)
    if (sizes[i] > 1) steps.emplace_back(strides[i], sizes[i]);
  std::sort(steps.begin(), steps.end());
  std::int64_t span = 1;
  for (const auto& [stride, size] : steps) {
    if (stride < span) return true;
    span += stride * (size - 1);
  }
  return false;
}

std::size_t Layout::elements() const noexcept {
  return std::accumulate(
      sizes.begin(), sizes.begin() + dimensions, std::size_t{1}, [](std::size_t all, auto size) {
        return all * static_cast<std::size_t>(size);
      });
}

Layout layoutOfX(const Problem& problem) noexcept {
  return {problem.dimensions, problem.xSizes, problem.xStrides, elementBytes(problem.xType)};
}
Layout layoutOfY(const Problem& problem) noexcept {
  return {problem.dimensions, problem.ySizes, problem.yStrides, elementBytes(problem.yType)};
}
Layout layoutOfW(const Problem& problem) noexcept {
  Layout layout{problem.dimensions, problem.wSizes, {}, elementBytes(problem.wType)};
  const Problem::FilterStrides strides = problem.wStrides();
  for (std::size_t i = 0; i < strides.size(); ++i)
    layout.strides[i] = static_cast<std::int64_t>(strides[i]);
  return layout;
}

Problem::Strides packedLike(const Layout& tensor, const Problem::Sizes& sizes) {
  std::vector<std::size_t> order(static_cast<std::size_t>(tensor.dimensions));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensor.strides[a] > tensor.strides[b];
  });
  Problem::Strides packed{};
  std::int64_t stride = 1;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    packed[*i] = stride;
    stride *= std::max(sizes[*i], 1);
  }
  return packed;
}

std::vector<Rows> rowsOf(const Problem::Sizes& sizes,
                         const Layout& tensor,
                         std::size_t tensorOffset,
                         const Problem::Strides& slotStrides,
                         std::size_t slotOffset) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dimensions); ++i)
    if (sizes[i] <= 0) return {};
  const std::vector<Dimension> all = mergedDimensions(sizes, tensor, slotStrides);
  Rows first{tensorOffset, slotOffset, all[0].count, 1, all[0].count, all[0].count};
  std::size_t next = 1;
  if (next < all.size() && all[next].tensorStep <= kMostPitch && all[next].slotStep <= kMostPitch) {
    first.height = all[next].count;
    first.tensorPitch = all[next].tensorStep;
    first.slotPitch = all[next].slotStep;
    ++next;
  }
  std::vector<Rows> rows = {first};
  for (; next < all.size(); ++next) {
    const std::size_t before = rows.size();
    for (std::size_t i = 1; i < all[next].count; ++i)
      for (std::size_t j = 0; j < before; ++j) {
        Rows moved = rows[j];
        moved.tensor += i * all[next].tensorStep;
        moved.slot += i * all[next].slotStep;
        rows.push_back(moved);
      }
  }
  return rows;
}

}  // namespace ucudnn
