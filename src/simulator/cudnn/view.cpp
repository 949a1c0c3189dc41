#include "simulator/cudnn/view.hpp"

namespace ucudnn::simulator {
namespace {

template <typename Load>
void readWith(const View& view, int n, int first, int count, double* to, Load&& load) {
  for (int c = first; c < first + count; ++c) {
    for (int d = 0; d < view.dims[2]; ++d) {
      for (int h = 0; h < view.dims[3]; ++h) {
        const std::int64_t row = view.offset(n, c, d, h, 0);
        for (int w = 0; w < view.dims[4]; ++w) *to++ = load(row + w * view.strides[4]);
      }
    }
  }
}

}  // namespace

View::View(const TensorShape& shape) : type(shape.type), vector(vectorLength(shape.type)) {
  bytes = static_cast<std::int64_t>(elementBytes(shape.type)) / vector;
  const std::size_t missing = 5 - static_cast<std::size_t>(shape.rank);
  for (std::size_t i = 0; i < 5; ++i) {
    if (i >= 2 && i < 2 + missing) {
      dims[i] = 1;
      continue;
    }
    const std::size_t from = i < 2 ? i : i - missing;
    dims[i] = shape.dims[from];
    strides[i] = shape.strides[from] * vector;
  }
}

void readSample(const View& view, const void* base, int n, int first, int count, double* to) {
  if (view.type == CUDNN_DATA_FLOAT) {
    const auto* from = static_cast<const float*>(base);
    return readWith(
        view, n, first, count, to, [&](std::int64_t i) { return static_cast<double>(from[i]); });
  }
  readWith(view, n, first, count, to, [&](std::int64_t i) {
    return loadElement(view.type, view.at(base, i));
  });
}

}  // namespace ucudnn::simulator
