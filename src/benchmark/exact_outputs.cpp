#include "benchmark/exact_outputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "benchmark/random_values.hpp"
#include "problem/activation.hpp"

namespace ucudnn {
namespace {

// The error of so few outputs repeats within 15 %: one over the root of twice their number.
constexpr double kFewestOutputs = 24;
// For kMostOutputs together: a host computes 3e8 a second.
constexpr double kMostProducts = 3e7;

// Fewer outputs do if they are looked at one by one: a check should take a fiftieth of a timing.
constexpr double kFewestChecked = 64;
constexpr double kCheckedProducts = 1.5e6;
/// All five dimensions: those that the problem does not have are 1.
using Index = std::array<std::int64_t, 5>;

struct Tensor {
  RandomValues values;
  Index sizes{1, 1, 1, 1, 1}, strides{};

  std::size_t offset(const Index& i) const noexcept {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < i.size(); ++d) sum += i[d] * strides[d];
    return static_cast<std::size_t>(sum);
  }
  std::int64_t image() const noexcept { return sizes[2] * sizes[3] * sizes[4]; }
};

/// Values from one offset on at equal distances.
class Walk {
 public:
  Walk(const Tensor& tensor, const Index& first, std::int64_t step)
      : values_(tensor.values),
        at_(values_.place(tensor.offset(first))),
        step_(static_cast<std::size_t>(step) % values_.size()) {}
  double next() noexcept {
    const double value = values_.at(at_);
    at_ = values_.after(at_, step_);
    return value;
  }

 private:
  const RandomValues values_;
  std::size_t at_, step_;
};

class Convolution {
 public:
  explicit Convolution(const Problem& problem, const std::vector<Window>& windows = {});

  const Tensor& output() const noexcept {
    return operation_ == Operation::kBackwardData     ? x_
           : operation_ == Operation::kBackwardFilter ? w_
                                                      : y_;
  }
  /// Products that are added up for one output, at most.
  double products() const noexcept;
  double at(const Index& output) const;

 private:
  /// A pixel of dy that is not 0.
  struct WindowPixel {
    Index x{};                           ///< that its first tap meets; it may be in the padding
    std::size_t xPlace = 0, yPlace = 0;  ///< of the numbers there, in the first channel
    std::size_t channelStep = 1;         ///< from one channel's number in dy to the next one's
  };

