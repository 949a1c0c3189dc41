#include "benchmark/exact_outputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "benchmark/random_values.hpp"
#include "cuda/error.hpp"
#include "problem/activation.hpp"

namespace ucudnn {
namespace {

// The error of so few outputs repeats within 15 %: one over the root of twice their number.
constexpr double kFewestOutputs = 24;
// For kMostOutputs together: a host computes 3e8 a second.
constexpr double kMostProducts = 3e7;

// To look at outputs one by one, fewer will do: a check is to take a fiftieth of what a timing
// does.
constexpr double kFewestChecked = 64;
constexpr double kCheckedProducts = 1.5e6;
// A filter gradient's dy has as many pixels as a channel's filter has taps, or some more.
constexpr std::int64_t kMostWindows = 8;
constexpr std::int64_t kWindowPixels = 256;

/// All five dimensions: those that the problem does not have are 1.
using Index = std::array<std::int64_t, 5>;

struct Tensor {
  Index sizes{1, 1, 1, 1, 1}, strides{};
  std::vector<double> values;  ///< that fillRandom repeats

  std::size_t offset(const Index& i) const noexcept {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < i.size(); ++d) sum += i[d] * strides[d];
    return static_cast<std::size_t>(sum);
  }
  double at(std::size_t offset) const noexcept { return values[offset % values.size()]; }
  std::int64_t image() const noexcept { return sizes[2] * sizes[3] * sizes[4]; }
};

/// Values from one offset on at equal distances.
class Walk {
 public:
  Walk(const Tensor& tensor, const Index& first, std::int64_t step)
      : values_(tensor.values),
        at_(tensor.offset(first) % values_.size()),
        step_(static_cast<std::size_t>(step) % values_.size()) {}
  double next() noexcept {
    const double value = values_[at_];
    at_ += step_;
    if (at_ >= values_.size()) at_ -= values_.size();
    return value;
  }

 private:
  const std::vector<double>& values_;
  std::size_t at_, step_;
};

class Convolution {
 public:
  explicit Convolution(const Problem& problem, std::vector<Window> windows = {});

  const Tensor& output() const noexcept {
    return operation_ == Operation::kBackwardData     ? x_
           : operation_ == Operation::kBackwardFilter ? w_
                                                      : y_;
  }
  /// Products that are added up for one output, at most.
  double products() const noexcept;
  double at(const Index& output) const;

 private:
  double forward(const Index& y) const;
  double backwardData(const Index& x) const;
  double backwardFilter(const Index& w) const;
  double backwardFilterOfWindows(const Index& w) const;
  /// Where the filter holds what meets the tap.
  std::int64_t filterAt(std::size_t d, std::int64_t tap) const noexcept {
    return isFlipped_ ? w_.sizes[d] - 1 - tap : tap;
  }
  /// The place in x that an output's tap meets; -1: in the padding.
  std::int64_t inputAt(std::size_t d, std::int64_t output, std::int64_t tap) const noexcept {
    const std::int64_t place = output * steps_[d] - pads_[d] + tap * dilations_[d];
    return place < x_.sizes[d] ? std::max<std::int64_t>(place, -1) : -1;
  }
  /// The output whose tap meets x; -1: none.
  std::int64_t outputAt(std::size_t d, std::int64_t input, std::int64_t tap) const noexcept {
    const std::int64_t place = input + pads_[d] - tap * dilations_[d];
    return place < 0 || place % steps_[d] != 0 || place / steps_[d] >= y_.sizes[d]
               ? -1
               : place / steps_[d];
  }
  template <typename Use>
  void forEachTap(Use use) const {
    Index tap{};
    for (tap[2] = 0; tap[2] < w_.sizes[2]; ++tap[2])
      for (tap[3] = 0; tap[3] < w_.sizes[3]; ++tap[3])
        for (tap[4] = 0; tap[4] < w_.sizes[4]; ++tap[4]) use(tap);
  }

