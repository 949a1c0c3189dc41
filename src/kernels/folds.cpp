#include "kernels/folds.hpp"

#include "kernels/engine_configuration.hpp"

namespace ucudnn {
namespace {

/// The filter along a row of x, before and after folding.
struct Taps {
  int columns;   ///< folded into one
  int channels;  ///< of a column
  int width;     ///< of a row of x, in columns
  int taps;      ///< of the filter
  int pad;       ///< on either side
  int wideTaps;  ///< in folded columns
  int widePad;

  explicit Taps(const Problem& problem) noexcept
      : columns(Folding::columnsOf(problem)), channels(problem.xSizes[1]) {
    const auto row = static_cast<std::size_t>(problem.dimensions) - 1;
    width = problem.xSizes[row];
    taps = problem.wSizes[row];
    pad = problem.pads[row - 2];
    widePad = (pad + columns - 1) / columns;
    wideTaps = width / columns + 2 * widePad - problem.ySizes[row] + 1;
  }

  /// Columns of the wide filter before the first tap. There are at least as many behind the last.
  int first() const noexcept { return widePad * columns - pad; }
};

}  // namespace

bool Folding::exists(const Problem& problem, int columns) noexcept {
  if (columns < 2 || columns > kMostFolds || columns != columnsOf(problem) ||
      problem.operation != Operation::kBackwardFilter || !isRounded(problem.wType) ||
      problem.wFormat != CUDNN_TENSOR_NHWC || problem.groups != 1 ||
      problem.mode != CUDNN_CROSS_CORRELATION || problem.dimensions < 4)
    return false;
  const auto row = static_cast<std::size_t>(problem.dimensions) - 1;
  const Taps taps(problem);
  const int steps = (taps.width + 2 * taps.pad - taps.taps) / columns;
  return problem.ySizes[row] == steps + 1 && problem.dilations[row - 2] == 1 &&
         taps.width % columns == 0 && problem.xStrides[1] == 1 &&
         problem.xStrides[row] == taps.channels &&
         problem.xStrides[row - 1] == std::int64_t{taps.width} * taps.channels;
}

bool Folding::savesCopies(const Problem& problem) noexcept {
  constexpr std::int64_t kRead = 8;  // channels of 16 bits: 16 bytes
  const auto padded = [](std::int64_t channels) { return (channels + kRead - 1) / kRead * kRead; };
  const std::int64_t columns = columnsOf(problem);
  return padded(columns * problem.xSizes[1]) < columns * padded(problem.xSizes[1]);
}

Folding::Folding(const Problem& problem) noexcept : folded(problem) {
  const auto row = static_cast<std::size_t>(problem.dimensions) - 1;
  const Taps taps(problem);
  folded.xSizes[1] = folded.wSizes[1] = taps.columns * taps.channels;
  folded.xStrides[row] = folded.xSizes[1];
  folded.xSizes[row] = taps.width / taps.columns;
  folded.wSizes[row] = taps.wideTaps;
  folded.pads[row - 2] = taps.widePad;
  folded.strides[row - 2] = 1;
  bytes = folded.wBytes();
  const std::size_t columnBytes =
      static_cast<std::size_t>(taps.channels) * elementBytes(problem.wType);
  rowBytes_ = static_cast<std::size_t>(taps.taps) * columnBytes;
  pitchBytes_ = static_cast<std::size_t>(taps.wideTaps * taps.columns) * columnBytes;
  firstBytes_ = static_cast<std::size_t>(taps.first()) * columnBytes;
  rows_ = bytes / pitchBytes_;
}

cudaError_t Folding::copy(const void* from,
                          std::size_t fromPitch,
                          const void* to,
                          std::size_t toPitch,
                          cudaStream_t stream) const noexcept {
  constexpr auto kKind = cudaMemcpyDeviceToDevice;
  return cudaMemcpy2DAsync(
      const_cast<void*>(to), toPitch, from, fromPitch, rowBytes_, rows_, kKind, stream);
}

}  // namespace ucudnn
