#include "simulator/cudnn/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "simulator/cudnn/elementwise.hpp"

namespace ucudnn::simulator {
namespace {

using Index = std::array<int, kMaximumRank>;

bool isMaximum(const cudnnPoolingStruct& pooling) {
  return pooling.mode == CUDNN_POOLING_MAX || pooling.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

// The part of the input under the window of one output; padding cut off. Nothing of it is left for
// outputs beyond those of the formula.
struct Window {
  TensorShape shape;
  Index first{};
  double size = 1;  ///< what an average divides by

  Window(const cudnnPoolingStruct& pooling, const TensorShape& x, const Index& output) {
    const bool excludes = pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    shape = x;
    for (std::size_t d = 0; d < static_cast<std::size_t>(x.rank); ++d) {
      first[d] = output[d];
      shape.dims[d] = 1;
      if (d < 2) continue;
      const std::int64_t start =
          std::int64_t{output[d]} * pooling.stride[d - 2] - pooling.pad[d - 2];
      const std::int64_t end = std::min<std::int64_t>(start + pooling.window[d - 2], x.dims[d]);
      const std::int64_t begin = std::clamp<std::int64_t>(start, 0, x.dims[d]);
      first[d] = static_cast<int>(begin);
      shape.dims[d] = static_cast<int>(std::max(end, begin) - begin);
      size *= excludes ? std::max(shape.dims[d], 1) : pooling.window[d - 2];
    }
  }

  // Calls f with the index in x of each element under the window.
  template <typename F>
  void forEach(F&& f) const {
    for (std::size_t d = 0; d < static_cast<std::size_t>(shape.rank); ++d) {
      if (shape.dims[d] <= 0) return;
    }
    forEachOffset(shape, [&](std::int64_t, Index index) {
      for (std::size_t d = 0; d < static_cast<std::size_t>(shape.rank); ++d) index[d] += first[d];
      f(index);
    });
  }
};

// Whether `candidate` replaces `best` as the maximum.
bool beats(const cudnnPoolingStruct& pooling, double candidate, double best) {
  if (std::isnan(candidate)) {
    return pooling.nanPropagation == CUDNN_PROPAGATE_NAN && !std::isnan(best);
  }
  return candidate > best;
}

}  // namespace

void poolForward(const cudnnPoolingStruct& pooling,
                 const TensorShape& xShape,
                 const void* x,
                 const TensorShape& yShape,
                 void* y,
                 double alpha,
                 double beta) {
  writeElements(yShape, y, beta, [&](const Index& output) {
    const Window window(pooling, xShape, output);
    double result = isMaximum(pooling) ? -HUGE_VAL : 0;
    window.forEach([&](const Index& index) {
      const double value = loadAt(xShape, x, index);
      if (!isMaximum(pooling)) {
        result += value;
      } else if (beats(pooling, value, result)) {
        result = value;
      }
    });
    return alpha * (isMaximum(pooling) ? result : result / window.size);
  });
}

void poolBackward(const cudnnPoolingStruct& pooling,
                  const TensorShape& xShape,
                  const void* x,
                  const TensorShape& dyShape,
                  const void* dy,
                  const TensorShape& dxShape,
                  void* dx,
                  double alpha,
                  double beta) {
  const TensorShape packed = packedShape(dxShape);
  std::vector<double> sums(elementCount(packed), 0.0);
  const auto sumAt = [&](const Index& index) -> double& {
    return sums[static_cast<std::size_t>(broadcastOffset(packed, index))];
  };
  forEachOffset(dyShape, [&](std::int64_t, const Index& output) {
    const Window window(pooling, xShape, output);
    const double gradient = loadAt(dyShape, dy, output);
    if (!isMaximum(pooling)) {
      window.forEach([&](const Index& index) { sumAt(index) += gradient / window.size; });
      return;
    }
    double best = -HUGE_VAL;
    Index place{};
    bool found = false;
    window.forEach([&](const Index& index) {
      const double value = loadAt(xShape, x, index);
      if (found && !beats(pooling, value, best)) return;
      best = value;
      place = index;
      found = true;
    });
    if (found) sumAt(place) += gradient;
  });
  writeElements(dxShape, dx, beta, [&](const Index& index) { return alpha * sumAt(index); });
}

}  // namespace ucudnn::simulator