  Operation operation_;
  bool isFlipped_, isRectified_, addsZ_;
  std::int64_t groups_;
  Tensor x_, w_, y_;
  std::vector<Window> windows_;
  Index pads_{}, steps_{1, 1, 1, 1, 1}, dilations_{1, 1, 1, 1, 1};
};

Convolution::Convolution(const Problem& problem, std::vector<Window> windows)
    : operation_(problem.operation),
      isFlipped_(problem.mode == CUDNN_CONVOLUTION),
      isRectified_(problem.operation == Operation::kBiasActivationForward && isRelu(problem)),
      addsZ_(problem.addsZ != 0),
      groups_(problem.groups),
      windows_(std::move(windows)) {
  const auto dimensions = static_cast<std::size_t>(problem.dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    x_.sizes[d] = problem.xSizes[d];
    x_.strides[d] = problem.xStrides[d];
    w_.sizes[d] = problem.wSizes[d];
    y_.sizes[d] = problem.ySizes[d];
    y_.strides[d] = problem.yStrides[d];
    if (d < 2) continue;
    pads_[d] = problem.pads[d - 2];
    steps_[d] = problem.strides[d - 2];
    dilations_[d] = problem.dilations[d - 2];
  }
  // Filters have no gaps; NHWC: channels are innermost.
  const bool isNhwc = problem.wFormat == CUDNN_TENSOR_NHWC;
  w_.strides[1] = isNhwc ? 1 : w_.image();
  w_.strides[0] = w_.sizes[1] * w_.image();
  std::int64_t stride = isNhwc ? w_.sizes[1] : 1;
  for (std::size_t d = 4; d >= 2; stride *= w_.sizes[d--]) w_.strides[d] = stride;
  x_.values = randomValues(RandomTensor::kX, problem.xType);
  w_.values = randomValues(RandomTensor::kW, problem.wType);
  y_.values = randomValues(RandomTensor::kY, problem.yType);
}

double Convolution::products() const noexcept {
  switch (operation_) {
    case Operation::kBackwardData: {
      const std::int64_t filters = w_.sizes[0] / groups_;
      return static_cast<double>(filters * w_.image());
    }
    case Operation::kBackwardFilter: {
      double pixels = windows_.empty() ? static_cast<double>(y_.sizes[0] * y_.image()) : 0;
      for (const Window& window : windows_)
        pixels += static_cast<double>(window.end - window.begin);
      return pixels;
    }
    default:
      return static_cast<double>(w_.sizes[1] * w_.image());
  }
}

double Convolution::at(const Index& output) const {
  if (operation_ == Operation::kBackwardData) return backwardData(output);
  if (operation_ == Operation::kBackwardFilter)
    return windows_.empty() ? backwardFilter(output) : backwardFilterOfWindows(output);
  double value = forward(output);
  if (addsZ_) value += y_.at(y_.offset(output));
  return isRectified_ ? std::max(value, 0.0) : value;
}

double Convolution::forward(const Index& y) const {
  const std::int64_t group = y[1] / (w_.sizes[0] / groups_);
  double sum = 0;
  forEachTap([&](const Index& tap) {
    Index x{y[0], group * w_.sizes[1]}, w{y[1], 0};
    for (std::size_t d = 2; d < tap.size(); ++d) {
      x[d] = inputAt(d, y[d], tap[d]);
      w[d] = filterAt(d, tap[d]);
      if (x[d] < 0) return;
    }
    Walk inputs(x_, x, x_.strides[1]), filters(w_, w, w_.strides[1]);
    for (std::int64_t c = 0; c < w_.sizes[1]; ++c) sum += inputs.next() * filters.next();
  });
  return sum;
}

double Convolution::backwardData(const Index& x) const {
  const std::int64_t filters = w_.sizes[0] / groups_;
  const std::int64_t first = x[1] / w_.sizes[1] * filters;
  double sum = 0;
  forEachTap([&](const Index& tap) {
    Index y{x[0], first}, w{first, x[1] % w_.sizes[1]};
    for (std::size_t d = 2; d < tap.size(); ++d) {
      y[d] = outputAt(d, x[d], tap[d]);
      w[d] = filterAt(d, tap[d]);
      if (y[d] < 0) return;
    }
    Walk gradients(y_, y, y_.strides[1]), taps(w_, w, w_.strides[0]);
    for (std::int64_t k = 0; k < filters; ++k) sum += gradients.next() * taps.next();
  });
  return sum;
}

double Convolution::backwardFilter(const Index& w) const {
  Index tap{};
  for (std::size_t d = 2; d < tap.size(); ++d) tap[d] = filterAt(d, w[d]);
  const std::int64_t group = w[0] / (w_.sizes[0] / groups_);
  // The columns of y whose tap lies within x.
  std::int64_t begin = 0, end = y_.sizes[4];
  while (begin < end && inputAt(4, begin, tap[4]) < 0) ++begin;
  while (begin < end && inputAt(4, end - 1, tap[4]) < 0) --end;
  if (begin == end) return 0;
  Index x{0, group * w_.sizes[1] + w[1], 0, 0, inputAt(4, begin, tap[4])};
  Index y{0, w[0], 0, 0, begin};
  double sum = 0;
  for (y[0] = 0; y[0] < y_.sizes[0]; ++y[0])
    for (y[2] = 0; y[2] < y_.sizes[2]; ++y[2])
      for (y[3] = 0; y[3] < y_.sizes[3]; ++y[3]) {
        x[0] = y[0];
        x[2] = inputAt(2, y[2], tap[2]);
        x[3] = inputAt(3, y[3], tap[3]);
        if (x[2] < 0 || x[3] < 0) continue;
        Walk inputs(x_, x, steps_[4] * x_.strides[4]), gradients(y_, y, y_.strides[4]);
        for (std::int64_t i = begin; i < end; ++i) sum += inputs.next() * gradients.next();
      }
  return sum;
}

/// The gradient if dy holds what fillWindows has written.
double Convolution::backwardFilterOfWindows(const Index& w) const {
  const std::int64_t group = w[0] / (w_.sizes[0] / groups_);
  const bool isNhwc = y_.strides[1] == 1;
  double sum = 0;
  for (const Window& window : windows_) {
    const std::int64_t length = window.end - window.begin;
    for (std::int64_t i = 0; i < length; ++i) {
      Index x{window.sample, group * w_.sizes[1] + w[1]};
      std::int64_t pixel = window.begin + i;
      bool isInside = true;
      for (std::size_t d = x.size(); d-- > 2; pixel /= y_.sizes[d]) {
        x[d] = inputAt(d, pixel % y_.sizes[d], filterAt(d, w[d]));
        isInside = isInside && x[d] >= 0;
      }
      const std::int64_t number = isNhwc ? i * y_.sizes[1] + w[0] : w[0] * length + i;
      if (isInside) sum += x_.at(x_.offset(x)) * y_.at(static_cast<std::size_t>(number));
    }
  }
  return sum;
}

/// The number-th index in the order of the dimensions.
Index indexOf(const Index& sizes, std::int64_t number) noexcept {
  Index index{};
  for (std::size_t d = sizes.size(); d-- > 0; number /= sizes[d]) index[d] = number % sizes[d];
  return index;
}

}  // namespace

