#include "simulator/cudnn/random_times.hpp"

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

namespace ucudnn::simulator {
namespace {

constexpr double kLogOfLargest = 3;  // 2^3: the factors lie between 1/8 and 8

// SplitMix64 (Steele, Lea, Flood 2014), whose every output bit depends on every input bit.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// In [0, 1): the 53 bits that a double holds.
double toUnit(std::uint64_t mixed) {
  return static_cast<double>(mixed >> 11) * 0x1p-53;
}

class Hash {
 public:
  explicit Hash(std::uint64_t seed) : state_(mix(seed)) {}

  void add(std::int64_t value) { state_ = mix(state_ ^ static_cast<std::uint64_t>(value)); }

  void add(const TensorShape& shape) {
    add(shape.type);
    add(shape.rank);
    for (std::size_t d = 0; d < static_cast<std::size_t>(shape.rank); ++d) {
      add(shape.dims[d]);
      if (d > 0 && shape.dims[d] != 1) add(shape.strides[d]);
    }
  }

  void add(const cudnnConvolutionStruct& convolution) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(convolution.spatialRank); ++d) {
      add(convolution.pad[d]);
      add(convolution.stride[d]);
      add(convolution.dilation[d]);
    }
    add(convolution.mode);
    add(convolution.computeType);
    add(convolution.mathType == CUDNN_FMA_MATH ? 1 : 0);
    add(convolution.groups);
  }

  std::uint64_t number() const { return state_; }

 private:
  std::uint64_t state_;
};

struct ScaledTimes {
  /// Where nothing is scaled, no lock is taken: one that another thread holds at a fork is never
  /// free in the child.
  std::atomic<std::uint64_t> changes{0};
  std::mutex mutex;
  std::map<std::uint64_t, double> factors;
};

ScaledTimes& scaledTimes() {
  static auto* const times = new ScaledTimes;  // plans run from static destructors
  return *times;
}

}  // namespace

std::uint64_t numberOf(const ConvolutionProblem& problem, int algorithm, std::uint64_t seed) {
  Hash hash(seed);
  hash.add(static_cast<int>(problem.operation));
  hash.add(algorithm);
  hash.add(problem.x);
  hash.add(problem.w);
  hash.add(problem.y);
  hash.add(problem.filterFormat);
  hash.add(problem.convolution);
  return hash.number();
}

double unitOf(std::uint64_t number) {
  return toUnit(mix(number));
}

double randomTimeFactor(const ConvolutionProblem& problem, int algorithm, std::uint64_t seed) {
  return std::exp2(kLogOfLargest * (2 * toUnit(numberOf(problem, algorithm, seed)) - 1));
}

double scaledTime(const ConvolutionProblem& problem, int configuration) {
  ScaledTimes& times = scaledTimes();
  if (times.changes.load(std::memory_order_acquire) == 0) return 1;
  const std::lock_guard<std::mutex> lock(times.mutex);
  const auto found = times.factors.find(numberOf(problem, configuration, 0));
  return found != times.factors.end() ? found->second : 1;
}

void scaleTime(const ConvolutionProblem& problem, int configuration, double factor) {
  ScaledTimes& times = scaledTimes();
  const std::lock_guard<std::mutex> lock(times.mutex);
  times.factors[numberOf(problem, configuration, 0)] = factor;
  times.changes.fetch_add(1, std::memory_order_release);
}

std::uint64_t timesVersion() {
  return mix(randomTimesSeed()) + scaledTimes().changes.load(std::memory_order_acquire);
}

}  // namespace ucudnn::simulator