  void addPixels(const Window& window);
  double forward(const Index& y) const;
  double backwardData(const Index& x) const;
  double backwardFilter(const Index& w) const;
  double backwardFilterOfWindows(const Index& w) const;
  /// The place in the filter of the number that is multiplied at a tap.
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
  std::vector<WindowPixel> pixels_;  ///< of the windows, if there are any
  Index pads_{}, steps_{1, 1, 1, 1, 1}, dilations_{1, 1, 1, 1, 1};
};

Convolution::Convolution(const Problem& problem, const std::vector<Window>& windows)
    : operation_(problem.operation),
      isFlipped_(problem.mode == CUDNN_CONVOLUTION),
      isRectified_(problem.operation == Operation::kBiasActivationForward && isRelu(problem)),
      addsZ_(problem.addsZ != 0),
      groups_(problem.groups),
      x_{RandomValues(RandomTensor::kX, problem.xType)},
      w_{RandomValues(RandomTensor::kW, problem.wType)},
      y_{RandomValues(RandomTensor::kY, problem.yType)} {
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
  for (const Window& window : windows) addPixels(window);
}

/// Adds the window's pixels, with the numbers that fillWindows writes there.
void Convolution::addPixels(const Window& window) {
  const bool isNhwc = y_.strides[1] == 1;
  const std::int64_t length = window.end - window.begin;
  const auto size = static_cast<std::int64_t>(x_.values.size());
  for (std::int64_t i = 0; i < length; ++i) {
    WindowPixel pixel;
    pixel.x[0] = window.sample;
    std::int64_t number = window.begin + i;
    for (std::size_t d = pixel.x.size(); d-- > 2; number /= y_.sizes[d])
      pixel.x[d] = number % y_.sizes[d] * steps_[d] - pads_[d];
    // In the padding the offset may be negative.
    const auto offset = static_cast<std::int64_t>(x_.offset(pixel.x)) % size + size;
    pixel.xPlace = x_.values.place(static_cast<std::size_t>(offset));
    pixel.yPlace = y_.values.place(static_cast<std::size_t>(isNhwc ? i * y_.sizes[1] : i));
    pixel.channelStep = static_cast<std::size_t>(isNhwc ? 1 : length);
    pixels_.push_back(pixel);
  }
}

double Convolution::products() const noexcept {
  switch (operation_) {
    case Operation::kBackwardData: {
      const std::int64_t filters = w_.sizes[0] / groups_;
      return static_cast<double>(filters * w_.image());
    }
    case Operation::kBackwardFilter:
      return pixels_.empty() ? static_cast<double>(y_.sizes[0] * y_.image())
                             : static_cast<double>(pixels_.size());
    default:
      return static_cast<double>(w_.sizes[1] * w_.image());
  }
}

double Convolution::at(const Index& output) const {
  if (operation_ == Operation::kBackwardData) return backwardData(output);
  if (operation_ == Operation::kBackwardFilter)
    return pixels_.empty() ? backwardFilter(output) : backwardFilterOfWindows(output);
  double value = forward(output);
  if (addsZ_) value += y_.values[y_.offset(output)];
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

/// The gradient if dy holds what fillWindows has written. The places of numbers are added up,
/// because a division for each product would take longer than the product.
double Convolution::backwardFilterOfWindows(const Index& w) const {
  const std::int64_t group = w[0] / (w_.sizes[0] / groups_);
  Index tap{0, group * w_.sizes[1] + w[1]};
  for (std::size_t d = 2; d < tap.size(); ++d) tap[d] = filterAt(d, w[d]) * dilations_[d];
  const auto isInside = [&](const Index& x) {
    for (std::size_t d = 2; d < x.size(); ++d)
      if (x[d] + tap[d] < 0 || x[d] + tap[d] >= x_.sizes[d]) return false;
    return true;
  };
  const std::size_t xStep = x_.offset(tap) % x_.values.size();
  const auto filter = static_cast<std::size_t>(w[0]);
  double sum = 0;
  for (const WindowPixel& pixel : pixels_)
    if (isInside(pixel.x))
      sum += x_.values.at(x_.values.after(pixel.xPlace, xStep)) *
             y_.values.at(y_.values.after(pixel.yPlace, filter * pixel.channelStep));
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
         !activates(problem);
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

/// Lines of outputs.
class Lines {
 public:
  Lines(const Tensor& output, std::size_t elementBytes, std::int64_t wanted)
      : output_(output), elementBytes_(static_cast<std::int64_t>(elementBytes)) {
    const Index& sizes = output.sizes;
    const auto isNear = [&](std::size_t d) {
      return output.strides[d] * elementBytes_ <= kMostPitch;
    };
    along_ = sizes.size() - 1;  // neighbours, or channels last
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (isNear(d) && (sizes[d] > sizes[along_] || !isNear(along_))) along_ = d;
    if (sizes[1] >= kLineOutputs && isNear(1)) along_ = 1;
    const std::int64_t all = sizes[0] * sizes[1] * output.image();
    isWhole_ = all <= wanted;
    const std::int64_t most = isWhole_ ? sizes[along_] : std::min(kLineOutputs, wanted / kKinds);
    length_ = std::min(sizes[along_], most);
    count_ = isWhole_ ? all / length_ : wanted / length_;
  }

  std::int64_t count() const noexcept { return count_; }

  struct Line {
    Index first{}, step{};
    std::int64_t length = 0;
  };
  Line line(std::int64_t number) {
    Line line{{}, {}, length_};
    if (isWhole_) {
      Index others = output_.sizes;
      others[along_] = 1;
      line.first = indexOf(others, number);
      line.step[along_] = 1;
      return line;
    }
    const std::int64_t kind = number % kKinds;
    for (std::size_t d = 0; d < line.first.size(); ++d) {
      const bool isLast = kind == 1 || kind == static_cast<std::int64_t>(d) + 2;
      if (d == along_)
        setAlong(line, number, isLast);
      else
        setAcross(line, d, isLast);
    }
    shorten(line);
    return line;
  }

 private:
  // The last output of nothing, of everything, or of one of the five dimensions.
  static constexpr std::int64_t kKinds = 8;
  static constexpr std::int64_t kLineOutputs = 16;
  static constexpr std::int64_t kMostPitch = (std::int64_t{1} << 31) - 1;  // CUDA's

  std::int64_t below(std::int64_t size) noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    return static_cast<std::int64_t>(state_ >> 33) % size;
  }
  /// Goes along the dimension from end to end. Neighbouring lines begin at different places.
  void setAlong(Line& line, std::int64_t number, bool isLast) const noexcept {
    const std::int64_t size = output_.sizes[along_];
    const std::int64_t step = size / length_;
    const std::int64_t free = size - (length_ - 1) * step;
    line.first[along_] = isLast ? free - 1 : number % free;
    line.step[along_] = step;
  }
  /// Goes from one random place to another. In a small dimension all outputs have one place.
  void setAcross(Line& line, std::size_t d, bool isLast) noexcept {
    const std::int64_t size = output_.sizes[d];
    const std::int64_t one = below(size), other = below(size);
    const std::int64_t step = length_ > 1 ? std::abs(one - other) / (length_ - 1) : 0;
    line.first[d] = isLast ? size - 1 : step > 0 ? std::min(one, other) : one;
    line.step[d] = isLast ? 0 : step;
  }
  /// A copy can't step over gigabytes from one output to the next.
  void shorten(Line& line) const noexcept {
    while (pitch(line) > kMostPitch)
      for (std::size_t d = 0; d < line.step.size(); ++d)
        line.step[d] = std::max<std::int64_t>(line.step[d] / 2, d == along_ ? 1 : 0);
  }
  std::int64_t pitch(const Line& line) const noexcept {
    return static_cast<std::int64_t>(output_.offset(line.step)) * elementBytes_;
  }

  const Tensor& output_;
  const std::int64_t elementBytes_;
  std::size_t along_ = 1;
  bool isWhole_ = false;
  std::int64_t length_ = 0, count_ = 0;
  std::uint64_t state_ = 0x9E3779B97F4A7C15u;
};

}  // namespace

OutputsToCheck outputsToCheck(const Problem& problem) {
  OutputsToCheck result;
  result.windows = windowsOf(problem);
  const Convolution convolution(problem, result.windows);
  const Tensor& output = convolution.output();
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(kCheckedProducts / convolution.products(), kFewestChecked, double{kMostOutputs}));
  Lines lines(output, elementBytes(problem.outputType()), wanted);
  for (std::int64_t i = 0; i < lines.count(); ++i) {
    Lines::Line line = lines.line(i);
    result.lines.push_back({output.offset(line.first),
                            output.offset(line.step),
                            static_cast<std::size_t>(line.length)});
    for (std::int64_t j = 0; j < line.length; ++j) {
      result.outputs.push_back({output.offset(line.first), convolution.at(line.first)});
      for (std::size_t d = 0; d < line.first.size(); ++d) line.first[d] += line.step[d];
    }
  }
  return result;
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