bool hasExactOutputs(const Problem& problem) noexcept {
  return problem.operation != Operation::kBiasActivationForward || isRelu(problem) ||
         problem.activation == CUDNN_ACTIVATION_IDENTITY;
}

/// Takes one output from each of as many equal parts, at a random place.
std::vector<ExactOutput> exactOutputs(const Problem& problem, int most) {
  const Convolution convolution(problem);
  const Tensor& output = convolution.output();
  const std::int64_t all = output.sizes[0] * output.sizes[1] * output.image();
  const double mostProducts = kMostProducts / kMostOutputs * most;
  const double wanted = std::clamp(mostProducts / convolution.products(),
                                   kFewestOutputs,
                                   std::max<double>(most, kFewestOutputs));
  const std::int64_t count = std::min(all, static_cast<std::int64_t>(wanted));
  std::vector<ExactOutput> outputs;
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    const std::int64_t begin = all / count * i + std::min(i, all % count);
    const std::int64_t length = all / count + (i < all % count ? 1 : 0);
    const Index index = indexOf(
        output.sizes,
        begin + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(length)));
    outputs.push_back({output.offset(index), convolution.at(index)});
  }
  return outputs;
}

namespace {

std::int64_t pixelsOf(const Problem& problem) noexcept {
  std::int64_t pixels = 1;
  for (std::size_t d = 2; d < static_cast<std::size_t>(problem.dimensions); ++d)
    pixels *= problem.ySizes[d];
  return pixels;
}

/// Whether neighbouring pixels of y lie at equal distances.
bool hasEvenPixels(const Problem& problem) noexcept {
  auto d = static_cast<std::size_t>(problem.dimensions - 1);
  for (std::int64_t stride = problem.yStrides[d]; d >= 2; stride *= problem.ySizes[d--])
    if (problem.yStrides[d] != stride) return false;
  return problem.yStrides[1] == 1 ||
         problem.yStrides[static_cast<std::size_t>(problem.dimensions - 1)] == 1;
}

}  // namespace

std::vector<Window> windowsOf(const Problem& problem) {
  const std::int64_t pixels = pixelsOf(problem), samples = problem.batch();
  const std::int64_t pixelBytes =
      problem.ySizes[1] * static_cast<std::int64_t>(elementBytes(problem.yType));
  const std::int64_t count = std::min<std::int64_t>(samples, kMostWindows);
  const std::int64_t most =
      std::min(kWindowPixels / count, static_cast<std::int64_t>(kRandomBytes) / pixelBytes);
  std::vector<Window> windows;
  if (problem.operation != Operation::kBackwardFilter || !hasEvenPixels(problem) || most == 0 ||
      samples * pixels <= kWindowPixels)
    return windows;
  const std::int64_t length = std::min(pixels, most);
  // From the first pixel of the first sample to the last one of the last.
  const std::int64_t steps = std::max<std::int64_t>(count - 1, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = (pixels - length) * (count == 1 ? 1 : i) / steps;
    windows.push_back({(samples - 1) * i / steps, begin, begin + length});
  }
  return windows;
}

void fillWindows(void* y,
                 const Problem& problem,
                 const std::vector<Window>& windows,
                 cudaStream_t stream) {
  const std::size_t bytes = elementBytes(problem.yType);
  const void* const numbers = randomNumbers(RandomTensor::kY, problem.yType);
  const auto channels = static_cast<std::size_t>(problem.ySizes[1]);
  const auto last = static_cast<std::size_t>(problem.dimensions - 1);
  UCUDNN_CHECK_CUDA(cudaMemsetAsync(y, 0, problem.yBytes(), stream));
  for (const Window& window : windows) {
    const std::int64_t first =
        window.sample * problem.yStrides[0] + window.begin * problem.yStrides[last];
    char* const to = static_cast<char*>(y) + static_cast<std::size_t>(first) * bytes;
    const auto length = static_cast<std::size_t>(window.end - window.begin) * bytes;
    if (problem.yStrides[1] == 1 && problem.yStrides[last] == problem.ySizes[1])
      UCUDNN_CHECK_CUDA(
          cudaMemcpyAsync(to, numbers, length * channels, cudaMemcpyHostToDevice, stream));
    else if (problem.yStrides[1] == 1)  // gaps between pixels
      UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(to,
                                          static_cast<std::size_t>(problem.yStrides[last]) * bytes,
                                          numbers,
                                          channels * bytes,
                                          channels * bytes,
                                          static_cast<std::size_t>(window.end - window.begin),
                                          cudaMemcpyHostToDevice,
                                          stream));
    else
      UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(to,
                                          static_cast<std::size_t>(problem.yStrides[1]) * bytes,
                                          numbers,
                                          length,
                                          length,
                                          channels,
                                          cudaMemcpyHostToDevice,
                                          stream));
  }
}

std::vector<ExactOutput> outputsToCheck(const Problem& problem,
                                        const std::vector<Window>& windows) {
  const Convolution convolution(problem, windows);
  const Tensor& output = convolution.output();
  const Index& sizes = output.sizes;
  const std::int64_t all = sizes[0] * sizes[1] * output.image();
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(kCheckedProducts / convolution.products(), kFewestChecked, double{kMostOutputs}));
  std::vector<ExactOutput> outputs;
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  for (std::int64_t i = 0; i < std::min(all, wanted); ++i) {
    Index index = indexOf(sizes, i);
    if (all > wanted) {
      for (std::size_t d = 2; d < index.size(); ++d) {
        state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
        index[d] = static_cast<std::int64_t>(state >> 33) % sizes[d];
      }
      index[1] = i % sizes[1];
      index[0] = (i + i / sizes[1]) % sizes[0];
      // Outputs of a kernel's last tile in one dimension, or in all.
      constexpr std::int64_t kKinds = 8;
      const std::int64_t kind = (i + i / sizes[1]) % kKinds;
      for (std::size_t d = 0; d < index.size(); ++d)
        if (d != 1 && (kind == 1 || kind == static_cast<std::int64_t>(d) + 2))
          index[d] = sizes[d] - 1;
    }
    outputs.push_back({output.offset(index), convolution.at(index)});
  }
  return outputs;
}

double normalizedError(const std::vector<ExactOutput>& exact, const std::vector<double>& result) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(result[i] - exact[i].value, 2);
    norm += std::pow(exact[i].value, 2);
  }
  if (difference == 0) return 0;
  const double error = std::sqrt(difference / norm);
  return error <= kLargestError ? error : kLargestError;  // NaN is not
}

double leastError(std::int32_t outputType) noexcept {
  switch (outputType) {
    case CUDNN_DATA_HALF:
      return 0x1p-13;
    case CUDNN_DATA_BFLOAT16:
      return 0x1p-10;
    case CUDNN_DATA_DOUBLE:
      return 0x1p-55;
    default:
      return 0x1p-26;
  }
}

}  // namespace ucudnn
